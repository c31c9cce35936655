//! Protobuf bodies, as typed Go clients send them, turned into the JSON the API speaks.
//!
//! The server answers in JSON only, so nothing here encodes. Messages are read through
//! descriptors generated from the published definitions; no kind has code of its own.

mod json;
mod special;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Map, Value};

use crate::kinds::builtin;

const DESCRIPTORS: &[u8] = include_bytes!("../../data/proto.binpb.gz");
const RULES: &[u8] = include_bytes!("../../data/proto-json.json.gz");
const META: &str = "k8s.io.apimachinery.pkg.apis.meta.v1";

/// The media type of these bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The four bytes every body begins with.
pub const MAGIC: &[u8] = b"k8s\0";

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProtoError {
    /// The body does not begin with [`MAGIC`].
    #[error("the body does not begin with the four bytes of the Kubernetes protobuf envelope")]
    NotEnveloped,
    /// The bytes are not the message they should be.
    #[error("the body is not a valid protobuf message")]
    Malformed(#[from] prost::DecodeError),
    /// The envelope says how it is packed, and that is not known here.
    #[error("the envelope has the unknown content type or encoding {0:?}")]
    UnknownContent(String),
    /// The envelope does not name a kind, or one that is not built in.
    #[error("no built-in kind {kind:?} in version {api_version:?}")]
    UnknownKind {
        /// `apiVersion` of the envelope.
        api_version: String,
        /// `kind` of the envelope.
        kind: String,
    },
    /// A field that holds JSON text holds something else.
    #[error("the field {field} does not hold JSON")]
    NotJson {
        /// The message and field.
        field: String,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A number that no instant or duration has.
    #[error("{0} is outside the range of times")]
    TimeOutOfRange(i64),
}

/// What JSON does with a field when the usual rule (zero values are left out) does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Presence {
    /// Its fields are fields of the object around it.
    Spread,
    /// Written whenever it was sent, zero or not.
    WhenSet,
    /// Written even if it was not sent.
    Always,
}

/// Everything needed to read messages; made once.
struct Codec {
    pool: DescriptorPool,
    rules: BTreeMap<String, BTreeMap<String, Presence>>,
    packages: BTreeMap<String, String>,
}

fn codec() -> &'static Codec {
    static CODEC: OnceLock<Codec> = OnceLock::new();
    CODEC.get_or_init(|| {
        let unpack = |gzip: &[u8]| {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(gzip).read_to_end(&mut bytes).map(|_| bytes)
        };
        #[expect(clippy::expect_used, reason = "compiled-in data, read by every test")]
        Codec {
            pool: DescriptorPool::decode(unpack(DESCRIPTORS).expect("descriptors").as_slice())
                .expect("the generated descriptors"),
            rules: serde_json::from_slice(&unpack(RULES).expect("rules"))
                .expect("the generated rules"),
            packages: packages(),
        }
    })
}

/// The protobuf package of each group-version, from the published names of its types.
fn packages() -> BTreeMap<String, String> {
    let mut packages = BTreeMap::new();
    for kind in builtin() {
        let name = &kind.schema.root().node().name;
        let package = name.strip_prefix("io.k8s.").and_then(|name| name.rsplit_once('.'));
        if let Some((package, _)) = package {
            packages.insert(kind.api_version(), format!("k8s.io.{}", package.replace('-', "_")));
        }
    }
    packages
}

impl Codec {
    /// The message of a kind: of its own group-version, else one of those every version knows
    /// (`DeleteOptions`, `Status`).
    fn message_of(&self, api_version: &str, kind: &str) -> Option<MessageDescriptor> {
        let own = self.packages.get(api_version).map(String::as_str);
        own.into_iter()
            .chain([META])
            .find_map(|package| self.pool.get_message_by_name(&format!("{package}.{kind}")))
    }

    fn presence(&self, message: &str, field: &str) -> Option<Presence> {
        self.rules.get(message)?.get(field).copied()
    }
}

/// Turns a protobuf body into the JSON object that the same client would have sent as JSON.
///
/// # Errors
/// When the bytes are not an enveloped message of a built-in kind. Never panics, whatever the
/// bytes are.
pub fn decode(body: &[u8]) -> Result<Value, ProtoError> {
    let codec = codec();
    let bytes = body.strip_prefix(MAGIC).ok_or(ProtoError::NotEnveloped)?;
    let envelope = Envelope::read(codec, bytes)?;
    let mut object = Map::new();
    match envelope.content_type.as_str() {
        "" | MEDIA_TYPE => {
            let unknown = || ProtoError::UnknownKind {
                api_version: envelope.api_version.clone(),
                kind: envelope.kind.clone(),
            };
            let descriptor =
                codec.message_of(&envelope.api_version, &envelope.kind).ok_or_else(unknown)?;
            let message = DynamicMessage::decode(descriptor, envelope.raw.as_slice())?;
            object.insert("kind".to_owned(), envelope.kind.into());
            object.insert("apiVersion".to_owned(), envelope.api_version.into());
            json::fields(codec, &message, &mut object)?;
            Ok(Value::Object(object))
        }
        "application/json" => serde_json::from_slice(&envelope.raw)
            .map_err(|source| ProtoError::NotJson { field: "Unknown.raw".to_owned(), source }),
        other => Err(ProtoError::UnknownContent(other.to_owned())),
    }
}

/// What a body is wrapped in.
#[derive(Default)]
struct Envelope {
    api_version: String,
    kind: String,
    raw: Vec<u8>,
    content_type: String,
}

impl Envelope {
    fn read(codec: &Codec, bytes: &[u8]) -> Result<Self, ProtoError> {
        let name = "k8s.io.apimachinery.pkg.runtime.Unknown";
        let Some(descriptor) = codec.pool.get_message_by_name(name) else {
            return Err(ProtoError::NotEnveloped);
        };
        let message = DynamicMessage::decode(descriptor, bytes)?;
        let text = |message: &DynamicMessage, name: &str| {
            let value = message.get_field_by_name(name);
            value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
        };
        let encoding = text(&message, "contentEncoding");
        if !encoding.is_empty() {
            return Err(ProtoError::UnknownContent(encoding));
        }
        let mut envelope = Self { content_type: text(&message, "contentType"), ..Self::default() };
        if let Some(meta) = message.get_field_by_name("typeMeta")
            && let Some(meta) = meta.as_message()
        {
            envelope.api_version = text(meta, "apiVersion");
            envelope.kind = text(meta, "kind");
        }
        if let Some(raw) = message.get_field_by_name("raw")
            && let Some(raw) = raw.as_bytes()
        {
            envelope.raw = raw.to_vec();
        }
        Ok(envelope)
    }
}

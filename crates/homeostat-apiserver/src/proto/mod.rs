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

/// Why a body cannot be read, in the words of Go.
#[derive(Debug, thiserror::Error)]
pub enum ProtoError {
    /// There is no body.
    #[error("empty data")]
    Empty,
    /// The body does not begin with [`MAGIC`].
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NotEnveloped,
    /// Nothing comes after it.
    #[error("empty body")]
    EmptyEnvelope,
    /// What follows is not the message that every body is wrapped in.
    #[error("{}", in_go(.0))]
    BadEnvelope(prost::DecodeError),
    /// The message in it is not the one it says it is.
    #[error("{}", in_go(.source))]
    Malformed {
        /// `apiVersion` of the envelope.
        api_version: String,
        /// `kind` of the envelope.
        kind: String,
        /// What the reader said.
        source: prost::DecodeError,
    },
    /// The envelope names a kind that is not built in.
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

/// What Go's reader says, as far as can be told: mostly bytes are missing.
fn in_go(error: &prost::DecodeError) -> String {
    let words = error.to_string();
    let is_short = !words.contains("wire type") && !words.contains("UTF-8");
    if is_short { "unexpected EOF".to_owned() } else { format!("proto: {words}") }
}

/// Turns a protobuf body into the JSON object that the same client would have sent as JSON. Where
/// the envelope names no type, the message is of the `expected` one: `apiVersion` and `kind`.
///
/// # Errors
/// When the bytes are not an enveloped message of a built-in kind. Never panics, whatever the
/// bytes are.
pub fn decode(body: &[u8], expected: (&str, &str)) -> Result<Value, ProtoError> {
    if body.is_empty() {
        return Err(ProtoError::Empty);
    }
    let codec = codec();
    let bytes = body.strip_prefix(MAGIC).ok_or(ProtoError::NotEnveloped)?;
    if bytes.is_empty() {
        return Err(ProtoError::EmptyEnvelope);
    }
    let Envelope { mut api_version, mut kind, raw } = Envelope::read(codec, bytes)?;
    for (given, expected) in [(&mut api_version, expected.0), (&mut kind, expected.1)] {
        if given.is_empty() {
            expected.clone_into(given);
        }
    }
    let Some(descriptor) = codec.message_of(&api_version, &kind) else {
        return Err(ProtoError::UnknownKind { api_version, kind });
    };
    match DynamicMessage::decode(descriptor, raw.as_slice()) {
        Ok(message) => {
            let mut object = Map::new();
            object.insert("kind".to_owned(), kind.into());
            object.insert("apiVersion".to_owned(), api_version.into());
            json::fields(codec, &message, &mut object)?;
            Ok(Value::Object(object))
        }
        Err(source) => Err(ProtoError::Malformed { api_version, kind, source }),
    }
}

/// What a body is wrapped in. What it says about how it is packed is not looked at.
#[derive(Default)]
struct Envelope {
    api_version: String,
    kind: String,
    raw: Vec<u8>,
}

impl Envelope {
    fn read(codec: &Codec, bytes: &[u8]) -> Result<Self, ProtoError> {
        let name = "k8s.io.apimachinery.pkg.runtime.Unknown";
        let Some(descriptor) = codec.pool.get_message_by_name(name) else {
            return Err(ProtoError::NotEnveloped);
        };
        let message = DynamicMessage::decode(descriptor, bytes).map_err(ProtoError::BadEnvelope)?;
        let text = |message: &DynamicMessage, name: &str| {
            let value = message.get_field_by_name(name);
            value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
        };
        let mut envelope = Self::default();
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

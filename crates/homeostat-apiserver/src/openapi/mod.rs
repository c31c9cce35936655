//! OpenAPI: the published v3 documents of built-in kinds, documents rendered for custom ones, and
//! all of them as one v2 document.
//!
//! Built-in documents are compiled in as they go over the wire (gzip), and are never parsed on the
//! way out.

mod custom;
mod operations;
mod registered;
mod types;
mod v2;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

pub use custom::custom_document;
use v2::{Members, Reads, Swagger};

macro_rules! row {
    ($path:literal, $file:literal) => {
        ($path, include_bytes!(concat!("../../data/openapi/", $file)).as_slice())
    };
}

const BUILTIN: &[(&str, &[u8])] = &[
    row!(".well-known/openid-configuration", "well-known__openid-configuration.json.gz"),
    row!("api", "api.json.gz"),
    row!("apis", "apis.json.gz"),
    row!("apis/admissionregistration.k8s.io", "apis__admissionregistration.k8s.io.json.gz"),
    row!("apis/apiextensions.k8s.io", "apis__apiextensions.k8s.io.json.gz"),
    row!("apis/apiregistration.k8s.io", "apis__apiregistration.k8s.io.json.gz"),
    row!("apis/apps", "apis__apps.json.gz"),
    row!("apis/authentication.k8s.io", "apis__authentication.k8s.io.json.gz"),
    row!("apis/authorization.k8s.io", "apis__authorization.k8s.io.json.gz"),
    row!("apis/autoscaling", "apis__autoscaling.json.gz"),
    row!("apis/batch", "apis__batch.json.gz"),
    row!("apis/certificates.k8s.io", "apis__certificates.k8s.io.json.gz"),
    row!("apis/coordination.k8s.io", "apis__coordination.k8s.io.json.gz"),
    row!("apis/discovery.k8s.io", "apis__discovery.k8s.io.json.gz"),
    row!("apis/events.k8s.io", "apis__events.k8s.io.json.gz"),
    row!("apis/flowcontrol.apiserver.k8s.io", "apis__flowcontrol.apiserver.k8s.io.json.gz"),
    row!("apis/networking.k8s.io", "apis__networking.k8s.io.json.gz"),
    row!("apis/node.k8s.io", "apis__node.k8s.io.json.gz"),
    row!("apis/policy", "apis__policy.json.gz"),
    row!("apis/rbac.authorization.k8s.io", "apis__rbac.authorization.k8s.io.json.gz"),
    row!("apis/resource.k8s.io", "apis__resource.k8s.io.json.gz"),
    row!("apis/scheduling.k8s.io", "apis__scheduling.k8s.io.json.gz"),
    row!("apis/storage.k8s.io", "apis__storage.k8s.io.json.gz"),
    row!("openid/v1/jwks", "openid__v1__jwks.json.gz"),
    row!("version", "version.json.gz"),
    row!("api/v1", "api__v1.json.gz"),
    row!("apis/admissionregistration.k8s.io/v1", "apis__admissionregistration.k8s.io__v1.json.gz"),
    row!("apis/apiextensions.k8s.io/v1", "apis__apiextensions.k8s.io__v1.json.gz"),
    row!("apis/apiregistration.k8s.io/v1", "apis__apiregistration.k8s.io__v1.json.gz"),
    row!("apis/apps/v1", "apis__apps__v1.json.gz"),
    row!("apis/authentication.k8s.io/v1", "apis__authentication.k8s.io__v1.json.gz"),
    row!("apis/authorization.k8s.io/v1", "apis__authorization.k8s.io__v1.json.gz"),
    row!("apis/autoscaling/v1", "apis__autoscaling__v1.json.gz"),
    row!("apis/autoscaling/v2", "apis__autoscaling__v2.json.gz"),
    row!("apis/batch/v1", "apis__batch__v1.json.gz"),
    row!("apis/certificates.k8s.io/v1", "apis__certificates.k8s.io__v1.json.gz"),
    row!("apis/coordination.k8s.io/v1", "apis__coordination.k8s.io__v1.json.gz"),
    row!("apis/discovery.k8s.io/v1", "apis__discovery.k8s.io__v1.json.gz"),
    row!("apis/events.k8s.io/v1", "apis__events.k8s.io__v1.json.gz"),
    row!("apis/flowcontrol.apiserver.k8s.io/v1", "apis__flowcontrol.apiserver.k8s.io__v1.json.gz"),
    row!("apis/networking.k8s.io/v1", "apis__networking.k8s.io__v1.json.gz"),
    row!("apis/node.k8s.io/v1", "apis__node.k8s.io__v1.json.gz"),
    row!("apis/policy/v1", "apis__policy__v1.json.gz"),
    row!("apis/rbac.authorization.k8s.io/v1", "apis__rbac.authorization.k8s.io__v1.json.gz"),
    row!("apis/resource.k8s.io/v1", "apis__resource.k8s.io__v1.json.gz"),
    row!("apis/scheduling.k8s.io/v1", "apis__scheduling.k8s.io__v1.json.gz"),
    row!("apis/storage.k8s.io/v1", "apis__storage.k8s.io__v1.json.gz"),
];

/// One document as it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text (or the message), compressed with gzip.
    pub gzip: Bytes,
    /// Changes whenever the document does; goes into its URL and its etag.
    pub hash: String,
}

impl Document {
    fn new(gzip: Bytes) -> Self {
        let hash = Sha256::digest(&gzip).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        });
        Self { gzip, hash }
    }

    /// Compresses a document, for instance one of [`custom_document`].
    #[must_use]
    pub fn render(document: &Value) -> Self {
        Self::compress(document.to_string().as_bytes())
    }

    fn compress(content: &[u8]) -> Self {
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let _ = encoder.write_all(content);
        Self::new(encoder.finish().unwrap_or_default().into())
    }

    fn parse(&self) -> Value {
        serde_json::from_slice(&self.text()).unwrap_or_default()
    }

    /// The text, for a client that does not accept gzip. Empty if the bytes are not gzip.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let _ = flate2::read::GzDecoder::new(self.gzip.as_ref()).read_to_end(&mut text);
        text
    }
}

/// Documents by path (`api/v1`, `apis/apps/v1`): the built-in ones, and any that are added.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    by_path: BTreeMap<String, Document>,
    /// Everything as v2, made when somebody asks for it.
    swagger: OnceLock<Document>,
    swagger_message: OnceLock<Document>,
    since: Timestamp,
}

impl Documents {
    /// Since when they are as they are.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// The same, as they are from now on.
    pub(crate) fn made_at(mut self, now: Timestamp) -> Self {
        self.since = now;
        self
    }

    /// The documents of the built-in kinds.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static DOCUMENTS: OnceLock<Documents> = OnceLock::new();
        DOCUMENTS.get_or_init(|| {
            let document = |(path, gzip): &(&str, &'static [u8])| {
                ((*path).to_owned(), Document::new(Bytes::from_static(gzip)))
            };
            Self { by_path: BUILTIN.iter().map(document).collect(), ..Self::default() }
        })
    }

    /// Adds or replaces the document of a path.
    pub fn insert(&mut self, path: impl Into<String>, document: Document) {
        self.by_path.insert(path.into(), document);
        self.swagger = OnceLock::new();
        self.swagger_message = OnceLock::new();
    }

    /// `/openapi/v2`: all documents in one, as JSON.
    pub fn swagger(&self) -> &Document {
        self.swagger.get_or_init(|| {
            Document::compress(v2::text(&[Self::shared(), &self.custom()]).as_bytes())
        })
    }

    /// The same as protobuf.
    pub fn swagger_message(&self) -> &Document {
        self.swagger_message
            .get_or_init(|| Document::compress(&v2::message(&[Self::shared(), &self.custom()])))
    }

    /// What the built-in kinds give to the v2 document: the large part, which never changes.
    fn shared() -> &'static Members {
        static SHARED: OnceLock<Members> = OnceLock::new();
        SHARED.get_or_init(|| {
            let mut all = Swagger::default();
            for document in Self::builtin().by_path.values() {
                all.add(&document.parse(), Reads::Anything);
            }
            all.members(None)
        })
    }

    fn custom(&self) -> Members {
        let mut custom = Swagger::default();
        for (path, document) in &self.by_path {
            if Self::builtin().document(path) != Some(document) {
                custom.add(&document.parse(), Reads::JsonAndYaml);
            }
        }
        custom.members(Some(Self::shared()))
    }

    /// The document of a path without its leading slash; `None` when there is none.
    #[must_use]
    pub fn document(&self, path: &str) -> Option<&Document> {
        self.by_path.get(path)
    }

    /// `/openapi/v3`: where each document is, with its hash so that it may be kept forever.
    #[must_use]
    pub fn index(&self) -> Value {
        let paths: Map<String, Value> = self
            .by_path
            .iter()
            .map(|(path, document)| {
                let url = format!("/openapi/v3/{path}?hash={}", document.hash);
                (path.clone(), json!({"serverRelativeURL": url}))
            })
            .collect();
        json!({"paths": paths})
    }
}

#[cfg(test)]
mod tests {
    use super::{BUILTIN, Document, Documents};
    use crate::kinds::builtin;

    #[test]
    fn every_served_version_has_a_document_that_the_index_names() {
        let index = Documents::builtin().index();
        for kind in builtin() {
            let path = match kind.group.as_str() {
                "" => format!("api/{}", kind.version),
                group => format!("apis/{group}/{}", kind.version),
            };
            let document = Documents::builtin().document(&path).unwrap();
            let url = index["paths"][&path]["serverRelativeURL"].as_str().unwrap();
            assert_eq!(url, format!("/openapi/v3/{path}?hash={}", document.hash));
        }
        assert!(Documents::builtin().document("apis/absent.example/v1").is_none());
    }

    #[test]
    fn documents_are_openapi_and_survive_compression() {
        for (path, _) in BUILTIN {
            let text = Documents::builtin().document(path).unwrap().text();
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(value["openapi"], "3.0.0", "{path}");
            let again = Document::render(&value);
            assert_eq!(serde_json::from_slice::<serde_json::Value>(&again.text()).unwrap(), value);
        }
    }
}

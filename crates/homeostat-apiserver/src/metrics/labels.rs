//! What a request is counted under: the labels of kube-apiserver, so that what reads them there
//! reads them here.

use std::sync::Arc;

use http::Method;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};

use crate::kinds::Kind;

/// A sort of request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, EncodeLabelSet)]
pub(crate) struct Sort {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) scope: &'static str,
    pub(crate) component: &'static str,
}

impl Sort {
    /// A request about a resource.
    pub(crate) fn resource(
        kind: &Kind,
        verb: &'static str,
        subresource: &str,
        scope: &'static str,
    ) -> Self {
        Self {
            verb,
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: kind.plural.clone(),
            subresource: subresource.to_owned(),
            scope,
            component: "apiserver",
        }
    }

    /// A request about something else, which stands where a subresource would.
    pub(crate) fn path(path: &str) -> Self {
        Self { verb: "GET", subresource: path.to_owned(), ..Self::default() }
    }

    /// Whether such requests last for as long as the client likes.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.verb, "WATCH" | "CONNECT")
    }

    /// Whether such requests may change something.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.verb, "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE")
    }
}

/// The verb of a request about a resource; `None` for methods that no resource knows.
pub(crate) fn verb(
    method: &Method,
    of_many: bool,
    watches: bool,
    applies: bool,
) -> Option<&'static str> {
    Some(match *method {
        Method::GET if watches => "WATCH",
        Method::GET if of_many => "LIST",
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH if applies => "APPLY",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => return None,
    })
}

/// A sort of request, and whether it was only tried out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) sort: Arc<Sort>,
    pub(crate) dry_run: &'static str,
}

/// The same with the code of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Answered {
    pub(crate) asked: Asked,
    pub(crate) code: u16,
}

/// A sort of request by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Plain(pub(crate) Arc<Sort>);

impl EncodeLabelSet for Plain {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

impl EncodeLabelSet for Asked {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.sort.encode(encoder)?;
        [("dry_run", self.dry_run)].encode(encoder)
    }
}

impl EncodeLabelSet for Answered {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.asked.encode(encoder)?;
        [("code", self.code)].encode(encoder)
    }
}

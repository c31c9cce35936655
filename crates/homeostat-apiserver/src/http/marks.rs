//! What every answer carries besides its content: a number for those who keep records, the flow that
//! the request belonged to, and that nobody may keep the answer for others.

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Response, StatusCode};

use super::body::Body;
use crate::registry::{Flow, Registry};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// What is found out about a request on its way to its answer.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    audit_id: Option<HeaderValue>,
    /// The flow; none for what nobody identified and for what lasts.
    pub(crate) flow: Option<Flow>,
    /// The user may not, or cannot be whom they want to be.
    pub(crate) refused: bool,
    left_off: bool,
}

impl Marks {
    /// The marks of a request, which may bring its number along.
    pub(crate) fn new(registry: &Registry, headers: &HeaderMap) -> Self {
        let given = headers.get(AUDIT_ID).filter(|given| !given.is_empty()).cloned();
        let audit_id = given.or_else(|| HeaderValue::from_str(&registry.env.uid()).ok());
        Self { audit_id, ..Self::default() }
    }

    /// Leaves the answer as it is.
    pub(crate) fn leave_off(&mut self) {
        self.left_off = true;
    }

    /// Marks the answer. Those of others, which are passed on, stay as they are.
    pub(crate) fn put_on(self, response: &mut Response<Body>) {
        if self.left_off || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        let headers = response.headers_mut();
        if let Some(audit_id) = self.audit_id {
            headers.insert(AUDIT_ID, audit_id);
        }
        if let Some(flow) = self.flow {
            headers.insert(FLOW_SCHEMA, flow.schema);
            headers.insert(PRIORITY_LEVEL, flow.level);
        }
        if self.refused {
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        headers
            .entry(CACHE_CONTROL)
            .or_insert_with(|| HeaderValue::from_static("no-cache, private"));
    }
}

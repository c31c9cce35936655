//! One request to the API: bytes and the status code back, errors as the API words them.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::{Request, Status};
use serde::de::DeserializeOwned;

use super::Context;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::{AnyObject, Kind};

/// What the API answered to a request it accepted.
#[derive(Debug)]
pub(super) struct Answer {
    /// Whether the request made a new object.
    pub(super) created: bool,
    pub(super) body: Bytes,
}

impl Answer {
    /// Reads the body as an object.
    pub(super) fn decode<T: DeserializeOwned>(&self, kind: &Kind, key: &Key) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|source| undecodable(kind, key, source))
    }
}

pub(super) fn undecodable(kind: &Kind, key: &Key, source: serde_json::Error) -> Error {
    Error::Decode { object: format!("{kind} {key}"), source }
}

/// The builder for requests about a kind in a namespace.
pub(super) fn to(kind: &Kind, namespace: Option<&str>) -> Request {
    Request::new(kind.path(namespace))
}

impl<K: AnyObject> Context<K> {
    /// Sends a request built by [`to`]; the whole answer must be there within the time limit.
    pub(super) async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Answer> {
        let request = request.map_err(|error| Error::from(kube::Error::BuildRequest(error)))?;
        let exchange = async {
            let response = self.client().send(request.map(Body::from)).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            if status.is_client_error() || status.is_server_error() {
                return Err(Error::Api(kube::Error::Api(Box::new(refusal(status, &body)))));
            }
            Ok(Answer { created: status == StatusCode::CREATED, body })
        };
        let limit = self.run.shared.request_limit;
        self.env().timeout(limit, exchange).await.unwrap_or(Err(Error::NoAnswer(limit)))
    }
}

/// The `Status` in the body, or one made of whatever text is there (a proxy may answer too).
fn refusal(code: StatusCode, body: &[u8]) -> Status {
    let parsed = serde_json::from_slice::<Status>(body).ok().filter(|status| status.code != 0);
    parsed.unwrap_or_else(|| {
        let reason = code.canonical_reason().unwrap_or("Unknown");
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), reason).with_code(code.as_u16())
    })
}

/// Whether the API said that there is no such object. That there is no such kind is another 404,
/// without a name, and no answer to the question.
pub(super) fn is_not_found(error: &Error) -> bool {
    let Error::Api(kube::Error::Api(status)) = error else { return false };
    let named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    status.code == 404 && named
}

//! A server that has no time says when to come back in a header, with a line of plain text below it
//! (kube-apiserver's flow control does so). Whoever reads errors as [`kube::Error`] sees no headers: here
//! the answer becomes the `Status` that it should have been. Never sends anything again by itself.

use std::time::Duration;

use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::{Value, json};

use super::{LONGEST_WAIT, retry_after};
use crate::error::BoxError;

/// As much of an answer is read for its words.
const WORDS: usize = 64 * 1024;

/// The same client, whose errors say how long the server wants to be left alone.
pub(crate) fn in_words(client: kube::Client) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            let answer = client.send(request).await.map_err(BoxError::from)?;
            match retry_after(answer.headers()) {
                Some(after) if is_no_time(answer.status()) => worded(answer, after).await,
                _ => Ok(answer),
            }
        }
    });
    kube::Client::new(service, namespace)
}

/// How long the server wants to be left alone, by what it has said; zero when it does not say.
pub(crate) fn told_to_wait(error: &kube::Error) -> Duration {
    let kube::Error::Api(status) = error else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(seconds.into()).min(LONGEST_WAIT)
}

fn is_no_time(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

async fn worded(answer: Response<Body>, after: Duration) -> Result<Response<Body>, BoxError> {
    let (mut parts, body) = answer.into_parts();
    let body = Limited::new(body, WORDS).collect().await?.to_bytes();
    let mut status = serde_json::from_slice(&body)
        .ok()
        .filter(|value: &Value| value["kind"] == "Status")
        .unwrap_or_else(|| {
            let (code, words) = (parts.status.as_u16(), String::from_utf8_lossy(&body));
            let reason = match parts.status {
                StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
                _ => "ServiceUnavailable",
            };
            json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure",
                "code": code, "reason": reason, "message": words.trim_end(),
            })
        });
    let details = &mut status["details"];
    if !details.is_object() {
        *details = json!({});
    }
    details["retryAfterSeconds"] = after.as_secs().into();
    parts
        .headers
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(status.to_string().into_bytes())))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;

    use super::*;

    /// What somebody hears who asks for an object.
    async fn told(code: u16, after: Option<&'static str>, body: &'static str) -> kube::Error {
        let service = tower::service_fn(move |_: http::Request<Body>| async move {
            let mut head = Response::builder().status(code);
            if let Some(after) = after {
                head = head.header(header::RETRY_AFTER, after);
            }
            Ok::<_, BoxError>(head.body(Body::from(body.as_bytes().to_vec())).unwrap())
        });
        let client = in_words(kube::Client::new(service, "default"));
        Api::<ConfigMap>::default_namespaced(client).get("a").await.unwrap_err()
    }

    #[tokio::test]
    async fn what_the_header_says_of_a_busy_server_is_in_the_error() {
        let error = told(429, Some("7"), "Too many requests, please try again later.\n").await;
        assert_eq!(told_to_wait(&error), Duration::from_secs(7));
        assert!(
            error.to_string().contains("Too many requests, please try again later."),
            "{error}"
        );
        let status =
            r#"{"kind":"Status","code":503,"reason":"ServiceUnavailable","message":"later"}"#;
        let odd = r#"{"kind":"Status","code":503,"message":"later","details":["ask later"]}"#;
        for status in [status, odd] {
            let error = told(503, Some("2"), status).await;
            assert_eq!(told_to_wait(&error), Duration::from_secs(2));
            assert!(error.to_string().contains("later"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_says_tomorrow_is_left_alone_for_five_minutes() {
        let status = r#"{"kind":"Status","code":503,"details":{"retryAfterSeconds":86400}}"#;
        for (after, body) in [(Some("86400"), "tomorrow"), (None, status)] {
            let error = told(503, after, body).await;
            assert_eq!(told_to_wait(&error), Duration::from_secs(300));
            assert_eq!(crate::Error::from(error).told_to_wait(), Duration::from_secs(300));
        }
    }

    #[tokio::test]
    async fn other_answers_stay_as_they_are() {
        for (code, after) in [(429, None), (500, Some("7")), (429, Some("tomorrow"))] {
            assert_eq!(told_to_wait(&told(code, after, "no").await), Duration::ZERO);
        }
    }
}

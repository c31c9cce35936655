//! A client between the runtime and its cluster that lets some requests go wrong.

use std::sync::Arc;
use std::time::Duration;

use homeostat::Env;
use homeostat::kube::Client;
use homeostat::kube::client::Body;
use http::{Request, Response};
use serde_json::json;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No answer, ever; the API does not see it.
    Hang,
    /// The API does it, and the answer is lost.
    LoseAnswer,
    /// The API does it, and the answer comes a second later.
    Delay,
    /// Refused with 403.
    Forbid,
}

/// `client`, with the fault that `choose` names for a request.
pub fn faulty(
    client: &Client,
    choose: impl Fn(&Request<Body>) -> Option<Fault> + Send + Sync + 'static,
) -> Client {
    let (inner, choose) = (client.clone(), Arc::new(choose));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, fault) = (inner.clone(), choose(&request));
        async move {
            match fault {
                None => client.send(request).await,
                Some(Fault::Hang) => std::future::pending().await,
                Some(Fault::Delay) => {
                    let answer = client.send(request).await;
                    Env::system().sleep(Duration::from_secs(1)).await;
                    answer
                }
                Some(Fault::Forbid) => {
                    let body = json!({
                        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                        "reason": "Forbidden", "message": "a rule is missing",
                    });
                    let answer = Response::builder().status(403);
                    Ok(answer.body(Body::from(body.to_string().into_bytes())).unwrap())
                }
                Some(Fault::LoseAnswer) => {
                    drop(client.send(request).await);
                    std::future::pending().await
                }
            }
        }
    });
    Client::new(service, client.default_namespace())
}

/// Whether a request is `method` on something below a path with `part` in it.
pub fn is(request: &Request<Body>, method: &str, part: &str) -> bool {
    request.method() == method && request.uri().path().contains(part)
}

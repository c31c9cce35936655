//! A client between the runtime and its cluster that lets some requests go wrong.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::ready;
use futures::stream::{once, pending};
use homeostat::Env;
use homeostat::kube::Client;
use homeostat::kube::client::Body;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
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
    /// Refused with 409, as a webhook may.
    Conflict,
    /// Refused with 503.
    Unavailable,
    /// Turned away for three seconds, as kube-apiserver's flow control does: in a line of text.
    Busy,
    /// Refused with 503 for three seconds: a write is not sent again for that.
    Away,
    /// The same, for a whole day.
    AwayForADay,
    /// The API does it; of its answer only the header comes.
    Stall,
    /// The same, and the connection breaks.
    Break,
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
            let answer = match fault {
                None | Some(Fault::Stall | Fault::Break) => client.send(request).await?,
                Some(Fault::Hang) => std::future::pending().await,
                Some(Fault::Delay) => {
                    let answer = client.send(request).await;
                    Env::system().sleep(Duration::from_secs(1)).await;
                    answer?
                }
                Some(Fault::Forbid) => refusal(403, "Forbidden", "a rule is missing"),
                Some(Fault::Conflict) => refusal(409, "Conflict", "the webhook says no"),
                Some(Fault::Unavailable) => refusal(503, "ServiceUnavailable", "not yet"),
                Some(Fault::Busy) => {
                    let words = "Too many requests, please try again later.\n";
                    let answer = Response::builder().status(429).header("retry-after", "3");
                    answer.body(Body::from(words.as_bytes().to_vec())).unwrap()
                }
                Some(fault @ (Fault::Away | Fault::AwayForADay)) => {
                    let mut answer = refusal(503, "ServiceUnavailable", "back in a moment");
                    let after = if fault == Fault::Away { "3" } else { "86400" };
                    answer.headers_mut().insert("retry-after", after.parse().unwrap());
                    answer
                }
                Some(Fault::LoseAnswer) => {
                    drop(client.send(request).await);
                    std::future::pending().await
                }
            };
            Ok::<_, homeostat::kube::Error>(answer.map(|body| match fault {
                Some(Fault::Stall) => StreamBody::new(pending()).boxed_unsync(),
                Some(Fault::Break) => {
                    let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    let broken = homeostat::kube::Error::Service(reset.into());
                    StreamBody::new(once(ready(Err(broken)))).boxed_unsync()
                }
                _ => body.boxed_unsync(),
            }))
        }
    });
    Client::new(service, client.default_namespace())
}

fn refusal(code: u16, reason: &str, message: &str) -> Response<Body> {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
        "reason": reason, "message": message,
    });
    let answer = Response::builder().status(code);
    answer.body(Body::from(body.to_string().into_bytes())).unwrap()
}

/// `client`, with everything that the chosen watches tell so much later.
pub fn late(
    client: &Client,
    env: &Env,
    delay: Duration,
    choose: impl Fn(&Request<Body>) -> bool + Send + Sync + 'static,
) -> Client {
    let (inner, env, choose) = (client.clone(), env.clone(), Arc::new(choose));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, env) = (inner.clone(), env.clone());
        let query = request.uri().query().unwrap_or_default();
        let delay = (query.contains("watch=true") && choose(&request)).then_some(delay);
        async move {
            let answer = client.send(request).await?;
            Ok::<_, homeostat::kube::Error>(answer.map(|body| {
                let frames = body.into_data_stream().then(move |part| {
                    let env = env.clone();
                    async move {
                        if let Some(delay) = delay {
                            env.sleep(delay).await;
                        }
                        part.map(http_body::Frame::data)
                    }
                });
                StreamBody::new(frames).boxed_unsync()
            }))
        }
    });
    Client::new(service, client.default_namespace())
}

/// Whether a request is `method` on something below a path with `part` in it.
pub fn is(request: &Request<Body>, method: &str, part: &str) -> bool {
    request.method() == method && request.uri().path().contains(part)
}

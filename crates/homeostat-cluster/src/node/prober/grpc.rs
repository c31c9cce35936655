//! `grpc`: a call of `grpc.health.v1.Health/Check` that is answered with SERVING, without TLS.

use std::error::Error;
use std::net::Ipv4Addr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::GRPCAction;
use prost::Message;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::USER_AGENT;

/// A health answer is a few bytes; whatever is longer is none.
const LONGEST_ANSWER: usize = 10 * 1024;
/// Before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// The code of a call that nobody there knows.
const UNIMPLEMENTED: &str = "12";
const STATES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
const SERVING: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(int32, tag = "1")]
    status: i32,
}

pub(super) async fn check(action: &GRPCAction, ip: Ipv4Addr) -> Result<(), String> {
    let Ok(port) = u16::try_from(action.port) else {
        return Err(format!("{} is not a port", action.port));
    };
    let service = action.service.clone().unwrap_or_default();
    let answer = call(ip, port, service).await;
    let status = match answer.map_err(|error| format!("error: health rpc probe failed: {error}"))? {
        Ok(answer) => answer.status,
        Err(words) => return Err(words),
    };
    if status == SERVING {
        return Ok(());
    }
    let name = usize::try_from(status).ok().and_then(|at| STATES.get(at).copied());
    let name = name.map_or_else(|| status.to_string(), str::to_owned);
    Err(format!("service unhealthy (responded with {name:?})"))
}

/// What was answered, or the words in which the call was refused.
async fn call(
    ip: Ipv4Addr,
    port: u16,
    service: String,
) -> Result<Result<Answer, String>, Box<dyn Error + Send + Sync>> {
    let stream = TcpStream::connect((ip, port)).await?;
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let request = http::Request::post(format!("http://{ip}:{port}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", USER_AGENT)
        .body(Full::new(framed(&Question { service })))?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    let said = |name| text(&trailers, name).or_else(|| text(&head.headers, name));
    let code = said("grpc-status").unwrap_or_else(|| format!("none (HTTP {})", head.status));
    if code != "0" {
        let words = said("grpc-message").unwrap_or_default();
        return Ok(Err(if code == UNIMPLEMENTED {
            format!(
                "error: this server does not implement the grpc health protocol \
                 (grpc.health.v1.Health): {words}"
            )
        } else {
            format!("error: health rpc probe failed: rpc error: code = {code} desc = {words}")
        }));
    }
    let mut bytes = body.to_bytes();
    if bytes.len() < PREFIX {
        return Err("the answer has no message".into());
    }
    bytes.advance(PREFIX);
    Ok(Ok(Answer::decode(bytes)?))
}

fn framed(message: &impl Message) -> Bytes {
    let body = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(PREFIX + body.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
    framed.put_slice(&body);
    framed.freeze()
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{HeaderValue, Response};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use tokio::net::TcpListener;

    use super::*;

    /// A server that knows the services `well`, `ill` and, for the rest, nothing.
    async fn health() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = |request: http::Request<Incoming>| async move {
            assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
            assert_eq!(request.headers()["content-type"], "application/grpc");
            let mut asked = request.into_body().collect().await.unwrap().to_bytes();
            asked.advance(PREFIX);
            let (status, code) = match Question::decode(asked).unwrap().service.as_str() {
                "well" => (SERVING, "0"),
                "ill" => (2, "0"),
                _ => (0, UNIMPLEMENTED),
            };
            let trailers: HeaderMap =
                [("grpc-status".parse().unwrap(), HeaderValue::from_static(code))]
                    .into_iter()
                    .collect();
            let frames = [Frame::data(framed(&Answer { status })), Frame::trailers(trailers)];
            let frames = futures::stream::iter(frames.map(Ok::<_, Infallible>));
            Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let serving = server.serve_connection(TokioIo::new(stream), service_fn(answer));
                tokio::spawn(async move {
                    // A probe hangs up when it has its answer.
                    let _ = serving.await;
                });
            }
        });
        port
    }

    #[tokio::test]
    async fn a_program_is_well_when_its_health_service_says_so() {
        let port = i32::from(health().await);
        let ask = async |service: &str| {
            let action = GRPCAction { port, service: Some(service.into()) };
            check(&action, Ipv4Addr::LOCALHOST).await
        };
        assert_eq!(ask("well").await, Ok(()));
        let said = ask("ill").await.unwrap_err();
        assert_eq!(said, "service unhealthy (responded with \"NOT_SERVING\")");
        let said = ask("other").await.unwrap_err();
        assert!(said.contains("does not implement the grpc health protocol"), "{said}");
    }
}

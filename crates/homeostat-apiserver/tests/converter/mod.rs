//! A conversion webhook that every test can have: v1 says `color`, v1beta1 says `colour`, and the
//! path of the request says what is wrong with the answer.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The reply to a `ConversionReview` that was posted to `path`.
pub(crate) fn reply(path: &str, review: &Value) -> (u16, String) {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let converted: Vec<Value> = objects.iter().map(|object| convert(path, object, to)).collect();
    let mut reply = json!({
        "kind": "ConversionReview", "apiVersion": review["apiVersion"],
        "response": {
            "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted,
        },
    });
    match path {
        "/fails" => reply["response"]["result"] = json!({"status": "Failure", "message": "no way"}),
        "/fails-silently" => reply["response"]["result"] = json!({"status": "Failure"}),
        "/no-objects" => reply["response"]["convertedObjects"] = json!([]),
        "/no-response" => reply["response"] = Value::Null,
        "/wrong-review" => reply["apiVersion"] = "apiextensions.k8s.io/v1beta1".into(),
        "/not-found" => return (404, "nothing here".to_owned()),
        _ => {}
    }
    (200, reply.to_string())
}

fn convert(path: &str, object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = to.into();
    let (from, into) = if to.ends_with("/v1") { ("colour", "color") } else { ("color", "colour") };
    for part in ["spec", "status"] {
        let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) else { continue };
        if let Some(value) = part.remove(from) {
            part.insert(into.to_owned(), value);
        }
    }
    let metadata = &mut object["metadata"];
    match path {
        "/another-name" => metadata["name"] = "other".into(),
        "/another-namespace" => metadata["namespace"] = "other".into(),
        "/another-kind" => object["kind"] = "Other".into(),
        "/another-version" => object["apiVersion"] = "example.com/v7".into(),
        "/labels" => {
            metadata["labels"] = json!({"by": "webhook"});
            metadata["annotations"] = json!({"by": "webhook"});
            metadata["finalizers"] = json!(["example.com/stays-out"]);
        }
        "/bad-labels" => metadata["labels"] = json!({"a": "b c"}),
        "/number-labels" => metadata["labels"] = json!({"a": 1}),
        "/no-metadata" => drop(object.as_object_mut().unwrap().remove("metadata")),
        _ => {}
    }
    object
}

/// Where a served webhook is, and the certificate of its authority in base64.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) ca: String,
}

/// Serves the webhook over HTTPS for as long as the process lives.
pub(crate) async fn serve() -> Served {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(async |request: http::Request<hyper::body::Incoming>| {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let (code, text) = reply(&path, &serde_json::from_slice(&body).unwrap());
                    let response = http::Response::builder()
                        .status(code)
                        .header("content-type", "application/json");
                    response.body(Full::new(Bytes::from(text)))
                });
                let http = hyper::server::conn::http1::Builder::new();
                drop(http.serve_connection(TokioIo::new(stream), answer).await);
            });
        }
    });
    Served { url, ca: STANDARD.encode(certificate.pem()) }
}

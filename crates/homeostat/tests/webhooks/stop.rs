//! When the server stops: after the answers that are being given.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use homeostat::webhook::{Answer, Certificate, Review, Webhooks, validate_path};
use homeostat::{Manager, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::caller::ask;
use super::on_the_wire;

/// Asks whether a config map may be made.
async fn ask_once(address: SocketAddr, certificate: String) -> String {
    let question = json!({ "request": { "uid": "7", "operation": "CREATE" } });
    ask(address, certificate.as_bytes(), &validate_path::<ConfigMap>(), &question).await
}

#[test]
fn a_stop_waits_for_the_answers_that_are_being_given() {
    on_the_wire(async |cluster| {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let (asked, may_answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, gate) = (asked.clone(), may_answer.clone());
        let thinks = move |_: Review<ConfigMap>| {
            let (tell, gate) = (tell.clone(), gate.clone());
            async move {
                tell.notify_one();
                gate.notified().await;
                Result::Ok(Answer::allow())
            }
        };
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::pem(&*certificate, key));
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let manager = manager.webhooks(webhooks.validates(thinks));
        let running = manager.start().await.unwrap();
        let address = running.webhook_address().unwrap();
        let question = tokio::spawn(ask_once(address, certificate));
        asked.notified().await;
        let mut stopping = tokio::spawn(running.stop());
        let early = cluster.env.timeout(Duration::from_millis(300), &mut stopping).await;
        assert!(early.is_err(), "it did not wait: {early:?}");
        assert!(TcpStream::connect(address).await.is_err(), "nobody new is answered");
        may_answer.notify_one();
        let answer = question.await.unwrap();
        assert!(answer.contains("\"allowed\":true"), "{answer}");
        stopping.await.unwrap().unwrap();
    });
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for_longer_than_the_grace() {
    on_the_wire(async |cluster| {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let asked = Arc::new(Notify::new());
        let tell = asked.clone();
        let never = move |_: Review<ConfigMap>| {
            tell.notify_one();
            std::future::pending::<Result<Answer>>()
        };
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::pem(&*certificate, key));
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let manager = manager.webhooks(webhooks.validates(never)).grace(Duration::from_secs(1));
        let running = manager.start().await.unwrap();
        let address = running.webhook_address().unwrap();
        let question = tokio::spawn(ask_once(address, certificate));
        asked.notified().await;
        let stopped = cluster.env.timeout(Duration::from_secs(20), running.stop()).await;
        let error = stopped.unwrap().unwrap_err().to_string();
        assert_eq!(error, "answers of webhooks did not finish within 1s: dropped");
        assert!(question.await.is_err(), "its connection ended");
    });
}

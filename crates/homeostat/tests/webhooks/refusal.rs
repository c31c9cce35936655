//! A server that signs for itself and may not tell everybody, or cannot yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use homeostat::kube::Client;
use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::kube::client::Body;
use homeostat::webhook::{Certificate, Webhooks};
use homeostat::{Env, Manager};
use homeostat_testing::{object, on_cluster};
use http::{Request, Response};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

use super::caller::connect;
use super::{asking, bundle_other_than, on_the_wire, own_certificate, untrusting};

/// `client`, some of whose requests are forbidden.
fn refused(
    client: &Client,
    is_refused: impl Fn(&Request<Body>) -> bool + Clone + Send + 'static,
) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, is_refused) = (inner.clone(), is_refused(&request));
        async move {
            if is_refused {
                let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure",
                    "code": 403, "reason": "Forbidden", "message": "a rule is missing" });
                let body = Body::from(status.to_string().into_bytes());
                return Ok(Response::builder().status(403).body(body).unwrap());
            }
            inner.send(request).await
        }
    });
    Client::new(service, client.default_namespace())
}

#[test]
fn a_configuration_that_cannot_be_told_holds_back_neither_the_others_nor_the_renewal() {
    on_the_wire(async |cluster| {
        let env = Env::system();
        let params = PostParams::default();
        let nowhere = "https://127.0.0.1:1/";
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
        let mut wish = asking(&cluster, nowhere, "");
        wish["webhooks"][0]["clientConfig"].as_object_mut().unwrap().shift_remove("caBundle");
        mutating.create(&params, &object(wish)).await.unwrap();
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
        validating.create(&params, &untrusting(&cluster, nowhere)).await.unwrap();

        let own = own_certificate(&cluster);
        let own = own.mutating(&cluster.namespace).validating(&cluster.namespace);
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::self_signed(own));
        let client = refused(&cluster.client, |request| {
            let path = request.uri().path();
            request.method() == "PUT" && path.contains("/mutatingwebhookconfigurations/")
        });
        let manager = Manager::new(client, env.clone());
        let running = manager.webhooks(webhooks).start().await.unwrap();
        let address = running.webhook_address().unwrap();
        let told = bundle_other_than(&cluster, None);
        let bundle = env.timeout(Duration::from_secs(20), told).await.expect("it was not told");

        // Somebody spoils the certificate: another is signed by the same authority.
        let shown = async || {
            let stream = connect(address, &bundle).await.unwrap();
            stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
        };
        let before = shown().await;
        let spoilt = json!({ "stringData": { "tls.crt": "spoilt" } });
        cluster.patch::<Secret>("webhook", spoilt).await;
        let renewed = async {
            loop {
                let now = shown().await;
                if now != before {
                    return now;
                }
                env.sleep(Duration::from_millis(50)).await;
            }
        };
        let after = env.timeout(Duration::from_secs(20), renewed).await.expect("not renewed");
        let kept = cluster.get::<Secret>("webhook").await.unwrap().data.unwrap();
        let kept = CertificateDer::from_pem_slice(&kept["tls.crt"].0).unwrap();
        assert_eq!(after, kept);
        let words = running.health().to_string();
        assert!(words.contains("not ok webhooks: "), "{words}");
        assert!(words.contains("a rule is missing"), "{words}");
        running.stop().await.unwrap();
        mutating.delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
        validating.delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
    });
}

#[test]
fn who_may_not_follow_the_secret_is_not_ready_and_says_why() {
    on_cluster(async |cluster| {
        let is_forbidden = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&is_forbidden);
        // It may be read by its name, but neither listed nor watched.
        let client = refused(&cluster.client, move |request| {
            let follows = request.method() == "GET" && request.uri().path().ends_with("/secrets");
            follows && flag.load(Ordering::SeqCst)
        });
        let own = Certificate::self_signed(own_certificate(&cluster));
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), own);
        let manager = Manager::new(client, cluster.env.clone()).webhooks(webhooks);
        let running = manager.start().await.unwrap();
        let health = async |is_ready: bool| {
            while running.health().is_ready() != is_ready {
                cluster.env.sleep(Duration::from_millis(50)).await;
            }
            running.health().to_string()
        };
        let limit = Duration::from_secs(120);
        let words = cluster.env.timeout(limit, health(false)).await.expect("it is ready");
        assert!(words.contains("not ok webhooks: not followed: Secret: "), "{words}");
        assert!(words.contains("a rule is missing"), "{words}");
        is_forbidden.store(false, Ordering::SeqCst);
        cluster.env.timeout(limit, health(true)).await.expect("it is not ready");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_server_whose_papers_are_kept_by_an_api_that_is_away_begins_without_and_says_so() {
    on_the_wire(async |cluster| {
        let is_away = Arc::new(AtomicBool::new(true));
        let (flag, inner) = (Arc::clone(&is_away), cluster.client.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, is_away) = (inner.clone(), flag.load(Ordering::SeqCst));
            async move {
                if is_away {
                    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure",
                        "code": 503, "reason": "ServiceUnavailable", "message": "not yet" });
                    let body = Body::from(status.to_string().into_bytes());
                    return Ok(Response::builder().status(503).body(body).unwrap());
                }
                inner.send(request).await
            }
        });
        let client = Client::new(service, cluster.client.default_namespace());
        let own = Certificate::self_signed(own_certificate(&cluster));
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), own);
        let env = Env::system();
        let manager = Manager::new(client, env.clone()).webhooks(webhooks);
        let running = manager.start().await.unwrap();
        let words = running.health().to_string();
        assert!(words.contains("not ok webhooks: not yet"), "{words}");

        is_away.store(false, Ordering::SeqCst);
        let ready = async {
            while !running.health().is_ready() {
                env.sleep(Duration::from_millis(50)).await;
            }
        };
        env.timeout(Duration::from_secs(40), ready).await.expect("it has papers");
        let kept = cluster.get::<Secret>("webhook").await.unwrap().data.unwrap();
        connect(running.webhook_address().unwrap(), &kept["ca.crt"].0).await.unwrap();
        running.stop().await.unwrap();
    });
}

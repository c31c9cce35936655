//! Webhooks of a manager, asked by an API over TLS. A binary of its own: sockets are not on virtual
//! time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::time::Duration;

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::webhook::{Answer, Certificate, Review, Webhooks, mutate_path, validate_path};
use homeostat::{Manager, Result};
use homeostat_testing::{KUBECONFIG, TestCluster, object, on_cluster};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

/// On the real cluster, or on the embedded one and the wall clock.
fn on_the_wire<F: AsyncFnOnce(TestCluster)>(test: F) {
    if std::env::var_os(KUBECONFIG).is_some() {
        return on_cluster(test);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async { test(TestCluster::embedded(1).await).await });
}

fn config(name: &str, value: &str) -> ConfigMap {
    object(json!({ "metadata": { "name": name }, "data": { "value": value } }))
}

async fn label(review: Review<ConfigMap>) -> Result<Answer> {
    let Some(mut config) = review.object else { return Ok(Answer::allow()) };
    config.labels_mut().insert("labelled".into(), "yes".into());
    Answer::change(&config)
}

async fn nothing_bad(review: Review<ConfigMap>) -> Result<Answer> {
    let value = review.object.and_then(|config| config.data?.get("value").cloned());
    match value.as_deref() {
        Some("bad") => Ok(Answer::deny("nothing bad in here")),
        Some("panic") => panic!("oh"),
        _ => Ok(Answer::allow()),
    }
}

/// A configuration that asks `url` about config maps in the test's namespace.
fn asking(cluster: &TestCluster, url: &str, authority: &str) -> Value {
    use base64::Engine as _;
    json!({
        "metadata": { "name": cluster.namespace },
        "webhooks": [{
            "name": "configs.test.homeostat.dev",
            "clientConfig": {
                "url": url,
                "caBundle": base64::engine::general_purpose::STANDARD.encode(authority),
            },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE"],
            }],
            "namespaceSelector": {
                "matchLabels": { "kubernetes.io/metadata.name": cluster.namespace },
            },
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
        }],
    })
}

#[test]
fn an_api_asks_over_tls_and_does_as_it_is_told() {
    on_the_wire(async |cluster| {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::pem(&*certificate, key));
        let webhooks = webhooks.mutates(label).validates(nothing_bad);
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let running = manager.webhooks(webhooks).start().await.unwrap();
        let address = running.webhook_address().unwrap();
        let url = |path: String| format!("https://{address}{path}");

        let mutating: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
        let wish = asking(&cluster, &url(mutate_path::<ConfigMap>()), &certificate);
        mutating.create(&PostParams::default(), &object(wish)).await.unwrap();
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
        let wish = asking(&cluster, &url(validate_path::<ConfigMap>()), &certificate);
        validating.create(&PostParams::default(), &object(wish)).await.unwrap();

        // A real API takes notice of its configurations a moment later.
        let api = cluster.api::<ConfigMap>();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let refused = async {
            loop {
                match api.create(&dry, &config("probe", "bad")).await {
                    Err(error) => return error.to_string(),
                    Ok(_) => cluster.env.sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let words = cluster.env.timeout(Duration::from_secs(60), refused).await.unwrap();
        assert!(words.contains("nothing bad in here"), "{words}");
        let good = cluster.create(&config("good", "fine")).await;
        assert_eq!(good.labels().get("labelled").map(String::as_str), Some("yes"));
        // No answer, and the configuration's failure policy is to refuse then.
        let error = api.create(&dry, &config("probe", "panic")).await.unwrap_err().to_string();
        assert!(error.contains("failed calling webhook"), "{error}");

        let metrics = running.metrics();
        for (path, code) in [("/mutate--v1-configmap", 200), ("/validate--v1-configmap", 500)] {
            let line = format!(
                "controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"{code}\"}}"
            );
            assert!(metrics.contains(&line), "{line} is missing:\n{metrics}");
        }
        assert!(running.health().to_string().contains("ok webhooks\n"));
        mutating.delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
        validating.delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
        running.stop().await.unwrap();
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    });
}

#[test]
fn a_certificate_that_cannot_be_read_is_said_at_the_start() {
    on_the_wire(async |cluster| {
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::folder("/no/such/folder"));
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let error = manager.webhooks(webhooks).start().await.unwrap_err();
        assert!(error.to_string().contains("/no/such/folder/tls.crt cannot be read"), "{error}");
    });
}

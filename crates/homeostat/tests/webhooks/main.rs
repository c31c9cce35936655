//! Webhooks of a manager, asked by an API over TLS. A binary of its own: sockets are not on virtual
//! time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod caller;
mod fight;
mod refusal;
mod restart;
mod stop;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::cache::{Caches, Scope};
use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::kube::{CustomResource, CustomResourceExt, ResourceExt};
use homeostat::webhook::{
    Answer, CONVERT_PATH, Certificate, Conversion, Review, SelfSigned, Webhooks, mutate_path,
    validate_path,
};
use homeostat::{Context, Controller, Env, Key, Kind, Manager, Outcome, Result, crd};
use homeostat_testing::{KUBECONFIG, TestCluster, object, on_cluster};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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

/// A configuration that asks `url`, and trusts nobody yet.
fn untrusting(cluster: &TestCluster, url: &str) -> ValidatingWebhookConfiguration {
    let mut wish = asking(cluster, url, "");
    wish["webhooks"][0]["clientConfig"].as_object_mut().unwrap().shift_remove("caBundle");
    object(wish)
}

/// A definition of one version whose objects `url` converts.
fn converted_by(name: &str, url: &str) -> Value {
    let (plural, group) = name.split_once('.').unwrap();
    json!({ "metadata": { "name": name }, "spec": {
        "group": group, "scope": "Namespaced",
        "names": { "plural": plural, "singular": "thing", "kind": "Thing" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
            "openAPIV3Schema": { "type": "object" } } }],
        "conversion": { "strategy": "Webhook", "webhook": {
            "clientConfig": { "url": url }, "conversionReviewVersions": ["v1"] } },
    } })
}

fn own_certificate(cluster: &TestCluster) -> SelfSigned {
    SelfSigned::in_secret(&cluster.namespace, "webhook").host("127.0.0.1")
}

#[test]
fn a_server_that_signs_for_itself_is_trusted_by_those_it_tells() {
    on_the_wire(async |cluster| {
        // The API looks at the wall clock, so the certificate must too.
        let env = Env::system();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        let crd = format!("things.{}.homeostat.dev", cluster.namespace);
        let own = own_certificate(&cluster).validating(&cluster.namespace).converting(&crd);
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::self_signed(own));
        let manager = Manager::new(cluster.client.clone(), env.clone());
        let running = manager.webhooks(webhooks.validates(nothing_bad)).start().await.unwrap();
        let url = running.webhook_address().unwrap();
        let url = format!("https://{url}{}", validate_path::<ConfigMap>());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
        let wish = untrusting(&cluster, &url);
        validating.create(&PostParams::default(), &wish).await.unwrap();
        let wish = object(converted_by(&crd, &url));
        definitions.create(&PostParams::default(), &wish).await.unwrap();

        let api = cluster.api::<ConfigMap>();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let denied = async || loop {
            match api.create(&dry, &config("probe", "bad")).await {
                Err(error) if error.to_string().contains("nothing bad in here") => return,
                _ => env.sleep(Duration::from_millis(50)).await,
            }
        };
        env.timeout(Duration::from_secs(60), denied()).await.unwrap();
        let converted = async || loop {
            let conversion = definitions.get(&crd).await.unwrap().spec.conversion.unwrap();
            match conversion.webhook.unwrap().client_config.unwrap().ca_bundle {
                Some(bundle) => return bundle.0,
                None => env.sleep(Duration::from_millis(50)).await,
            }
        };
        let trusted = env.timeout(Duration::from_secs(60), converted()).await.unwrap();
        let secret = cluster.get::<Secret>("webhook").await.unwrap();
        assert_eq!(secret.data.as_ref().unwrap()["ca.crt"].0, trusted);
        definitions.delete(&crd, &DeleteParams::default()).await.unwrap();
        assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));

        // Another replica uses the same papers.
        let own = own_certificate(&cluster).validating(&cluster.namespace);
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::self_signed(own));
        let manager = Manager::new(cluster.client.clone(), env.clone());
        let second = manager.webhooks(webhooks).start().await.unwrap();
        assert_eq!(cluster.get::<Secret>("webhook").await.unwrap().data, secret.data);
        second.stop().await.unwrap();
        validating.delete(&cluster.namespace, &DeleteParams::default()).await.unwrap();
        running.stop().await.unwrap();
    });
}

/// The bundle of the configuration's first webhook, once it differs from `old`.
async fn bundle_other_than(cluster: &TestCluster, old: Option<&Vec<u8>>) -> Vec<u8> {
    let name = Key::cluster(&*cluster.namespace);
    let caches = Caches::new(cluster.client.clone(), cluster.env.clone());
    let kind = Kind::of::<ValidatingWebhookConfiguration>();
    let informer = caches.informer(kind, Scope::object(&name));
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    informer.on_event(move |delta| drop(told.send(delta.object().clone())));
    informer.start();
    loop {
        let entry = heard.recv().await.unwrap();
        let seen: ValidatingWebhookConfiguration = entry.decode().unwrap();
        let bundle = seen.webhooks.unwrap()[0].client_config.ca_bundle.clone().map(|b| b.0);
        if let Some(bundle) = bundle.filter(|bundle| Some(bundle) != old) {
            return bundle;
        }
    }
}

#[test]
fn certificates_are_renewed_in_time_and_what_is_taken_out_is_put_back() {
    if std::env::var_os(KUBECONFIG).is_some() {
        return; // A day passes.
    }
    on_cluster(async |cluster| {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
        let wish = untrusting(&cluster, "https://127.0.0.1:1/");
        validating.create(&PostParams::default(), &wish).await.unwrap();
        let own = own_certificate(&cluster).validating(&cluster.namespace);
        let own = own.lifetime(Duration::from_secs(6 * 3600));
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::self_signed(own));
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let running = manager.webhooks(webhooks).start().await.unwrap();
        let first = bundle_other_than(&cluster, None).await;

        let mut without = validating.get(&cluster.namespace).await.unwrap();
        without.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
        validating.replace(&cluster.namespace, &PostParams::default(), &without).await.unwrap();
        assert_eq!(bundle_other_than(&cluster, None).await, first);

        let papers = async || cluster.get::<Secret>("webhook").await.unwrap().data.unwrap();
        let before = papers().await;
        cluster.env.sleep(Duration::from_secs(4 * 3600 + 60)).await;
        let after = papers().await;
        assert_ne!(after["tls.crt"], before["tls.crt"], "a third of its life is left");
        assert_eq!(after["ca.crt"], before["ca.crt"]);
        // The authority's turn: both are trusted, for a replica may show either's.
        let second = bundle_other_than(&cluster, Some(&first)).await;
        let (first, second) =
            (String::from_utf8(first).unwrap(), String::from_utf8(second).unwrap());
        assert!(second.contains(first.trim_end()) && second.len() > first.len());
        assert!(running.health().to_string().contains("ok webhooks\n"), "{}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_secret_that_cannot_be_written_is_said_at_the_start() {
    on_the_wire(async |cluster| {
        let own = SelfSigned::in_secret("no-such-namespace", "webhook").host("127.0.0.1");
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::self_signed(own));
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let error = manager.webhooks(webhooks).start().await.unwrap_err();
        assert!(error.chain().contains("no-such-namespace"), "{error:?}");
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "order.homeostat.dev", version = "v1", kind = "Old", namespaced)]
struct OldSpec {
    size: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "order.homeostat.dev", version = "v2", kind = "Old", root = "Newer", namespaced)]
struct NewSpec {
    centimetres: u32,
}

/// A definition of both versions, whose objects `url` converts.
fn of_two_versions(url: &str, authority: &str) -> Value {
    use base64::Engine as _;
    let bundle = base64::engine::general_purpose::STANDARD.encode(authority);
    let version = |name: &str| {
        json!({ "name": name, "served": true, "storage": name == "v1", "schema": { "openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true } } })
    };
    json!({ "metadata": { "name": Old::crd_name() }, "spec": {
        "group": "order.homeostat.dev", "scope": "Namespaced",
        "names": { "plural": "olds", "singular": "old", "kind": "Old" },
        "versions": [version("v1"), version("v2")],
        "conversion": { "strategy": "Webhook", "webhook": {
            "clientConfig": { "url": url, "caBundle": bundle }, "conversionReviewVersions": ["v1"],
        } },
    } })
}

#[test]
fn a_manager_that_converts_a_kind_itself_can_fill_its_cache_of_it() {
    on_the_wire(async |cluster| {
        let names = ["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let url = format!("https://{address}{CONVERT_PATH}");
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        let wish: CustomResourceDefinition = object(of_two_versions(&url, &certificate));
        definitions.create(&PostParams::default(), &wish).await.unwrap();
        let first = only_first(&wish);
        let served = crd::wait_until_served(&cluster.client, &cluster.env, &first);
        cluster.env.timeout(Duration::from_secs(60), served).await.unwrap().unwrap();
        cluster.create(&Old::new("a", OldSpec { size: "7".to_owned() })).await;

        let conversion = Conversion::<Newer>::new().version(
            |old: &Old| {
                let centimetres = old.spec.size.parse().map_err(homeostat::Error::terminal)?;
                Ok(Newer::new(&old.name_any(), NewSpec { centimetres }))
            },
            |new: &Newer| {
                let size = new.spec.centimetres.to_string();
                Ok(Old::new(&new.name_any(), OldSpec { size }))
            },
        );
        let webhooks = Webhooks::new(address, Certificate::pem(&*certificate, key));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let look = move |new: Arc<Newer>, _: Context<Newer>| {
            log.lock().unwrap().push(new.spec.centimetres);
            async { Ok(Outcome::Done) }
        };
        let controller = Controller::new(look).namespace(&cluster.namespace);
        let manager = Manager::new(cluster.client.clone(), cluster.env.clone());
        let manager = manager.webhooks(webhooks.converts(conversion)).with(controller);
        let running = manager.start().await.unwrap();
        cluster.runs(&running.journal(), 1).await;
        assert_eq!(*seen.lock().unwrap(), [7]);
        let never = "homeostat_source_failures_total{kind=\"Old.order.homeostat.dev\"} 0\n";
        let metrics = running.metrics();
        assert!(metrics.contains(never), "its first list was answered by itself: {metrics}");
        running.stop().await.unwrap();
        definitions.delete(Old::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

/// The version that needs nobody to convert it.
fn only_first(definition: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut first = definition.clone();
    first.spec.versions.truncate(1);
    first
}

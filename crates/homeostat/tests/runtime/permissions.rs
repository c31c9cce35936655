//! Real rules instead of injected refusals: a user of the cluster who may do this and not that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::kube::client::Body;
use homeostat::kube::{Client, CustomResource, CustomResourceExt, ResourceExt};
use homeostat::{Context, Controller, EventType, Lease, Manager, Namespaces, Outcome, Result, crd};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::{Cluster, config, endings, idle, object, on_cluster, secret};
use crate::faults::{Fault, faulty, is};
use crate::spans::listen;

/// The client of a user who has no rights but those of [`allow`].
fn somebody(cluster: &Cluster) -> Client {
    let (inner, user) = (cluster.client.clone(), user(cluster));
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let client = inner.clone();
        let user = HeaderValue::from_str(&user).unwrap();
        request.headers_mut().insert("impersonate-user", user);
        async move { client.send(request).await }
    });
    Client::new(service, cluster.client.default_namespace())
}

fn user(cluster: &Cluster) -> String {
    format!("user-of-{}", cluster.namespace)
}

/// Allows the user something in a namespace.
async fn allow(cluster: &Cluster, namespace: &str, name: &str, rules: Value) {
    let params = PostParams::default();
    let role: Role = object(json!({ "metadata": { "name": name }, "rules": rules }));
    let roles: Api<Role> = Api::namespaced(cluster.client.clone(), namespace);
    roles.create(&params, &role).await.unwrap();
    let (group, user) = ("rbac.authorization.k8s.io", user(cluster));
    let binding: RoleBinding = object(json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": name },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    }));
    let bindings: Api<RoleBinding> = Api::namespaced(cluster.client.clone(), namespace);
    bindings.create(&params, &binding).await.unwrap();
}

/// Makes the user an administrator, until the binding of the same name is deleted.
async fn allow_everything(cluster: &Cluster) {
    let (group, name) = ("rbac.authorization.k8s.io", user(cluster));
    let binding: ClusterRoleBinding = object(json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": name }],
    }));
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client.clone());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

fn reading(resources: &[&str]) -> Value {
    json!([{ "apiGroups": [""], "resources": resources, "verbs": ["get", "list", "watch"] }])
}

#[test]
fn following_one_object_takes_the_permission_for_that_name_alone() {
    on_cluster(async |cluster| {
        async fn quote(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let named = config.data.as_ref().unwrap()["value"].clone();
            let found = ctx.follow::<Secret>(&named).await?;
            assert!(found.is_some());
            Ok(Outcome::Done)
        }
        for name in ["mine", "theirs"] {
            cluster.create(&secret(name, "1")).await;
            cluster.create(&config(name, name)).await;
        }
        allow(&cluster, &cluster.namespace, "configs", reading(&["configmaps"])).await;
        let mut one = reading(&["secrets"]);
        one[0]["resourceNames"] = json!(["mine"]);
        allow(&cluster, &cluster.namespace, "one", one).await;
        let manager = Manager::new(somebody(&cluster), cluster.env.clone());
        let controller = Controller::new(quote).namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        let journal = running.journal();
        let of = |name: &'static str| {
            cluster.until_recorded(&journal, move |all| {
                all.iter().any(|record| record.key.name() == name)
            })
        };
        let records = of("mine").await;
        let mine = records.iter().find(|record| record.key.name() == "mine").unwrap();
        assert_eq!(mine.result.to_string(), "done");
        let records = of("theirs").await;
        let theirs = records.iter().find(|record| record.key.name() == "theirs").unwrap();
        let said = theirs.result.to_string();
        assert!(said.starts_with("failed: ") && said.contains("not allowed"), "{said}");
        assert!(running.health().is_ready(), "one object's trouble: {}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_namespace_without_rules_holds_up_no_other_and_joins_when_they_come() {
    on_cluster(async |cluster| {
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let wish = object::<Namespace>(json!({ "metadata": { "generateName": "test-" } }));
        let closed = namespaces.create(&PostParams::default(), &wish).await.unwrap().name_any();
        cluster.create(&config("open", "1")).await;
        let there: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &closed);
        there.create(&PostParams::default(), &config("closed", "1")).await.unwrap();
        allow(&cluster, &cluster.namespace, "configs", reading(&["configmaps"])).await;

        let both = Namespaces::new([&*cluster.namespace, &*closed]);
        let manager = Manager::new(somebody(&cluster), cluster.env.clone());
        let controller = Controller::new(idle::<ConfigMap>).namespaces(&both);
        let running = cluster.start_manager(manager.with(controller)).await;
        let journal = running.journal();
        let named = |name: &'static str| {
            cluster.until_recorded(&journal, move |all| {
                all.iter().any(|record| record.key.name() == name)
            })
        };
        named("open").await;
        let words = running.health().to_string();
        let refused = format!("User \"{}\" cannot", user(&cluster));
        assert!(!running.health().is_ready() && words.contains(&refused), "{words}");
        allow(&cluster, &closed, "configs", reading(&["configmaps"])).await;
        named("closed").await;
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_lease_and_events_without_rules_are_said_and_come_with_them() {
    on_cluster(async |cluster| {
        async fn tell(_: Arc<ConfigMap>, context: Context<ConfigMap>) -> Result<Outcome> {
            context.event(EventType::Normal, "Told", "once");
            Ok(Outcome::Done)
        }
        cluster.create(&config("a", "1")).await;
        allow(&cluster, &cluster.namespace, "configs", reading(&["configmaps"])).await;
        let manager = Manager::new(somebody(&cluster), cluster.env.clone());
        let [duration, deadline, retry] = [3000, 2000, 500].map(std::time::Duration::from_millis);
        let lease = Lease::new("one").namespace(&cluster.namespace);
        let manager = manager.lease(lease.terms(duration, deadline, retry));
        let controller = Controller::new(tell).namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        cluster.env.sleep(2 * duration).await;
        let words = running.health().to_string();
        assert!(words.contains("not ok lease one") && words.contains("cannot get"), "{words}");
        let verbs = json!(["get", "create", "patch"]);
        let rules = json!([{
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs,
        }]);
        allow(&cluster, &cluster.namespace, "lease", rules).await;
        running.wait_until_leading().await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done", "an event that may not be written is no failure");
        let lost = async {
            while running.recorder().dropped() == 0 {
                cluster.env.sleep(retry).await;
            }
        };
        cluster.env.timeout(10 * duration, lost).await.unwrap();
        assert!(running.metrics().contains("homeostat_events_dropped_total 1"));
        running.stop().await.unwrap();
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "permits.homeostat.dev", version = "v1", kind = "Permit", namespaced)]
struct PermitSpec {}

#[test]
fn a_definition_that_one_may_not_install_is_waited_for_and_used_as_others_install_it() {
    on_cluster(async |cluster| {
        let (capture, _listening) = listen();
        let mut rules = reading(&["permits"]);
        rules[0]["apiGroups"] = json!(["permits.homeostat.dev"]);
        allow(&cluster, &cluster.namespace, "permits", rules).await;
        let start = || {
            let manager = Manager::new(somebody(&cluster), cluster.env.clone());
            let controller = Controller::new(idle::<Permit>).namespace(&cluster.namespace);
            cluster.start_manager(manager.with_crd::<Permit>().with(controller))
        };
        let said = |words: &str| {
            let about = |line: &&String| line.contains("permits.permits.homeostat.dev");
            capture.lines().iter().filter(about).filter(|line| line.contains(words)).count()
        };

        let running = start().await;
        let words = running.health().to_string();
        assert!(words.starts_with("not ok source Permit.permits.homeostat.dev: "), "{words}");
        let refused = "this process may not install permits.permits.homeostat.dev: ";
        assert!(words.contains(refused) && words.contains("cannot patch"), "{words}");
        assert_eq!((said("it is waited for"), said("as it is installed")), (1, 0));

        crd::install::<Permit>(&cluster.client).await.unwrap();
        crd::wait_until_served(&cluster.client, &cluster.env, &Permit::crd()).await.unwrap();
        cluster.create(&Permit::new("a", PermitSpec {})).await;
        cluster.runs(&running.journal(), 1).await;
        let words = running.health().to_string();
        assert_eq!(words, "ok source Permit.permits.homeostat.dev\n");
        running.stop().await.unwrap();

        let running = start().await;
        assert!(running.health().is_ready(), "{}", running.health());
        assert_eq!((said("it is waited for"), said("as it is installed")), (1, 1));
        running.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Permit::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

/// A kind that is nobody else's: a definition is the whole cluster's.
#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "permits.homeostat.dev", version = "v1", kind = "Licence", namespaced)]
struct LicenceSpec {}

#[test]
fn who_is_allowed_to_install_a_definition_later_does_so_without_a_new_start() {
    on_cluster(async |cluster| {
        let manager = Manager::new(somebody(&cluster), cluster.env.clone());
        let controller = Controller::new(idle::<Licence>).namespace(&cluster.namespace);
        let manager = manager.with_crd::<Licence>().with(controller);
        let running = cluster.start_manager(manager).await;
        assert!(running.health().to_string().contains("may not install"), "{}", running.health());

        allow_everything(&cluster).await;
        running.caches().informers().remove(0).wait_for_sync().await;
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
        let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client.clone());
        bindings.delete(&user(&cluster), &DeleteParams::default()).await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Licence::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "permits.homeostat.dev", version = "v1", kind = "Stamp", namespaced)]
struct StampSpec {}

#[test]
fn who_was_refused_a_definition_never_replaces_the_one_that_others_installed_since() {
    on_cluster(async |cluster| {
        let (capture, _listening) = listen();
        let said = |words: &str| {
            let about = |line: &&String| line.contains("stamps.permits.homeostat.dev");
            capture.lines().iter().filter(about).filter(|line| line.contains(words)).count()
        };
        let start = || {
            let manager = Manager::new(somebody(&cluster), cluster.env.clone());
            cluster.start_manager(manager.with_crd::<Stamp>())
        };
        let early = start().await;
        // What a later version of the program asks for.
        let mut newer = Stamp::crd();
        newer.spec.names.short_names = Some(vec!["postage".to_owned()]);
        crd::apply(&cluster.client, newer.clone()).await.unwrap();
        crd::wait_until_served(&cluster.client, &cluster.env, &newer).await.unwrap();
        let late = start().await;
        assert_eq!((said("it is waited for"), said("as it is installed")), (1, 1));

        allow_everything(&cluster).await;
        let ended = async {
            while said("installed by somebody else") + said("installed after all") == 0 {
                cluster.env.sleep(std::time::Duration::from_millis(100)).await;
            }
            // Longer than who may not waits for its first try.
            cluster.env.sleep(std::time::Duration::from_secs(6)).await;
        };
        let limit = std::time::Duration::from_secs(60);
        cluster.env.timeout(limit, ended).await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        let kept = definitions.get(Stamp::crd_name()).await.unwrap();
        assert_eq!(kept.spec.names.short_names, newer.spec.names.short_names);
        early.stop().await.unwrap();
        late.stop().await.unwrap();
        let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client.clone());
        bindings.delete(&user(&cluster), &DeleteParams::default()).await.unwrap();
        definitions.delete(Stamp::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "permits.homeostat.dev", version = "v1", kind = "Seal", namespaced)]
struct SealSpec {}

/// `client`, where a definition that is applied for the first time has no status yet.
fn slowly_established(client: &Client) -> Client {
    let (inner, asked) = (client.clone(), Arc::new(AtomicBool::new(false)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_apply = is(&request, "PATCH", "/customresourcedefinitions/");
        let is_first = is_apply && !asked.swap(true, Ordering::SeqCst);
        let inner = inner.clone();
        async move {
            let (head, body) = inner.send(request).await?.into_parts();
            if !is_first {
                return Ok::<_, homeostat::kube::Error>(Response::from_parts(head, body));
            }
            let body = body.collect().await?.to_bytes();
            let mut object: Value = serde_json::from_slice(&body).unwrap();
            object.as_object_mut().unwrap().remove("status");
            let length = object.to_string().len().into();
            let mut answer =
                Response::from_parts(head, Body::from(object.to_string().into_bytes()));
            answer.headers_mut().insert("content-length", length);
            Ok(answer)
        }
    });
    Client::new(service, client.default_namespace())
}

#[test]
fn a_definition_that_one_may_install_and_not_look_at_is_established_and_used() {
    on_cluster(async |cluster| {
        let (capture, _listening) = listen();
        let client = slowly_established(&cluster.client);
        let client = faulty(&client, |request| {
            is(request, "GET", "/customresourcedefinitions").then_some(Fault::Forbid)
        });
        let manager = Manager::new(client, cluster.env.clone()).with_crd::<Seal>();
        let controller = Controller::new(idle::<Seal>).namespace(&cluster.namespace);
        let running = cluster.start_manager(manager.with(controller)).await;
        assert!(running.health().is_ready(), "{}", running.health());
        let may_not = |line: &String| line.contains("this process may not");
        assert!(!capture.lines().iter().any(may_not), "{:?}", capture.lines());
        running.stop().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        definitions.delete(Seal::crd_name(), &DeleteParams::default()).await.unwrap();
    });
}

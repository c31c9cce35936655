//! A controller that looks after several namespaces, which come and go while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::cache::{Caches, Scope};
use homeostat::journal::ReadFrom;
use homeostat::kube::api::{Api, DeleteParams, PostParams};
use homeostat::kube::client::Body;
use homeostat::kube::{Client, Resource, ResourceExt};
use homeostat::trigger::EventKind;
use homeostat::{Context, Controller, Key, Kind, Manager, Namespaces, Outcome, Result};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::cluster::{Cluster, config, endings, idle, object, on_cluster, secret, triggers};
use crate::faults::{Fault, faulty, is};

pub async fn another(cluster: &Cluster) -> String {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let wish = object::<Namespace>(json!({ "metadata": { "generateName": "test-" } }));
    api.create(&PostParams::default(), &wish).await.unwrap().metadata.name.unwrap()
}

async fn make(client: &Client, namespace: &str, name: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    api.create(&PostParams::default(), &config(name, "1")).await.unwrap();
}

/// Copies the secret `s` of its namespace, which it must find in the cache.
async fn copy(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    let found = ctx.list::<Secret>().await?;
    assert!(found.iter().any(|secret| secret.name_any() == "s"), "half a namespace: {found:?}");
    ctx.apply(secret(&format!("copy-{}", config.name_any()), "1")).await?;
    Ok(Outcome::Done)
}

async fn with_secret(client: &Client, namespace: &str) {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    api.create(&PostParams::default(), &secret("s", "1")).await.unwrap();
}

#[test]
fn namespaces_join_and_leave_while_the_controller_runs() {
    on_cluster(async |cluster| {
        let (first, second) = (cluster.namespace.clone(), another(&cluster).await);
        for namespace in [&first, &second] {
            with_secret(&cluster.client, namespace).await;
            make(&cluster.client, namespace, "a").await;
        }
        let namespaces = Namespaces::new([&*first]);
        let controller = Controller::new(copy).owns::<Secret>();
        let manager = cluster.manager().with(controller.namespaces(&namespaces));
        let running = cluster.start_manager(manager).await;
        let journal = running.journal();
        let records = cluster.until_recorded(&journal, |records| !records.is_empty()).await;
        assert_eq!(records[0].key.namespace(), Some(&*first));

        namespaces.set([&*first, &*second]);
        let in_second = |name: &str| Key::namespaced(&*second, name);
        let ran = |name: &str| {
            let key = in_second(name);
            cluster.until_recorded(&journal, move |all| all.iter().any(|r| r.key == key))
        };
        ran("a").await;
        let both = "homeostat_source_synced{kind=\"Secret\"} 1";
        assert!(running.metrics().contains(both), "{}", running.metrics());
        let copies: Api<Secret> = Api::namespaced(cluster.client.clone(), &second);
        assert!(copies.get("copy-a").await.is_ok());
        // Children there wake their owners.
        copies.delete("copy-a", &<_>::default()).await.unwrap();
        let by_child = |all: &[Arc<homeostat::journal::Record>]| {
            all.iter().filter(|record| record.key == in_second("a")).count() >= 2
        };
        cluster.until_recorded(&journal, by_child).await;
        cluster.quiet().await;

        // Nobody looks after the first one any more, and its watches are over.
        namespaces.set([&*second]);
        make(&cluster.client, &second, "b").await;
        ran("b").await;
        make(&cluster.client, &first, "ignored").await;
        make(&cluster.client, &second, "c").await;
        ran("c").await;
        let records = journal.records();
        assert!(records.iter().all(|record| record.key.name() != "ignored"), "{journal}");
        assert!(endings(&records).iter().all(|end| end == "done"), "{journal}");
        assert_eq!(running.caches().informers().len(), 2, "{:?}", running.caches());
        assert!(running.health().is_ready(), "{}", running.health());
        running.stop().await.unwrap();
    });
}

#[test]
fn no_reconcile_meets_half_a_namespace() {
    on_cluster(async |cluster| {
        with_secret(&cluster.client, &cluster.namespace).await;
        make(&cluster.client, &cluster.namespace, "a").await;
        // The secrets of the namespace are known a second after everything else.
        let slow = |request: &_| is(request, "GET", "/secrets").then_some(Fault::Delay);
        let client = faulty(&cluster.client, slow);
        let namespaces = Namespaces::new([""; 0]);
        let controller = Controller::new(copy).owns::<Secret>().namespaces(&namespaces);
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        namespaces.set([&*cluster.namespace]);
        let records = cluster.runs(&running.journal(), 1).await;
        let reads = records[0].reads.iter().filter(|read| read.kind.kind() == "Secret");
        let from: Vec<ReadFrom> = reads.map(|read| read.from).collect();
        assert!(!from.is_empty() && from.iter().all(|from| *from == ReadFrom::Cache), "{from:?}");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_set_without_namespaces_is_a_controller_that_waits() {
    on_cluster(async |cluster| {
        with_secret(&cluster.client, &cluster.namespace).await;
        make(&cluster.client, &cluster.namespace, "a").await;
        let namespaces = Namespaces::new([""; 0]);
        let controller = Controller::new(copy).owns::<Secret>();
        let manager = cluster.manager().with(controller.namespaces(&namespaces));
        let running = cluster.start_manager(manager).await;
        cluster.nothing_more().await;
        assert!(running.journal().records().is_empty());
        namespaces.set([&*cluster.namespace]);
        cluster.runs(&running.journal(), 1).await;
        running.stop().await.unwrap();
    });
}

#[test]
fn an_object_without_a_namespace_is_shown_all_that_its_controller_looks_after_and_nothing_else() {
    on_cluster(async |cluster| {
        let (first, second) = (cluster.namespace.clone(), another(&cluster).await);
        let outside = another(&cluster).await;
        let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
        let labelled = json!({ "name": first, "labels": { "of": first } });
        let role = object::<ClusterRole>(json!({ "metadata": labelled }));
        let role = roles.create(&PostParams::default(), &role).await.unwrap();
        for namespace in [&first, &second, &outside] {
            let mut ours = config("a", "1");
            ours.metadata.owner_references = role.controller_owner_ref(&()).map(|it| vec![it]);
            let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
            api.create(&PostParams::default(), &ours).await.unwrap();
            with_secret(&cluster.client, namespace).await;
        }

        let told = Arc::<Mutex<BTreeMap<&str, Vec<String>>>>::default();
        let say = told.clone();
        let look = move |_: Arc<ClusterRole>, ctx: Context<ClusterRole>| {
            let say = say.clone();
            async move {
                let indexed = ctx.by_index::<ConfigMap>("data.value", "1").await?;
                let configs = [
                    ("owned", ctx.owned::<ConfigMap>().await?),
                    ("listed", ctx.list::<ConfigMap>().await?),
                    ("live", ctx.list_live::<ConfigMap>("").await?),
                    ("indexed", indexed),
                ];
                let secrets = ctx.list::<Secret>().await?;
                let mut all = BTreeMap::new();
                let mut note = |how, name: String, namespace: Option<String>| {
                    let places: &mut Vec<String> = all.entry(how).or_default();
                    places.extend(namespace.filter(|_| ["a", "s"].contains(&&*name)));
                };
                for (how, found) in configs {
                    found.iter().for_each(|it| note(how, it.name_any(), it.namespace()));
                }
                // Of a kind that is not declared.
                secrets.iter().for_each(|it| note("secrets", it.name_any(), it.namespace()));
                *say.lock().unwrap() = all;
                Ok(Outcome::Done)
            }
        };
        // Who may read these namespaces may not read the whole cluster.
        let everywhere = |request: &Request<Body>| {
            ["/api/v1/configmaps", "/api/v1/secrets"].contains(&request.uri().path())
        };
        let limited = move |request: &Request<Body>| everywhere(request).then_some(Fault::Forbid);
        let client = faulty(&cluster.client, limited);
        let namespaces = Namespaces::new([&*first, &*second]);
        let controller = Controller::new(look)
            .labels(&format!("of={first}"))
            .namespaces(&namespaces)
            .owns::<ConfigMap>()
            .index_field::<ConfigMap>("data.value");
        let manager = Manager::new(client, cluster.env.clone()).with(controller);
        let running = cluster.start_manager(manager).await;
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let all = async |expected: &[&String]| {
            let expected = sorted(expected.iter().map(|name| (*name).clone()).collect());
            let hows = ["indexed", "listed", "live", "owned", "secrets"];
            let expected: BTreeMap<_, _> = hows.map(|how| (how, expected.clone())).into();
            let is_told = |_: &[_]| *told.lock().unwrap() == expected;
            cluster.until_recorded(&running.journal(), is_told).await;
        };
        all(&[&first, &second]).await;
        namespaces.set([&*second]);
        all(&[&second]).await;
        namespaces.set([&*second, &*outside]);
        all(&[&second, &outside]).await;
        roles.delete(&first, &DeleteParams::default()).await.unwrap();
        running.stop().await.unwrap();
    });
}

#[test]
fn a_group_is_read_as_one_while_its_scopes_change() {
    on_cluster(async |cluster| {
        let (first, second) = (cluster.namespace.clone(), another(&cluster).await);
        make(&cluster.client, &first, "a").await;
        make(&cluster.client, &second, "b").await;
        let caches = Caches::new(cluster.client.clone(), cluster.env.clone());
        let group = caches.group(Kind::of::<ConfigMap>());
        group.index_field("data.value");
        let (a, b) = (Key::namespaced(&*first, "a"), Key::namespaced(&*second, "b"));
        // One object needs the permission for its name alone; the other scope is a namespace.
        group.follow([Scope::object(&a), Scope::namespace(&*second)]);
        assert!(group.wait_for_sync().await);
        assert!(group.get::<ConfigMap>(&a).unwrap().is_some());
        assert!(group.get::<ConfigMap>(&b).unwrap().is_some());
        let indexed = group.by_index("data.value", "1").unwrap();
        assert_eq!(indexed.len(), 2);
        assert_eq!(
            group.entries().iter().filter(|e| e.header.key.namespace() == a.namespace()).count(),
            1
        );

        group.follow([Scope::namespace(&*second).metadata_only()]);
        assert!(group.wait_for_sync().await);
        assert!(group.get::<ConfigMap>(&a).unwrap().is_none());
        let b = group.get::<ConfigMap>(&b).unwrap().unwrap();
        assert_eq!(b.data, None, "metadata alone");
        assert!(b.metadata.uid.is_some());
        caches.stop();
    });
}

#[test]
fn a_reconcile_under_way_says_nothing_terminal_of_a_namespace_that_has_left() {
    on_cluster(async |cluster| {
        make(&cluster.client, &cluster.namespace, "a").await;
        let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (says, waits) = (begun.clone(), gate.clone());
        let look = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            says.add_permits(1);
            let waits = waits.clone();
            async move {
                waits.acquire().await.unwrap().forget();
                ctx.by_index::<Secret>("data.value", "1").await?;
                Ok(Outcome::Done)
            }
        };
        let namespaces = Namespaces::new([&*cluster.namespace]);
        let controller = Controller::new(look).namespaces(&namespaces).marks_status(false);
        let controller = controller.index_field::<Secret>("data.value");
        let manager = cluster.manager().with(controller);
        let running = cluster.start_manager(manager).await;
        begun.acquire().await.unwrap().forget();
        namespaces.set([""; 0]);
        let all_left = || running.caches().informers().is_empty();
        let wait = async {
            while !all_left() {
                cluster.env.sleep(Duration::from_millis(50)).await;
            }
        };
        cluster.env.timeout(Duration::from_secs(30), wait).await.unwrap();
        gate.add_permits(1);
        let records = cluster.runs(&running.journal(), 1).await;
        assert!(endings(&records)[0].starts_with("conflict"), "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn who_is_told_that_a_scope_has_left_may_look_at_what_is_still_there() {
    on_cluster(async |cluster| {
        make(&cluster.client, &cluster.namespace, "a").await;
        let caches = Caches::new(cluster.client.clone(), cluster.env.clone());
        let group = caches.group(Kind::of::<ConfigMap>());
        let (told, hears) = channel();
        let looks = group.clone();
        group.on_event(move |delta| {
            let count = looks.entries().len();
            told.send((delta.change, count)).unwrap();
        });
        let name = Some("metadata.name=a".to_owned());
        let scope = Scope { fields: name, ..Scope::namespace(&*cluster.namespace) };
        group.follow([scope]);
        assert!(group.wait_for_sync().await);
        assert_eq!(hears.recv().unwrap(), (EventKind::Added, 1));
        // On a thread of its own: it must not hang, nor this test with it.
        std::thread::spawn(move || group.follow([]));
        let limit = Duration::from_secs(30);
        assert_eq!(hears.recv_timeout(limit), Ok((EventKind::Deleted, 0)));
        caches.stop();
    });
}

#[test]
fn who_follows_what_is_not_there_yet_hears_of_it_after_its_namespace_has_left_the_set() {
    on_cluster(async |cluster| {
        let (first, second) = (cluster.namespace.clone(), another(&cluster).await);
        make(&cluster.client, &first, "a").await;
        let there = Key::namespaced(&*second, "s");
        let look = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let there = there.clone();
            async move {
                let found = ctx.follow::<Secret>(&there).await?.is_some();
                let patch = json!({ "metadata": { "labels": { "found": found.to_string() } } });
                ctx.merge_patch_primary(&patch).await?;
                Ok(Outcome::Done)
            }
        };
        let namespaces = Namespaces::new([&*first, &*second]);
        let controller = Controller::new(look).reads::<Secret>().namespaces(&namespaces);
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let says = |words: &'static str| {
            move |a: &ConfigMap| a.labels().get("found").is_some_and(|found| found == words)
        };
        cluster.until_one::<ConfigMap>("a", "nothing yet", says("false")).await;
        cluster.quiet().await;
        namespaces.set([&*first]);
        cluster.quiet().await;
        with_secret(&cluster.client, &second).await;
        cluster.until_one::<ConfigMap>("a", "the secret", says("true")).await;
        running.stop().await.unwrap();
    });
}

#[test]
fn primaries_selected_by_name_in_several_namespaces_are_in_the_readiness() {
    on_cluster(async |cluster| {
        make(&cluster.client, &cluster.namespace, "b").await;
        let namespaces = Namespaces::new([&*cluster.namespace]);
        let controller = Controller::new(idle::<ConfigMap>).fields("metadata.name=b");
        let manager = cluster.manager().with(controller.namespaces(&namespaces));
        let running = cluster.start_manager(manager).await;
        cluster.runs(&running.journal(), 1).await;
        let words = running.health().to_string();
        assert_eq!(words, "ok source ConfigMap (metadata.name=b)\n");
        running.stop().await.unwrap();
    });
}

#[test]
fn nothing_is_shown_of_a_kind_that_nobody_follows_any_more() {
    on_cluster(async |cluster| {
        make(&cluster.client, &cluster.namespace, "b").await;
        let namespaces = Namespaces::new([&*cluster.namespace]);
        let controller = Controller::new(idle::<ConfigMap>).namespaces(&namespaces);
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        cluster.runs(&running.journal(), 1).await;
        let shown = "homeostat_cache_objects{kind=\"ConfigMap\"}";
        assert!(running.metrics().contains(shown), "{}", running.metrics());
        namespaces.set([] as [&str; 0]);
        cluster.quiet().await;
        assert!(!running.metrics().contains(shown), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn an_object_without_a_namespace_looks_again_when_the_set_changes_though_nothing_else_wakes_it() {
    on_cluster(async |cluster| {
        let (first, second) = (cluster.namespace.clone(), another(&cluster).await);
        for namespace in [&first, &second] {
            make(&cluster.client, namespace, "a").await;
            with_secret(&cluster.client, namespace).await;
        }
        let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
        let labelled = json!({ "name": first, "labels": { "of": first } });
        let role = object::<ClusterRole>(json!({ "metadata": labelled }));
        roles.create(&PostParams::default(), &role).await.unwrap();
        let told = Arc::<Mutex<BTreeSet<String>>>::default();
        let say = told.clone();
        let look = move |_: Arc<ClusterRole>, ctx: Context<ClusterRole>| {
            let say = say.clone();
            async move {
                // Of a kind that it only reads, and of one that is not declared.
                let configs = ctx.list::<ConfigMap>().await?;
                let secrets = ctx.list::<Secret>().await?;
                let named = |name: String, namespace: Option<String>, wanted: &str| {
                    namespace
                        .filter(|_| name == wanted)
                        .map(|namespace| format!("{namespace} {name}"))
                };
                let configs =
                    configs.iter().filter_map(|it| named(it.name_any(), it.namespace(), "a"));
                let secrets =
                    secrets.iter().filter_map(|it| named(it.name_any(), it.namespace(), "s"));
                *say.lock().unwrap() = configs.chain(secrets).collect();
                Ok(Outcome::Done)
            }
        };
        let namespaces = Namespaces::new([&*first]);
        let controller = Controller::new(look).labels(&format!("of={first}"));
        let controller = controller.namespaces(&namespaces).reads::<ConfigMap>();
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let journal = running.journal();
        for (round, set) in [vec![&first], vec![&first, &second], vec![&second]].iter().enumerate()
        {
            namespaces.set(set.iter().map(|namespace| &***namespace));
            let all = set.iter().flat_map(|it| [format!("{it} a"), format!("{it} s")]);
            let all: BTreeSet<String> = all.collect();
            cluster.until_recorded(&journal, |_| *told.lock().unwrap() == all).await;
            cluster.quiet().await;
            let why = journal.records().last().map(|record| triggers(record));
            let expected = if round == 0 { "initial" } else { "source namespaces" };
            assert_eq!(why.as_deref(), Some(expected), "{journal}");
        }
        roles.delete(&first, &DeleteParams::default()).await.unwrap();
        running.stop().await.unwrap();
    });
}

#[test]
fn an_index_of_another_namespace_is_read_where_it_is_looked_after_and_nowhere_else() {
    on_cluster(async |cluster| {
        let (first, second) = (cluster.namespace.clone(), another(&cluster).await);
        let outside = another(&cluster).await;
        make(&cluster.client, &first, "a").await;
        for namespace in [&second, &outside] {
            let api: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
            let mut there = secret(&format!("in-{namespace}"), "1");
            there.type_ = Some("test.dev/lit".to_owned());
            api.create(&PostParams::default(), &there).await.unwrap();
        }
        let places = [second.clone(), outside.clone()];
        let look = move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let places = places.clone();
            async move {
                for place in &places {
                    let lit = ("type", "test.dev/lit");
                    let found = ctx.by_index_in::<Secret>(Some(place), lit.0, lit.1).await?;
                    let names: Vec<String> = found.iter().map(|it| it.name_any()).collect();
                    assert_eq!(names, [format!("in-{place}")]);
                }
                Ok(Outcome::Done)
            }
        };
        let namespaces = Namespaces::new([&*first, &*second]);
        let controller = Controller::new(look).fields("metadata.name=a").namespaces(&namespaces);
        let controller = controller.index_field::<Secret>("type");
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.starts_with("terminal") && ending.contains("no index type"), "{journal}");
        assert!(records[0].reads.iter().any(|read| read.from == ReadFrom::Cache), "{journal}");
        // Nothing of the primary changes when it joins.
        namespaces.set([&*first, &*second, &*outside]);
        let is_done = |all: &[_]| endings(all).iter().any(|ending| ending == "done");
        cluster.until_recorded(&journal, is_done).await;
        running.stop().await.unwrap();
    });
}

//! Kinds known only at run time, caches of metadata alone, and indexes, as controllers use them.

use std::sync::Arc;

use homeostat::controller::Related;
use homeostat::journal::ReadFrom;
use homeostat::kube::api::{Api, DynamicObject, Patch, PostParams};
use homeostat::kube::{CustomResource, CustomResourceExt, ResourceExt};
use homeostat::{Change, Context, Controller, Key, Kind, Outcome, Result, crd};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::{Cluster, config, endings, idle, object, on_cluster, secret, triggers};

/// Only its definition is used: what the controllers see of it has no type.
#[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(group = "kinds.homeostat.dev", version = "v1", kind = "Widget", namespaced)]
#[kube(status = "WidgetStatus")]
struct WidgetSpec {
    parts: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WidgetStatus {
    observed_generation: Option<i64>,
    parts: usize,
}

async fn installed(cluster: &Cluster) -> Kind {
    crd::apply(&cluster.client, Widget::crd()).await.unwrap();
    crd::wait_until_served(&cluster.client, &cluster.env, &Widget::crd()).await.unwrap();
    let found = Kind::discover(&cluster.client, "kinds.homeostat.dev", "v1", "Widget").await;
    let kind = found.unwrap();
    assert_eq!((kind.plural(), kind.is_namespaced()), ("widgets", true));
    kind
}

fn api(cluster: &Cluster, kind: &Kind) -> Api<DynamicObject> {
    Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &kind.api_resource())
}

async fn make(cluster: &Cluster, kind: &Kind, name: &str, parts: &[&str]) -> DynamicObject {
    let made = DynamicObject::new(name, &kind.api_resource());
    let made = made.data(json!({ "spec": { "parts": parts } }));
    api(cluster, kind).create(&PostParams::default(), &made).await.unwrap()
}

/// A config map for each part, made and removed without a type.
async fn assemble(widget: Arc<DynamicObject>, ctx: Context<DynamicObject>) -> Result<Outcome> {
    let configs = Kind::of::<ConfigMap>();
    let parts = widget.data["spec"]["parts"].as_array().cloned().unwrap_or_default();
    let children = parts.iter().map(|part| {
        DynamicObject::new(part.as_str().unwrap(), &configs.api_resource())
            .data(json!({ "data": { "of": widget.name_any() } }))
    });
    let applied = ctx.apply_set_of(&configs, children.collect()).await?;
    assert_eq!(ctx.owned_of::<DynamicObject>(&configs).await?.len(), applied.len());
    ctx.status(json!({ "observedGeneration": 0, "parts": parts.len() })).await?;
    Ok(Outcome::Done)
}

#[test]
fn a_controller_of_dynamic_objects_owns_dynamic_objects() {
    on_cluster(async |cluster| {
        let kind = installed(&cluster).await;
        let controller =
            Controller::of(kind.clone(), assemble).relates(Related::owned(Kind::of::<ConfigMap>()));
        let running = cluster.start(controller).await;
        make(&cluster, &kind, "w", &["a", "b"]).await;
        let child = cluster.until_one::<ConfigMap>("b", "a child", |_| true).await;
        let owner = &child.owner_references()[0];
        assert_eq!((&*owner.kind, &*owner.name, owner.controller), ("Widget", "w", Some(true)));

        // A child that somebody removes comes back: its event finds the owner.
        cluster.api::<ConfigMap>().delete("a", &<_>::default()).await.unwrap();
        let uid = child.uid();
        cluster
            .until::<ConfigMap>("both again", |all| all.iter().any(|c| c.name_any() == "a"))
            .await;
        assert_eq!(cluster.get::<ConfigMap>("b").await.unwrap().uid(), uid);

        let patch = homeostat::kube::api::Patch::Merge(json!({ "spec": { "parts": ["b"] } }));
        api(&cluster, &kind).patch("w", &<_>::default(), &patch).await.unwrap();
        cluster.until_gone::<ConfigMap>("a").await;
        let records = running.journal().records();
        assert!(endings(&records).iter().all(|end| end == "done"), "{}", running.journal());
        cluster.quiet().await;
        let status = api(&cluster, &kind).get("w").await.unwrap().data["status"].clone();
        assert_eq!(status, json!({ "observedGeneration": 2, "parts": 1 }));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_dynamic_kind_wakes_those_whom_its_objects_name() {
    on_cluster(async |cluster| {
        let kind = installed(&cluster).await;
        cluster.create(&config("a", "1")).await;
        let map = |widget: &DynamicObject| {
            let parts = widget.data["spec"]["parts"].as_array().cloned().unwrap_or_default();
            let namespace = widget.namespace().unwrap();
            let key = |part: &serde_json::Value| {
                Key::namespaced(namespace.clone(), part.as_str().unwrap())
            };
            parts.iter().map(key).collect()
        };
        let controller =
            Controller::new(idle::<ConfigMap>).relates(Related::watched(kind.clone(), map));
        let running = cluster.start(controller).await;
        cluster.runs(&running.journal(), 1).await;
        make(&cluster, &kind, "waker", &["a"]).await;
        let records = cluster.runs(&running.journal(), 2).await;
        let expected = format!("Widget.kinds.homeostat.dev {}/waker added", cluster.namespace);
        assert_eq!(triggers(&records[1]), expected);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_kind_that_is_not_declared_cannot_be_written_without_a_type() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let write = async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let secret = DynamicObject::new("s", &Kind::of::<Secret>().api_resource());
            ctx.apply(secret).await?;
            Ok(Outcome::Done)
        };
        let undeclared = Controller::new(write).named("undeclared");
        let running = cluster.start(undeclared).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert!(endings(&records)[0].contains("Related::known"), "{:?}", endings(&records));
        running.stop().await.unwrap();

        let declared = Controller::new(write).named("declared");
        let declared = declared.relates(Related::known(Kind::of::<Secret>()));
        let running = cluster.start(declared).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        running.stop().await.unwrap();
    });
}

/// A secret beside each config map; what the cache knows of it is its metadata.
async fn accompany(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
    let (kind, name) = (Kind::of::<Secret>(), config.name_any());
    let key = Key::namespaced(config.namespace().unwrap(), &*name);
    let before = ctx.metadata(&kind, &key).await?;
    let applied = ctx.apply(secret(&name, "1")).await?;
    assert_eq!(before.is_none(), applied.change == Change::Created);
    // Read your own writes, of the metadata and of the whole.
    let after = ctx.metadata(&kind, &key).await?.unwrap();
    assert_eq!(after.metadata.uid, applied.object.metadata.uid);
    assert!(ctx.get::<Secret>(&name).await?.unwrap().data.is_some());
    Ok(Outcome::Done)
}

#[test]
fn metadata_alone_is_enough_to_wake_owners() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let secrets = Related::owned(Kind::of::<Secret>()).metadata_only();
        let running = cluster.start(Controller::new(accompany).relates(secrets)).await;
        let journal = running.journal();
        let records = cluster.runs(&journal, 1).await;
        assert_eq!(endings(&records)[0], "done");
        let read = |from: ReadFrom| {
            let secrets = records[0].reads.iter().filter(|read| read.kind.kind() == "Secret");
            secrets.filter(|read| read.from == from).count()
        };
        assert!(read(ReadFrom::Cache) >= 1 && read(ReadFrom::Api) >= 1, "{:?}", records[0].reads);
        let informers = running.caches().informers();
        let cached = informers.iter().find(|informer| informer.kind().kind() == "Secret").unwrap();
        let key = Key::namespaced(&*cluster.namespace, "a");
        assert!(!cached.entry(&key).unwrap().json().contains("\"data\""));

        cluster.api::<Secret>().delete("a", &<_>::default()).await.unwrap();
        cluster.until::<Secret>("the secret again", |all| !all.is_empty()).await;
        let gone = format!("Secret {}/a deleted", cluster.namespace);
        let woken = |record: &Arc<homeostat::journal::Record>| triggers(record).contains(&gone);
        cluster.until_recorded(&journal, |records| records.iter().any(woken)).await;
        running.stop().await.unwrap();
    });
}

#[test]
fn objects_are_found_by_a_field_that_the_controller_indexes() {
    on_cluster(async |cluster| {
        for (name, of) in [("x", "a"), ("y", "b"), ("z", "a")] {
            let secret = json!({ "metadata": { "name": name, "labels": { "of": of } } });
            cluster.create(&object::<Secret>(secret)).await;
        }
        let count = async |config: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let of = ctx.by_index::<Secret>("metadata.labels.of", &config.name_any()).await?;
            let names: Vec<String> = of.iter().map(|secret| secret.name_any()).collect();
            let kinds = Kind::of::<Secret>();
            let first = ctx
                .by_index_of::<Secret>(&kinds, ctx.key().namespace(), "first", &names[0][..1])
                .await?;
            assert_eq!(first.len(), 1);
            let patch = json!({ "data": { "found": names.join(" ") } });
            ctx.merge_patch::<ConfigMap>(ctx.key(), &patch).await?;
            Ok(Outcome::Done)
        };
        let first = |entry: &homeostat::cache::Entry| vec![entry.header.key.name()[..1].to_owned()];
        let controller = Controller::new(count)
            .index_field::<Secret>("metadata.labels.of")
            .relates(Related::read(Kind::of::<Secret>()).index("first", first));
        let running = cluster.start(controller).await;
        cluster.create(&config("a", "1")).await;
        let found = |config: &ConfigMap| config.data.as_ref().unwrap().contains_key("found");
        let a = cluster.until_one::<ConfigMap>("a", "an answer", found).await;
        assert_eq!(a.data.unwrap()["found"], "x z");
        running.stop().await.unwrap();
    });
}

#[test]
fn a_typed_and_a_dynamic_view_of_one_kind_share_one_watch() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let typed = Controller::new(idle::<ConfigMap>).named("typed").namespace(&cluster.namespace);
        let dynamic = Controller::of(Kind::of::<ConfigMap>(), idle::<DynamicObject>);
        let dynamic = dynamic.named("dynamic").namespace(&cluster.namespace);
        let running = cluster.start_manager(cluster.manager().with(typed).with(dynamic)).await;
        cluster.runs(&running.journal(), 2).await;
        assert_eq!(running.caches().informers().len(), 1);
        let lists = "homeostat_source_lists_total{kind=\"ConfigMap\"} 1\n";
        assert!(running.metrics().contains(lists), "{}", running.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn what_is_cached_of_a_kind_without_a_type_can_be_less_and_its_managed_fields_can_stay() {
    on_cluster(async |cluster| {
        async fn look(widget: Arc<DynamicObject>, _: Context<DynamicObject>) -> Result<Outcome> {
            assert!(widget.data["spec"].get("parts").is_none(), "it was cached without");
            assert!(!widget.managed_fields().is_empty(), "and with those");
            Ok(Outcome::Done)
        }
        let kind = installed(&cluster).await;
        make(&cluster, &kind, "w", &["a"]).await;
        let manager = cluster.manager().transform_of(&kind, |widget| {
            widget["spec"].as_object_mut().map(|spec| spec.remove("parts"));
        });
        let controller = Controller::of(kind, look).namespace(&cluster.namespace);
        let manager = manager.keep_managed_fields().with(controller);
        let running = cluster.start_manager(manager).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["done"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn the_status_of_an_object_without_a_type_can_be_patched() {
    on_cluster(async |cluster| {
        async fn tell(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let kind = Kind::from_api_resource(&Widget::api_resource(), true);
            let key = ctx.key().beside("w");
            let patch = json!({ "status": { "parts": 7 } });
            let told: Arc<DynamicObject> = ctx.merge_patch_status_of(&kind, &key, &patch).await?;
            assert_eq!(told.data["status"]["parts"], 7);
            let patch = Patch::Merge(json!({ "status": { "observedGeneration": 1 } }));
            ctx.patch_subresource_of::<DynamicObject>("status", &kind, &key, &patch).await?;
            Ok(Outcome::Done)
        }
        let kind = installed(&cluster).await;
        make(&cluster, &kind, "w", &["a"]).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(tell)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!((&*endings(&records)[0], records[0].writes.len()), ("done", 2));
        let status = api(&cluster, &kind).get("w").await.unwrap().data["status"].clone();
        assert_eq!(status, json!({ "observedGeneration": 1, "parts": 7 }));
        running.stop().await.unwrap();
    });
}

//! Patches of every form, subresources and scale through the context: what they change is read back
//! at once, and the journal names it.

use std::sync::Arc;
use std::time::Duration;

use homeostat::journal::Record;
use homeostat::kube::ResourceExt;
use homeostat::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use homeostat::{Change, Context, Controller, EventDraft, Kind, Outcome, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};

use crate::cluster::{config, endings, object, on_cluster, secret};
use crate::faults::{is, late};

fn deployment(name: &str) -> Deployment {
    let pod = json!({ "containers": [{ "name": "web", "image": "hello" }] });
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod },
        },
    }))
    .unwrap()
}

fn containers(deployment: &Deployment) -> Vec<String> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()).unwrap();
    pod.containers.iter().map(|container| container.name.clone()).collect()
}

#[test]
fn a_patch_of_any_form_is_read_back_at_once() {
    on_cluster(async |cluster| {
        async fn patch(_: Arc<Deployment>, ctx: Context<Deployment>) -> Result<Outcome> {
            let read = async || ctx.get::<Deployment>("a").await.map(Option::unwrap);
            let sidecar = json!([{ "name": "log", "image": "busybox" }]);
            let spec = json!({ "template": { "spec": { "containers": sidecar } } });
            let strategic = Patch::Strategic(json!({ "spec": spec }));
            ctx.patch::<Deployment>(ctx.key(), &strategic).await?;
            assert_eq!(containers(&*read().await?), ["log", "web"]);

            let first = json!([{ "op": "remove", "path": "/spec/template/spec/containers/0" }]);
            let json_patch = Patch::<Value>::Json(serde_json::from_value(first).unwrap());
            ctx.patch::<Deployment>(ctx.key(), &json_patch).await?;
            assert_eq!(containers(&*read().await?), ["web"]);

            let status = Patch::Merge(json!({ "status": { "observedGeneration": 7 } }));
            ctx.patch_subresource::<Deployment>("status", ctx.key(), &status).await?;
            let seen = read().await?.status.as_ref().and_then(|status| status.observed_generation);
            assert_eq!(seen, Some(7));
            // Guarded by the version that the last patch made.
            ctx.finalizer("test.dev/patched", || async { Ok(()) }).await?;
            Ok(Outcome::Done)
        }
        cluster.create(&deployment("a")).await;
        // Every run patches to and fro, and so wakes itself: the first is looked at.
        let running = cluster.start(Controller::new(patch).hot_loop(None)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done", "{}", running.journal());
        let verbs: Vec<_> = records[0].writes.iter().map(|write| write.verb).collect();
        assert_eq!(verbs, ["patch", "patch", "status", "finalizer"]);
        assert!(records[0].writes.iter().all(|write| write.change == Change::Changed));
    });
}

#[test]
fn scaling_changes_the_replicas_once() {
    on_cluster(async |cluster| {
        async fn scale(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let (kind, key) = (Kind::of::<Deployment>(), ctx.key().beside("web"));
            let replicas = async || {
                let web = ctx.get::<Deployment>("web").await?.unwrap();
                Ok::<_, homeostat::Error>(web.spec.as_ref().and_then(|spec| spec.replicas))
            };
            assert_eq!(ctx.scale(&kind, &key, 3).await?, Change::Changed);
            assert_eq!(replicas().await?, Some(3));
            assert_eq!(ctx.scale(&kind, &key, 3).await?, Change::Unchanged);
            let missing = ctx.scale(&kind, &ctx.key().beside("nobody"), 3).await;
            assert!(missing.unwrap_err().to_string().contains("not found"));
            Ok(Outcome::Done)
        }
        cluster.create(&deployment("web")).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(scale).reads::<Deployment>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done", "{}", running.journal());
    });
}

#[test]
fn what_this_reconcile_has_made_of_an_object_counts_where_a_cache_lags() {
    on_cluster(async |mut cluster| {
        async fn scale(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let (kind, key) = (Kind::of::<Deployment>(), ctx.key().beside("web"));
            assert_eq!(ctx.scale(&kind, &key, 3).await?, Change::Changed);
            assert_eq!(ctx.scale(&kind, &key, 3).await?, Change::Unchanged);
            Ok(Outcome::Done)
        }
        cluster.create(&deployment("web")).await;
        cluster.create(&config("a", "1")).await;
        let lag = Duration::from_secs(1);
        cluster.client =
            late(&cluster.client, &cluster.env, lag, |request| is(request, "GET", "/deployments"));
        let running = cluster.start(Controller::new(scale).reads::<Deployment>()).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records)[0], "done", "{}", running.journal());
        running.stop().await.unwrap();
    });
}

#[test]
fn an_event_names_what_was_done_and_what_else_had_a_part_in_it() {
    on_cluster(async |cluster| {
        async fn tell(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
            let other = ctx.get_live::<Secret>(&ctx.key().beside("b")).await?.unwrap();
            let draft = EventDraft::warning("FailedCopy", "it is too long").action("Copying");
            ctx.event_with(draft.clone().related(&*other));
            ctx.event_with(draft.about(&*other));
            Ok(Outcome::Done)
        }
        cluster.create(&secret("b", "1")).await;
        cluster.create(&config("a", "1")).await;
        let running = cluster.start(Controller::new(tell)).await;
        cluster.runs(&running.journal(), 1).await;
        running.stop().await.unwrap();
        let events = cluster.api::<Event>().list(&ListParams::default()).await.unwrap().items;
        let mut told: Vec<_> = events
            .iter()
            .map(|event| {
                let name = |object: &Option<k8s_openapi::api::core::v1::ObjectReference>| {
                    object.as_ref().and_then(|object| object.name.clone()).unwrap_or_default()
                };
                let (action, kind) = (event.action.clone().unwrap(), event.type_.clone().unwrap());
                (name(&event.regarding), name(&event.related), action, kind)
            })
            .collect();
        told.sort();
        let told_as = |about: &str, related: &str| {
            (about.to_owned(), related.to_owned(), "Copying".to_owned(), "Warning".to_owned())
        };
        assert_eq!(told, [told_as("a", "b"), told_as("b", "")]);
    });
}

#[test]
fn a_namespace_that_is_held_by_what_is_in_it_is_not_taken_for_gone_when_it_is_written_to() {
    on_cluster(async |cluster| {
        async fn note(namespace: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Outcome> {
            let (round, seen) = (&namespace.labels()["round"], namespace.annotations().get("seen"));
            if namespace.metadata.deletion_timestamp.is_some() && seen != Some(round) {
                let patch = json!({ "metadata": { "annotations": { "seen": round } } });
                ctx.merge_patch_primary(&patch).await?;
            }
            Ok(Outcome::Done)
        }
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let labels = json!({ "held": cluster.namespace, "round": "1" });
        let wish = json!({ "metadata": { "generateName": "test-", "labels": labels } });
        let name = namespaces.create(&PostParams::default(), &object(wish)).await.unwrap();
        let name = name.name_any();
        let configs: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &name);
        let mut held = config("held", "1");
        held.metadata.finalizers = Some(vec!["homeostat.dev/test".to_owned()]);
        configs.create(&PostParams::default(), &held).await.unwrap();

        let controller = Controller::new(note).labels(&format!("held={}", cluster.namespace));
        let running = cluster.start_manager(cluster.manager().with(controller)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        let params = PatchParams::default();
        for round in 1..=2 {
            let writes =
                |all: &[Arc<Record>]| all.iter().map(|run| run.writes.len()).sum::<usize>();
            cluster.until_recorded(&journal, |all| round == writes(all)).await;
            let label = json!({ "metadata": { "labels": { "round": "2" } } });
            namespaces.patch(&name, &params, &Patch::Merge(label)).await.unwrap();
        }
        cluster.quiet().await;
        let ends = endings(&journal.records());
        assert!(ends.iter().all(|end| end == "done"), "{journal}");
        running.stop().await.unwrap();
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        configs.patch("held", &params, &free).await.unwrap();
    });
}

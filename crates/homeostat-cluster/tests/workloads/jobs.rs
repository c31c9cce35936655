//! Jobs with numbers and policies: what counts, what is tried again, what ends them.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::{DeleteParams, Patch, PatchParams};
use homeostat_testing::{World, on_world, pod_template as template};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{Event, Pod};
use serde_json::{Value, json};

use crate::batch::{has, job};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

fn indexed(mut spec: Value) -> Value {
    spec["completionMode"] = json!("Indexed");
    job("runs", &spec)
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Waits for the Pod of that index, or for any Pod, to run, and tells its name.
async fn running(world: &World, index: Option<&str>) -> String {
    let is_it = |pod: &Pod| {
        phase(pod) == "Running"
            && pod.metadata.deletion_timestamp.is_none()
            && pod.labels().get(INDEX).map(String::as_str) == index
    };
    let what = format!("a running pod with index {index:?}");
    let pods = world.until::<Pod>(&what, |all| all.iter().any(is_it)).await;
    pods.iter().find(|pod| is_it(pod)).unwrap().name_any()
}

/// Ends a Pod as its container might.
async fn end(world: &World, name: &str, code: i32) {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let now = world.env.now().to_string();
    let status = json!({"status": {"phase": phase, "containerStatuses": [{
        "name": "c", "image": "runs", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "finishedAt": now}}}]}});
    let pods = world.api::<Pod>();
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn ended(world: &World, kind: &str) -> (Job, JobCondition) {
    let job = world.until_one::<Job>("task", kind, |job| has(job, kind)).await;
    let conditions = job.status.clone().unwrap().conditions.unwrap();
    let condition = conditions.into_iter().find(|condition| condition.type_ == kind).unwrap();
    (job, condition)
}

#[test]
fn an_index_runs_once_also_when_its_pod_is_cleared_away() {
    on_world(async |world| {
        world.create::<Job>(indexed(json!({"completions": 3, "parallelism": 1}))).await;
        let mut names = Vec::new();
        for index in ["0", "1", "2"] {
            let name = running(world, Some(index)).await;
            end(world, &name, 0).await;
            world.until_one::<Pod>(&name, "its release", |pod| pod.finalizers().is_empty()).await;
            world.api::<Pod>().delete(&name, &DeleteParams::default()).await.unwrap();
            world.until_gone::<Pod>(&name).await;
            names.push(name);
        }
        let (done, _) = ended(world, "Complete").await;
        let status = done.status.unwrap();
        assert_eq!(status.completed_indexes.as_deref(), Some("0-2"));
        assert_eq!((status.succeeded, status.failed), (Some(3), None));
        let told = world.list::<Event>("").await;
        let made = told.iter().filter(|event| event.reason.as_deref() == Some("SuccessfulCreate"));
        assert_eq!(made.count(), 3, "one pod for each index");
    });
}

#[test]
fn an_index_that_failed_too_often_does_not_keep_the_others() {
    on_world(async |world| {
        let spec = json!({"completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0});
        world.create::<Job>(indexed(spec)).await;
        end(world, &running(world, Some("0")).await, 1).await;
        world
            .until_one::<Job>("task", "a failed index", |job| {
                job.status.as_ref().is_some_and(|s| s.failed_indexes.as_deref() == Some("0"))
            })
            .await;
        end(world, &running(world, Some("1")).await, 0).await;
        let (failed, condition) = ended(world, "Failed").await;
        assert_eq!(condition.reason.as_deref(), Some("FailedIndexes"));
        assert!(has(&failed, "FailureTarget"));
        let status = failed.status.unwrap();
        assert_eq!(status.completed_indexes.as_deref(), Some("1"));
        assert_eq!((status.succeeded, status.failed), (Some(1), Some(1)));
        assert_eq!(world.list::<Pod>("").await.len(), 2, "nothing was tried again");
    });
}

#[test]
fn too_many_failed_indexes_stop_the_others() {
    on_world(async |world| {
        let spec = json!({"completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0,
            "maxFailedIndexes": 0});
        world.create::<Job>(indexed(spec)).await;
        running(world, Some("1")).await;
        end(world, &running(world, Some("0")).await, 1).await;
        let (failed, condition) = ended(world, "Failed").await;
        assert_eq!(condition.reason.as_deref(), Some("MaxFailedIndexesExceeded"));
        let status = failed.status.unwrap();
        assert_eq!(status.failed_indexes.as_deref(), Some("0"), "the other was only stopped");
        assert_eq!((status.failed, status.active, status.terminating), (Some(2), None, Some(0)));
        world.until::<Pod>("the end of the other", |all| all.len() == 1).await;
    });
}

#[test]
fn a_failure_that_the_policy_calls_fatal_ends_the_job_at_once() {
    on_world(async |world| {
        let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}});
        let policy = json!({"rules": [rule]});
        let spec = json!({"backoffLimit": 6, "podFailurePolicy": policy});
        world.create::<Job>(job("runs", &spec)).await;
        let name = running(world, None).await;
        end(world, &name, 42).await;
        let (failed, condition) = ended(world, "Failed").await;
        assert_eq!(condition.reason.as_deref(), Some("PodFailurePolicy"));
        let words = format!(
            "Container c for pod {}/{name} failed with exit code 42 matching FailJob rule at index 0",
            world.namespace
        );
        assert_eq!(condition.message, Some(words));
        assert_eq!(failed.status.unwrap().failed, Some(1));
        assert_eq!(world.list::<Pod>("").await.len(), 1);
    });
}

#[test]
fn the_indexes_that_the_policy_names_are_enough() {
    on_world(async |world| {
        let policy = json!({"rules": [{"succeededIndexes": "1"}]});
        let spec = json!({"completions": 2, "parallelism": 2, "successPolicy": policy});
        world.create::<Job>(indexed(spec)).await;
        running(world, Some("0")).await;
        end(world, &running(world, Some("1")).await, 0).await;
        let (done, condition) = ended(world, "Complete").await;
        assert_eq!(condition.reason.as_deref(), Some("SuccessPolicy"));
        assert_eq!(condition.message.as_deref(), Some("Matched rules at index 0"));
        let status = done.status.unwrap();
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
        world.until::<Pod>("the end of the other", |all| all.len() == 1).await;
    });
}

#[test]
fn a_removed_pod_is_replaced_only_when_it_has_ended_if_the_policy_says_so() {
    on_world(async |world| {
        let spec = json!({"podReplacementPolicy": "Failed", "backoffLimit": 6});
        let mut job = job("runs", &spec);
        // Somebody else holds it, and with it the report of its end.
        job["spec"]["template"]["metadata"]["finalizers"] = json!(["test.example/held"]);
        world.create::<Job>(job).await;
        let name = running(world, None).await;
        world.api::<Pod>().delete(&name, &DeleteParams::default()).await.unwrap();
        let counted = world
            .until_one::<Job>("task", "a failure", |job| {
                job.status.as_ref().is_some_and(|status| status.failed == Some(1))
            })
            .await;
        assert_eq!(counted.status.unwrap().terminating, Some(0), "it has ended");
        let replacement = running(world, None).await;
        assert_ne!(replacement, name);
        for held in [name, replacement] {
            let free = json!({"metadata": {"finalizers": null}});
            world.patch::<Pod>(&held, free).await;
        }
    });
}

#[test]
fn a_suspended_job_has_no_pods_and_starts_anew() {
    on_world(async |world| {
        world.create::<Job>(job("runs", &json!({}))).await;
        let first = running(world, None).await;
        world.patch::<Job>("task", json!({"spec": {"suspend": true}})).await;
        world.until_gone::<Pod>(&first).await;
        let (suspended, condition) = ended(world, "Suspended").await;
        assert_eq!(condition.reason.as_deref(), Some("JobSuspended"));
        assert_eq!(suspended.status.unwrap().start_time, None);
        world.patch::<Job>("task", json!({"spec": {"suspend": false}})).await;
        let second = running(world, None).await;
        end(world, &second, 0).await;
        let (done, _) = ended(world, "Complete").await;
        let status = done.status.clone().unwrap();
        assert!(!has(&done, "Suspended") && status.start_time.is_some());
        assert_eq!((status.succeeded, status.failed), (Some(1), None), "no failure");
        for reason in ["Suspended", "Resumed"] {
            world
                .until::<Event>(reason, |all| {
                    all.iter().any(|e| e.reason.as_deref() == Some(reason))
                })
                .await;
        }
    });
}

#[test]
fn a_job_that_is_deleted_before_its_pods_lets_them_go() {
    on_world(async |world| {
        world.create::<Job>(job("runs", &json!({}))).await;
        running(world, None).await;
        world.api::<Job>().delete("task", &DeleteParams::foreground()).await.unwrap();
        world.until_gone::<Job>("task").await;
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn an_adopted_pod_is_counted_like_any_other() {
    on_world(async |world| {
        let mut orphan = template("task", "runs");
        orphan["metadata"]["name"] = json!("orphan");
        orphan["spec"]["restartPolicy"] = json!("Never");
        world.create::<Pod>(orphan).await;
        running(world, None).await;
        let spec = json!({"manualSelector": true, "selector": {"matchLabels": {"app": "task"}}});
        world.create::<Job>(job("runs", &spec)).await;
        world
            .until_one::<Pod>("orphan", "adoption", |pod| {
                !pod.owner_references().is_empty() && !pod.finalizers().is_empty()
            })
            .await;
        end(world, "orphan", 0).await;
        let (done, _) = ended(world, "Complete").await;
        assert_eq!(done.status.unwrap().succeeded, Some(1));
        assert_eq!(world.list::<Pod>("").await.len(), 1);
    });
}

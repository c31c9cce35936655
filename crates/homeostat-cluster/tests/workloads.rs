//! What users see of Deployments, ReplicaSets, StatefulSets, Jobs and Services.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use homeostat::kube::ResourceExt;
use homeostat::kube::api::DeleteParams;
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    Endpoints, Event, PersistentVolume, PersistentVolumeClaim, Pod, Service,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

fn deployment(replicas: i32, image: &str) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}}, "template": template("web", image),
        "strategy": {"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}})
}

fn is_rolled_out(deployment: &Deployment, replicas: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|count| count.unwrap_or(0) == replicas)
        && status.conditions.iter().flatten().any(|c| {
            c.type_ == "Progressing" && c.reason.as_deref() == Some("NewReplicaSetAvailable")
        })
}

#[test]
fn a_deployment_makes_its_pods_and_heals_them() {
    on_world(async |world| {
        world.create::<Deployment>(deployment(3, "one")).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 3)).await;
        let pods = world.list::<Pod>("app=web").await;
        assert_eq!(pods.len(), 3);
        let sets = world.list::<ReplicaSet>("app=web").await;
        assert_eq!(sets.len(), 1);
        assert_eq!(sets[0].annotations()["deployment.kubernetes.io/revision"], "1");
        let victim = pods[0].name_any();
        world.api::<Pod>().delete(&victim, &DeleteParams::default()).await.unwrap();
        world
            .until::<Pod>("a replacement", |all| {
                all.len() == 3 && all.iter().all(|pod| pod.name_any() != victim)
            })
            .await;
        world.nothing_more().await;
        assert_eq!(world.list::<Pod>("app=web").await.len(), 3);
        world.patch::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
        world.until_one("web", "a smaller rollout", |d| is_rolled_out(d, 1)).await;
        world.until::<Pod>("one pod", |all| all.len() == 1).await;
        world.api::<Deployment>().delete("web", &DeleteParams::default()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
        world.until::<ReplicaSet>("the end of the sets", <[ReplicaSet]>::is_empty).await;
    });
}

#[test]
fn rolling_update_never_drops_below_available() {
    on_world(async |world| {
        world.create::<Deployment>(deployment(3, "one")).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 3)).await;
        world
            .patch::<Deployment>("web", json!({"spec": {"template": template("web", "two")}}))
            .await;
        let is_new =
            |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("two");
        world
            .until::<Pod>("only new pods", |all| {
                let active: Vec<_> =
                    all.iter().filter(|p| p.metadata.deletion_timestamp.is_none()).collect();
                let available = active
                    .iter()
                    .filter(|p| {
                        p.status.iter().any(|s| {
                            s.conditions
                                .iter()
                                .flatten()
                                .any(|c| c.type_ == "Ready" && c.status == "True")
                        })
                    })
                    .count();
                assert!(available >= 3, "only {available} available");
                assert!(active.len() <= 4, "{} pods at once", active.len());
                all.len() == 3 && all.iter().all(is_new)
            })
            .await;
        let done = world.until_one("web", "the second rollout", |d| is_rolled_out(d, 3)).await;
        assert_eq!(done.annotations()["deployment.kubernetes.io/revision"], "2");
        // Back to the first template: the same set, a new number.
        world
            .patch::<Deployment>("web", json!({"spec": {"template": template("web", "one")}}))
            .await;
        world
            .until_one::<Deployment>("web", "the way back", |d| {
                is_rolled_out(d, 3) && d.annotations()["deployment.kubernetes.io/revision"] == "3"
            })
            .await;
        let sets = world.list::<ReplicaSet>("app=web").await;
        assert_eq!(sets.len(), 2);
    });
}

#[test]
fn a_rollout_that_never_gets_ready_misses_its_deadline() {
    on_world(async |world| {
        let mut web = deployment(1, "one");
        web["spec"]["progressDeadlineSeconds"] = json!(2);
        world.create::<Deployment>(web).await;
        world.until_one("web", "a rollout", |d| is_rolled_out(d, 1)).await;
        world
            .patch::<Deployment>("web", json!({"spec": {"template": template("web", "starts")}}))
            .await;
        let stuck = world
            .until_one::<Deployment>("web", "the deadline", |d| {
                d.status.iter().any(|s| {
                    s.conditions
                        .iter()
                        .flatten()
                        .any(|c| c.reason.as_deref() == Some("ProgressDeadlineExceeded"))
                })
            })
            .await;
        assert_eq!(stuck.status.unwrap().available_replicas, Some(1), "the old pod still serves");
    });
}

#[test]
fn a_replica_set_adopts_what_matches_and_releases_what_does_not() {
    on_world(async |world| {
        let mut orphan = template("web", "one");
        orphan["metadata"]["name"] = json!("orphan");
        world.create::<Pod>(orphan).await;
        // The scheduler has seen it: so has the cache, which all controllers share.
        let placed = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        world.until_one::<Pod>("orphan", "a node", placed).await;
        world
            .create::<ReplicaSet>(json!({"metadata": {"name": "web"}, "spec": {"replicas": 1,
                "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "one")}}))
            .await;
        let adopted = |pod: &Pod| !pod.owner_references().is_empty();
        world.until_one::<Pod>("orphan", "adoption", adopted).await;
        world.nothing_more().await;
        assert_eq!(world.list::<Pod>("app=web").await.len(), 1, "it counts");
        world.patch::<Pod>("orphan", json!({"metadata": {"labels": {"app": "other"}}})).await;
        world.until_one::<Pod>("orphan", "release", |pod| !adopted(pod)).await;
        world
            .until::<Pod>("a pod in its place", |all| {
                all.iter()
                    .filter(|p| p.labels().get("app").map(String::as_str) == Some("web"))
                    .count()
                    == 1
            })
            .await;
    });
}

#[test]
fn statefulset_pods_keep_their_claims() {
    on_world(async |world| {
        let set = json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}});
        world.create::<StatefulSet>(set).await;
        let ready = |want: i32| {
            move |set: &StatefulSet| {
                set.status.as_ref().is_some_and(|s| {
                    s.ready_replicas == Some(want)
                        && s.replicas == want
                        && s.observed_generation == set.metadata.generation
                })
            }
        };
        world.until_one("db", "two pods", ready(2)).await;
        let claims = world.list::<PersistentVolumeClaim>("app=db").await;
        let names: Vec<String> = claims.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["data-db-0", "data-db-1"]);
        let before = world.get::<Pod>("db-0").await.unwrap().uid();
        world.api::<Pod>().delete("db-0", &DeleteParams::default()).await.unwrap();
        world
            .until_one::<Pod>("db-0", "its return", |pod| {
                pod.uid() != before
                    && pod.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running"))
            })
            .await;
        let after = world.list::<PersistentVolumeClaim>("app=db").await;
        let uids = |claims: &[PersistentVolumeClaim]| {
            claims.iter().map(ResourceExt::uid).collect::<Vec<_>>()
        };
        assert_eq!(uids(&claims), uids(&after));
        world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
        world.until_one("db", "one pod", ready(1)).await;
        assert_eq!(world.list::<PersistentVolumeClaim>("app=db").await.len(), 2, "the disk stays");
        world
            .patch::<StatefulSet>("db", json!({"spec": {"template": template("db", "two")}}))
            .await;
        world
            .until_one::<StatefulSet>("db", "the update", |set| {
                let status = set.status.clone().unwrap_or_default();
                status.updated_replicas == Some(1)
                    && status.current_revision == status.update_revision
                    && status.ready_replicas == Some(1)
                    && status.observed_generation == set.metadata.generation
            })
            .await;
        let pod = world.get::<Pod>("db-0").await.unwrap();
        assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("two"));
        assert_eq!(world.list::<ControllerRevision>("").await.len(), 2);
    });
}

fn job(image: &str, spec: &Value) -> Value {
    let mut job = json!({"metadata": {"name": "task"}, "spec": spec});
    job["spec"]["template"] = template("task", image);
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job
}

fn has(job: &Job, kind: &str) -> bool {
    let conditions = job.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.into_iter().any(|c| c.type_ == kind && c.status == "True")
}

#[test]
fn job_runs_to_completion() {
    on_world(async |world| {
        world.create::<Job>(job("succeeds", &json!({"completions": 3, "parallelism": 2}))).await;
        let done = world.until_one::<Job>("task", "completion", |job| has(job, "Complete")).await;
        let status = done.status.clone().unwrap();
        assert_eq!(status.succeeded, Some(3));
        assert!(has(&done, "SuccessCriteriaMet") && status.completion_time.is_some());
        let pods = world.list::<Pod>("").await;
        assert_eq!(pods.len(), 3);
        assert!(pods.iter().all(|pod| pod.finalizers().is_empty()), "nothing holds the pods");
        world.api::<Job>().delete("task", &DeleteParams::background()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn a_job_that_fails_too_often_is_given_up_and_forgotten() {
    on_world(async |world| {
        let spec = json!({"backoffLimit": 1, "ttlSecondsAfterFinished": 1});
        world.create::<Job>(job("fails", &spec)).await;
        let failed = world.until_one::<Job>("task", "failure", |job| has(job, "Failed")).await;
        assert_eq!(failed.status.clone().unwrap().failed, Some(2));
        assert!(has(&failed, "FailureTarget"));
        world.until_gone::<Job>("task").await;
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn deleting_a_running_job_frees_its_pods() {
    on_world(async |world| {
        world.create::<Job>(job("runs", &json!({}))).await;
        world
            .until::<Pod>("a running pod", |all| {
                all.iter().any(|p| p.status.iter().any(|s| s.phase.as_deref() == Some("Running")))
            })
            .await;
        world.api::<Job>().delete("task", &DeleteParams::background()).await.unwrap();
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn a_service_leads_to_its_ready_pods() {
    on_world(async |world| {
        world
            .create::<Service>(json!({"metadata": {"name": "web"}, "spec":
                {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}))
            .await;
        world.create::<Deployment>(deployment(2, "one")).await;
        let addresses = |slices: &[EndpointSlice]| {
            slices
                .iter()
                .filter(|s| {
                    s.labels().get("kubernetes.io/service-name").map(String::as_str) == Some("web")
                })
                .flat_map(|s| s.endpoints.iter().flatten())
                .filter(|e| e.conditions.as_ref().is_some_and(|c| c.ready == Some(true)))
                .count()
        };
        world.until::<EndpointSlice>("two addresses", |all| addresses(all) == 2).await;
        world
            .until_one::<Endpoints>("web", "two addresses", |endpoints| {
                let subsets = endpoints.subsets.iter().flatten();
                subsets.flat_map(|s| s.addresses.iter().flatten()).count() == 2
            })
            .await;
        world.patch::<Deployment>("web", json!({"spec": {"replicas": 0}})).await;
        world.until::<EndpointSlice>("no addresses", |all| addresses(all) == 0).await;
        world.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
        world.until::<EndpointSlice>("the end of the slice", <[EndpointSlice]>::is_empty).await;
    });
}

#[test]
fn a_pod_that_fits_nowhere_waits_and_says_why() {
    on_world(async |world| {
        let mut pod = template("web", "runs");
        pod["metadata"]["name"] = json!("p");
        pod["spec"]["nodeSelector"] = json!({"disk": "none-such"});
        world.create::<Pod>(pod).await;
        world
            .until_one::<Pod>("p", "a refusal", |pod| {
                pod.status.iter().any(|s| {
                    s.conditions.iter().flatten().any(|c| {
                        c.type_ == "PodScheduled"
                            && c.status == "False"
                            && c.reason.as_deref() == Some("Unschedulable")
                    })
                })
            })
            .await;
        world
            .until::<Event>("an event", |all| {
                all.iter().any(|event| event.reason.as_deref() == Some("FailedScheduling"))
            })
            .await;
    });
}

#[test]
fn a_claim_gets_a_directory_and_gives_it_back() {
    on_world(async |world| {
        world
            .create::<PersistentVolumeClaim>(json!({"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))
            .await;
        let bound = world
            .until_one::<PersistentVolumeClaim>("data", "a volume", |claim| {
                claim.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Bound"))
            })
            .await;
        let name = bound.spec.unwrap().volume_name.unwrap();
        let volumes: homeostat::kube::Api<PersistentVolume> =
            homeostat::kube::Api::all(world.client.clone());
        let path = volumes.get(&name).await.unwrap().spec.unwrap().host_path.unwrap().path;
        assert!(std::path::Path::new(&path).starts_with(world.volumes.path()));
        std::fs::create_dir_all(&path).unwrap();
        let api = world.api::<PersistentVolumeClaim>();
        api.delete("data", &DeleteParams::default()).await.unwrap();
        world.until_gone::<PersistentVolumeClaim>("data").await;
        world.nothing_more().await;
        assert!(volumes.get_opt(&name).await.unwrap().is_none());
        assert!(!std::path::Path::new(&path).exists());
    });
}

#[test]
fn a_cron_job_makes_a_job_when_it_is_due_and_goes_with_it() {
    on_world(async |world| {
        let mut job = json!({"spec": {"template": template("tick", "one")}});
        job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
        let spec = json!({"schedule": "@every 1s", "jobTemplate": job});
        world.create::<CronJob>(json!({"metadata": {"name": "tick"}, "spec": spec})).await;
        world
            .until_one::<CronJob>("tick", "a first time", |cron| {
                cron.status.as_ref().is_some_and(|status| status.last_schedule_time.is_some())
            })
            .await;
        world.patch::<CronJob>("tick", json!({"spec": {"suspend": true}})).await;
        let jobs = world.list::<Job>("").await;
        let due = &jobs[0].annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        assert!(due.ends_with('Z'), "{due}");
        let minute = jobs[0].name_any().strip_prefix("tick-").unwrap().parse::<i64>().unwrap();
        let due: jiff::Timestamp = due.parse().unwrap();
        assert_eq!(minute, due.as_second() / 60);
        world.until::<Pod>("the pod of the job", |all| !all.is_empty()).await;
        world.api::<CronJob>().delete("tick", &DeleteParams::default()).await.unwrap();
        world.until::<Job>("the end of the jobs", <[Job]>::is_empty).await;
        world.until::<Pod>("the end of the pods", <[Pod]>::is_empty).await;
    });
}

#[test]
fn a_cron_job_that_ran_all_day_keeps_its_last_three_jobs() {
    on_world(async |world| {
        // Hours pass only on virtual time.
        if !world.is_virtual {
            return;
        }
        let mut job = json!({"spec": {"template": template("tick", "succeeds")}});
        job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
        let spec = json!({"schedule": "0 * * * *", "jobTemplate": job});
        world.create::<CronJob>(json!({"metadata": {"name": "tick"}, "spec": spec})).await;
        world.env.sleep(std::time::Duration::from_secs(10 * 3600 + 60)).await;
        let mut names: Vec<String> =
            world.list::<Job>("").await.iter().map(ResourceExt::name_any).collect();
        names.sort();
        let midnight: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let hour = |hour: i64| format!("tick-{}", midnight.as_second() / 60 + hour * 60);
        assert_eq!(names, [8, 9, 10].map(hour));
        let cron = world.get::<CronJob>("tick").await.unwrap().status.unwrap();
        assert_eq!(cron.active, None);
        assert!(cron.last_successful_time.unwrap() >= cron.last_schedule_time.unwrap());
    });
}

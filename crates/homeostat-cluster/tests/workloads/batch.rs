//! Jobs and CronJobs.

use homeostat::kube::ResourceExt;
use homeostat::kube::api::DeleteParams;
use homeostat_testing::{on_world, pod_template as template};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

pub(crate) fn job(image: &str, spec: &Value) -> Value {
    let mut job = json!({"metadata": {"name": "task"}, "spec": spec});
    job["spec"]["template"] = template("task", image);
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job
}

pub(crate) fn has(job: &Job, kind: &str) -> bool {
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
fn a_cron_job_runs_as_many_jobs_at_once_as_its_policy_says() {
    for (policy, expected) in [("Allow", vec![1, 2, 3]), ("Forbid", vec![1]), ("Replace", vec![3])]
    {
        on_world(async |world| {
            assert!(world.is_virtual, "it takes minutes, which only the embedded cluster has");
            let mut job = json!({"spec": {"template": template("tick", "runs")}});
            job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
            let spec =
                json!({"schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": job});
            world.create::<CronJob>(json!({"metadata": {"name": "tick"}, "spec": spec})).await;
            world.env.sleep(std::time::Duration::from_secs(3 * 60 + 30)).await;
            let mut names: Vec<String> =
                world.list::<Job>("").await.iter().map(ResourceExt::name_any).collect();
            names.sort();
            let midnight: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            let minute = |minute: i64| format!("tick-{}", midnight.as_second() / 60 + minute);
            let expected: Vec<String> = expected.iter().map(|number| minute(*number)).collect();
            assert_eq!(names, expected, "{policy}");
            let pods = world.list::<Pod>("").await;
            assert_eq!(pods.len(), expected.len(), "{policy}");
            let active = world.get::<CronJob>("tick").await.unwrap().status.unwrap().active;
            assert_eq!(active.unwrap().len(), expected.len(), "{policy}");
        });
    }
}

#[test]
fn a_cron_job_that_ran_all_day_keeps_its_last_three_jobs() {
    on_world(async |world| {
        assert!(world.is_virtual, "it takes hours, which only the embedded cluster has");
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

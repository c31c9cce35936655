//! What is no time is refused where it can be, and told where it cannot.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use homeostat::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use homeostat::{condition, crd};
use homeostat_testing::{object, on_cluster};
use kube::CustomResourceExt;
use kube::api::{Api, PostParams};
use operator_at::{At, Phase};
use serde_json::json;

const EXAMPLE: &str = "2026-11-15T10:00:00Z";

#[test]
fn a_schedule_that_is_no_time_is_refused_with_an_example_of_one() {
    on_cluster(async |cluster| {
        crd::install::<At>(&cluster.client).await.unwrap();
        let create = async |name: &str, schedule: &str| {
            let spec = json!({ "schedule": schedule, "command": "echo hello" });
            let at = object(json!({ "metadata": { "name": name }, "spec": spec }));
            cluster.api::<At>().create(&PostParams::default(), &at).await
        };
        let long = "x".repeat(64);
        for wrong in
            ["tomorrow", "2026-11-15", "10:00", "2026-13-01T10:00:00Z", "2026-11-15T10:00:00"]
        {
            let error = create("wrong", wrong).await.unwrap_err().to_string();
            assert!(error.contains("spec.schedule: Invalid value: "), "{wrong}: {error}");
            assert!(error.contains(EXAMPLE), "{wrong}: {error}");
        }
        let error = create(&long, EXAMPLE).await.unwrap_err().to_string();
        assert!(error.contains("metadata.name: Invalid value: "), "{error}");
        for (name, right) in [
            ("zulu", EXAMPLE),
            ("offset", "2026-11-15T11:00:00+01:00"),
            ("fraction", "2026-11-15T10:00:00.25Z"),
        ] {
            let at = create(name, right).await.unwrap();
            assert!(at.spec.due().is_ok(), "what the API takes is a time: {right}");
        }
    });
}

#[test]
fn one_that_was_stored_before_it_was_refused_says_what_is_wrong() {
    on_cluster(async |cluster| {
        let mut before = At::crd();
        for version in &mut before.spec.versions {
            let schema = version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
            let spec = schema.properties.as_mut().unwrap().get_mut("spec").unwrap();
            let schedule = spec.properties.as_mut().unwrap().get_mut("schedule").unwrap();
            schedule.x_kubernetes_validations = None;
        }
        crd::apply(&cluster.client, before.clone()).await.unwrap();
        crd::wait_until_served(&cluster.client, &cluster.env, &before).await.unwrap();
        let spec = json!({ "schedule": "tomorrow", "command": "echo hello" });
        // On kube-apiserver an older definition may be in force for a moment yet.
        let stored = async {
            let at = object::<At>(json!({ "metadata": { "name": "old" }, "spec": spec }));
            while cluster.api::<At>().create(&PostParams::default(), &at).await.is_err() {
                cluster.env.sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        cluster.env.timeout(std::time::Duration::from_secs(30), stored).await.unwrap();
        let controller = operator_at::controller().namespace(&cluster.namespace);
        let running =
            cluster.start_manager(cluster.manager().with_crd::<At>().with(controller)).await;
        let told = |at: &At| {
            let status = at.status.clone().unwrap_or_default();
            let says = |type_: &str, so: &str| {
                condition::get(&status.conditions, type_).is_some_and(|one| {
                    (&*one.status, &*one.reason) == (so, "BadSchedule")
                        && one.message.starts_with("schedule \"tomorrow\" is not a time")
                        && one.message.contains(EXAMPLE)
                })
            };
            status.phase == Some(Phase::Pending)
                && says("Ready", "False")
                && says("Degraded", "True")
        };
        cluster.until_one("old", "a word on its schedule", told).await;
        let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
        let now = definitions.get(At::crd_name()).await.unwrap();
        let rules = serde_json::to_string(&now.spec).unwrap();
        assert!(rules.contains("self.matches("), "the definition is the new one: {rules}");
        running.stop().await.unwrap();
    });
}

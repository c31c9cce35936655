//! Why a Pod does not get on, in the words its node left in the status. Pure.

use k8s_openapi::api::core::v1::{ContainerStateWaiting, Pod};

/// What keeps a Pod from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// One CamelCase word: `ErrImagePull`, `CrashLoopBackOff`, `Unschedulable` and the like.
    pub reason: String,
    /// A sentence for people, which names the Pod.
    pub message: String,
}

/// The trouble a Pod is in; `None` for one that runs, has ended, or is on its way.
///
/// A container that waits for something that takes its time (`ContainerCreating`,
/// `PodInitializing`) is on its way.
#[must_use]
pub fn trouble(pod: &Pod) -> Option<Trouble> {
    let status = pod.status.as_ref()?;
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let trouble = |reason: &str, said: Option<&String>| {
        let words = said.filter(|said| !said.is_empty()).map_or(reason, String::as_str);
        Trouble { reason: reason.to_owned(), message: format!("Pod {name}: {words}") }
    };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let waiting = containers.flatten().filter_map(|one| one.state.as_ref()?.waiting.as_ref());
    let mut stuck = waiting.filter_map(|waiting: &ContainerStateWaiting| {
        let reason = waiting.reason.as_deref()?;
        let on_its_way = ["ContainerCreating", "PodInitializing"].contains(&reason);
        (!on_its_way).then(|| trouble(reason, waiting.message.as_ref()))
    });
    stuck.next().or_else(|| {
        let refused = status.conditions.iter().flatten().find(|condition| {
            condition.type_ == "PodScheduled"
                && condition.status == "False"
                && condition.reason.as_deref() == Some("Unschedulable")
        });
        refused.map(|condition| trouble("Unschedulable", condition.message.as_ref()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Pod {
        let pod = json!({ "metadata": { "name": "p" }, "status": status });
        serde_json::from_value(pod).unwrap()
    }

    fn container(state: &Value) -> Value {
        json!([{ "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state }])
    }

    #[test]
    fn a_container_that_waits_for_nothing_good_is_trouble() {
        let waiting =
            json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } });
        let found = trouble(&pod(&json!({ "containerStatuses": container(&waiting) })));
        let expected =
            Trouble { reason: "ErrImagePull".into(), message: "Pod p: no such image".into() };
        assert_eq!(found, Some(expected.clone()));
        let found = trouble(&pod(&json!({ "initContainerStatuses": container(&waiting) })));
        assert_eq!(found, Some(expected), "init containers count too");
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_in_trouble() {
        let condition = json!({ "type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available" });
        let found = trouble(&pod(&json!({ "conditions": [condition] }))).unwrap();
        assert_eq!(found.message, "Pod p: 0/1 nodes are available");
    }

    #[test]
    fn one_that_runs_or_is_on_its_way_is_not() {
        for state in
            [json!({ "running": {} }), json!({ "waiting": { "reason": "ContainerCreating" } })]
        {
            assert_eq!(trouble(&pod(&json!({ "containerStatuses": container(&state) }))), None);
        }
        assert_eq!(trouble(&Pod::default()), None);
    }
}

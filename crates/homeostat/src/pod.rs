//! Why a Pod does not get on, in the words its node left in the status. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateWaiting, Pod};

/// What keeps a Pod from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// One CamelCase word: `ErrImagePull`, `CrashLoopBackOff`, `Unschedulable` and the like.
    pub reason: String,
    /// A sentence for people, which names the Pod.
    pub message: String,
    /// Since when, where the Pod says so.
    pub since: Option<Timestamp>,
}

/// How long a Pod may look for a place: its volumes may be on their way, or another Pod that is about
/// to make room.
const PLACING: Duration = Duration::from_secs(30);

impl Trouble {
    /// How much longer it may pass by itself, so that it is too early to call it trouble: a Pod that
    /// fits nowhere has half a minute. `None` when it is time to say so.
    #[must_use]
    pub fn may_pass_within(&self, now: Timestamp) -> Option<Duration> {
        let since = self.since.filter(|_| self.reason == UNSCHEDULABLE)?;
        let left = since.saturating_add(PLACING).ok()?.duration_since(now);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }
}

const UNSCHEDULABLE: &str = "Unschedulable";

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
        let message = format!("Pod {name}: {words}");
        Trouble { reason: reason.to_owned(), message, since: None }
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
                && condition.reason.as_deref() == Some(UNSCHEDULABLE)
        });
        refused.map(|condition| Trouble {
            since: condition.last_transition_time.as_ref().map(|time| time.0),
            ..trouble(UNSCHEDULABLE, condition.message.as_ref())
        })
    })
}

/// The first trouble among these Pods that does not pass by itself, and after how long to look
/// again because another may not have passed; see [`Trouble::may_pass_within`].
pub fn trouble_among<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    now: Timestamp,
) -> (Option<Trouble>, Option<Duration>) {
    let (mut stuck, mut again) = (None, None::<Duration>);
    for found in pods.into_iter().filter_map(trouble) {
        match found.may_pass_within(now) {
            Some(left) => again = Some(again.map_or(left, |soonest| soonest.min(left))),
            None => stuck = stuck.or(Some(found)),
        }
    }
    (stuck, again)
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
        let expected = Trouble {
            reason: "ErrImagePull".into(),
            message: "Pod p: no such image".into(),
            since: None,
        };
        assert_eq!(found, Some(expected.clone()));
        assert_eq!(expected.may_pass_within(Timestamp::UNIX_EPOCH), None, "it is said at once");
        let found = trouble(&pod(&json!({ "initContainerStatuses": container(&waiting) })));
        assert_eq!(found, Some(expected), "init containers count too");
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_in_trouble() {
        let condition = json!({ "type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let found = trouble(&pod(&json!({ "conditions": [condition] }))).unwrap();
        assert_eq!(found.message, "Pod p: 0/1 nodes are available");
        let left = |now: &str| found.may_pass_within(now.parse().unwrap());
        assert_eq!(left("2026-01-01T00:00:10Z"), Some(Duration::from_secs(20)));
        assert_eq!(left("2026-01-01T00:00:30Z"), None);
        let two = [
            pod(&json!({ "conditions": [condition] })),
            pod(
                &json!({ "containerStatuses": container(&json!({ "waiting": { "reason": "Bad" } })) }),
            ),
        ];
        let (stuck, again) = trouble_among(&two, "2026-01-01T00:00:10Z".parse().unwrap());
        assert_eq!(stuck.unwrap().reason, "Bad", "what may pass does not hide what does not");
        assert_eq!(again, Some(Duration::from_secs(20)));
        let timeless = Trouble { since: None, ..found.clone() };
        assert_eq!(timeless.may_pass_within("2026-01-01T00:00:10Z".parse().unwrap()), None);
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

//! What a Job's own policies say of a Pod that failed, and of the indexes that have succeeded. Pure.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement as ExitCodes, PodFailurePolicyRule,
    SuccessPolicy,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::indexes::Indexes;

/// What becomes of a Pod that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is one failure more.
    Count,
    /// It is as if it had not been: another one is made.
    Ignore,
    /// Its index is given up.
    FailIndex,
    /// The whole Job is given up, for this reason.
    FailJob(String),
}

/// The ruling of the first rule that matches; without one the failure counts.
pub(super) fn judge(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Ruling {
    let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
    let ruling = |(number, rule): (usize, &PodFailurePolicyRule)| {
        let reason = match (&rule.on_exit_codes, &rule.on_pod_conditions) {
            (Some(codes), _) => exited(codes, pod)?,
            (None, Some(patterns)) => {
                let conditions = pod.status.as_ref()?.conditions.as_ref()?;
                let condition = conditions.iter().find(|condition| {
                    patterns.iter().any(|pattern| {
                        let status = pattern.status.as_deref().unwrap_or("True");
                        pattern.type_ == condition.type_ && status == condition.status
                    })
                })?;
                format!("Pod {} has condition {}", full_name(pod), condition.type_)
            }
            (None, None) => return None,
        };
        match rule.action.as_str() {
            "Ignore" => Some(Ruling::Ignore),
            "Count" => Some(Ruling::Count),
            "FailIndex" => Some(Ruling::FailIndex),
            "FailJob" => {
                Some(Ruling::FailJob(format!("{reason} matching FailJob rule at index {number}")))
            }
            _ => None,
        }
    };
    rules.iter().enumerate().find_map(ruling).unwrap_or(Ruling::Count)
}

/// How the first container has ended that ended with such a code.
fn exited(codes: &ExitCodes, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let ended = |container: &ContainerStatus| {
        let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
        let is_meant = codes.container_name.as_ref().is_none_or(|name| *name == container.name);
        let is_listed = codes.values.contains(&code);
        let matches = match codes.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        (is_meant && code != 0 && matches).then(|| {
            let (name, pod) = (&container.name, full_name(pod));
            format!("Container {name} for pod {pod} failed with exit code {code}")
        })
    };
    let containers = status.container_statuses.iter().chain(&status.init_container_statuses);
    containers.flatten().find_map(ended)
}

fn full_name(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

/// The words for the first rule by which what has succeeded is enough.
pub(super) fn is_enough(
    policy: Option<&SuccessPolicy>,
    succeeded: &Indexes,
    completions: i32,
) -> Option<String> {
    let met = policy?.rules.iter().position(|rule| match &rule.succeeded_indexes {
        Some(text) => {
            let asked = Indexes::read(text, completions);
            let needed = rule.succeeded_count.unwrap_or_else(|| asked.total());
            asked.total() > 0 && asked.common(succeeded).total() >= needed
        }
        None => rule.succeeded_count.is_some_and(|count| succeeded.total() >= count),
    });
    met.filter(|_| succeeded.total() > 0).map(|rule| format!("Matched rules at index {rule}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failed(code: i32) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n"}, "status": {
            "phase": "Failed",
            "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": {"terminated": {"exitCode": code}}}]}}))
        .unwrap()
    }

    fn policy(rules: &serde_json::Value) -> PodFailurePolicy {
        serde_json::from_value(json!({ "rules": rules })).unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = policy(&json!([
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42, 43]}},
            {"action": "FailIndex",
                "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [1, 2]}},
            {"action": "Ignore", "onExitCodes":
                {"containerName": "other", "operator": "In", "values": [1]}},
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [2]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]));
        let say = |code| judge(Some(&policy), &failed(code));
        let words =
            "Container c for pod n/p failed with exit code 42 matching FailJob rule at index 0";
        assert_eq!(say(42), Ruling::FailJob(words.into()));
        assert_eq!(say(3), Ruling::FailIndex);
        assert_eq!(say(2), Ruling::Count);
        assert_eq!(say(1), Ruling::Ignore, "for its condition");
        assert_eq!(judge(None, &failed(1)), Ruling::Count);
    }

    #[test]
    fn a_condition_may_fail_the_job() {
        let policy = policy(&json!([{"action": "FailJob", "onPodConditions": [
            {"type": "Other", "status": "True"}, {"type": "DisruptionTarget", "status": "True"}]}]));
        let words = "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0";
        assert_eq!(judge(Some(&policy), &failed(1)), Ruling::FailJob(words.into()));
    }

    #[test]
    fn enough_is_what_a_rule_calls_so() {
        let policy =
            |rules| serde_json::from_value::<SuccessPolicy>(json!({ "rules": rules })).unwrap();
        let say = |rules, succeeded: &str| {
            is_enough(Some(&policy(rules)), &Indexes::read(succeeded, 10), 10)
        };
        let leaders = json!([{"succeededIndexes": "0-2"}]);
        assert_eq!(say(leaders.clone(), "0,1,5"), None);
        assert_eq!(say(leaders, "0-2").as_deref(), Some("Matched rules at index 0"));
        let some =
            json!([{"succeededIndexes": "7"}, {"succeededIndexes": "0-2", "succeededCount": 2}]);
        assert_eq!(say(some.clone(), "0,5,6"), None);
        assert_eq!(say(some, "0,2").as_deref(), Some("Matched rules at index 1"));
        assert_eq!(say(json!([{"succeededCount": 2}]), "8"), None);
        assert!(say(json!([{"succeededCount": 2}]), "5,8").is_some());
    }
}

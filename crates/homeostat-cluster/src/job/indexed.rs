//! Jobs whose Pods are numbered: what a Pod is told of its number, and how it is read again. Pure.
//!
//! Where the Job limits the failures of each index, a Pod also carries how often its predecessors
//! have failed: Pods go, and the count must not go with them.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

/// The annotation and label with a Pod's index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often Pods of this index have failed before this one, and how often that was ignored.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The variable with the index.
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// How long a prefix may be that the API completes to a name.
const LONGEST_PREFIX: usize = 58;

/// The failures of the Pods of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Failures {
    /// Those that count.
    pub(super) counted: i32,
    /// Those that the policy of the Job ignores.
    pub(super) ignored: i32,
}

/// The place of a new Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: i32,
    /// The failures of its predecessors, where the Job limits them.
    pub(super) failures: Option<Failures>,
}

/// Gives a Pod of the Job `name` its index.
pub(super) fn number(mut pod: Pod, name: &str, place: Place) -> Pod {
    let index = place.index.to_string();
    let suffix = format!("-{index}-");
    let kept = name.len().min(LONGEST_PREFIX - suffix.len());
    pod.metadata.generate_name = Some(format!("{}{suffix}", &name[..kept]));
    pod.metadata.labels.get_or_insert_default().insert(INDEX.into(), index.clone());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.into(), index.clone());
    if let Some(failures) = place.failures {
        annotations.insert(FAILURES.into(), failures.counted.to_string());
        if failures.ignored > 0 {
            annotations.insert(IGNORED.into(), failures.ignored.to_string());
        }
    }
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{name}-{index}"));
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten())
        {
            let env = container.env.get_or_insert_default();
            if env.iter().all(|known| known.name != VARIABLE) {
                env.push(variable());
            }
        }
    }
    pod
}

fn variable() -> EnvVar {
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        api_version: None,
    };
    EnvVar {
        name: VARIABLE.into(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
    }
}

/// Whether the Job numbers its Pods.
pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// The index of a Pod; `None` for one that no Job with so many completions would have made.
pub(super) fn index(pod: &Pod, completions: i32) -> Option<i32> {
    let index = pod.annotations().get(INDEX)?.parse().ok()?;
    (0..completions).contains(&index).then_some(index)
}

/// How often the predecessors of this Pod have failed.
pub(super) fn failures_before(pod: &Pod) -> Failures {
    let read = |name: &str| {
        pod.annotations().get(name).and_then(|n| n.parse().ok()).filter(|n| *n >= 0).unwrap_or(0)
    };
    Failures { counted: read(FAILURES), ignored: read(IGNORED) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_numbered_pod_knows_its_number_and_what_failed_before_it() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [{"name": "a"},
            {"name": "b", "env": [{"name": VARIABLE, "value": "mine"}]}]}}))
        .unwrap();
        let failures = Failures { counted: 2, ignored: 1 };
        let name = "j".repeat(63);
        let pod = number(pod, &name, Place { index: 12, failures: Some(failures) });
        assert_eq!((index(&pod, 13), index(&pod, 12)), (Some(12), None));
        assert_eq!(failures_before(&pod), failures);
        assert_eq!(pod.metadata.generate_name.as_ref().unwrap().len(), LONGEST_PREFIX);
        assert!(pod.metadata.generate_name.as_ref().unwrap().ends_with("j-12-"));
        let containers = pod.spec.unwrap().containers;
        let own = &containers[0].env.as_ref().unwrap()[0];
        let source = own.value_from.as_ref().unwrap().field_ref.as_ref().unwrap();
        assert_eq!(source.field_path, format!("metadata.labels['{INDEX}']"));
        assert_eq!(containers[1].env.as_ref().unwrap().len(), 1, "the user's own is kept");
    }
}

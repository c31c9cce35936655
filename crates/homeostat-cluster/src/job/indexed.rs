//! Jobs whose Pods are numbered: which index is taken, and how a Pod and a status tell. Pure.

use std::collections::BTreeSet;

use homeostat::kube::ResourceExt;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{EnvVar, Pod};

use crate::pod;

/// The annotation and label with a Pod's index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Gives a Pod of the Job `name` its index.
pub(super) fn number(mut pod: Pod, name: &str, index: i32) -> Pod {
    pod.metadata.generate_name = Some(format!("{name}-{index}-"));
    pod.metadata.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.into(), index.to_string());
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{name}-{index}"));
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten())
        {
            container.env.get_or_insert_default().push(EnvVar {
                name: "JOB_COMPLETION_INDEX".into(),
                value: Some(index.to_string()),
                value_from: None,
            });
        }
    }
    pod
}

/// Whether the Job numbers its Pods.
pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

fn index(pod: &Pod) -> Option<i32> {
    pod.annotations().get(INDEX)?.parse().ok()
}

/// The indexes for which no Pod need be made.
pub(super) fn taken(pods: &[&Pod]) -> BTreeSet<i32> {
    let kept = pods.iter().filter(|pod| pod::is_active(pod) || pod::phase(pod) == "Succeeded");
    kept.filter_map(|pod| index(pod)).collect()
}

/// The indexes that have succeeded, joined with what was known before.
pub(super) fn completed(pods: &[&Pod], known: Option<&str>) -> String {
    let succeeded = pods.iter().filter(|pod| pod::phase(pod) == "Succeeded");
    text(&succeeded.filter_map(|pod| index(pod)).collect(), known)
}

/// The set as `0,2-4`, joined with what was known before.
fn text(found: &BTreeSet<i32>, known: Option<&str>) -> String {
    let mut all = found.clone();
    for part in known.unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
            all.extend(first..=last);
        }
    }
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for index in all {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let show = |(first, last): &(i32, i32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges() {
        assert_eq!(text(&BTreeSet::from([0, 2, 3, 4, 6, 7]), Some("9")), "0,2-4,6,7,9");
    }
}

//! A Job and its Pods as one reconcile sees them. Pure.

use homeostat::kube::ResourceExt;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::TRACKING;
use super::indexed::{self, is_indexed};
use super::indexes::Indexes;
use super::policy::{self, Ruling};
use crate::pod;

/// What there is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'o, 'p> {
    pub(super) spec: &'o JobSpec,
    pub(super) status: &'o JobStatus,
    pub(super) pods: &'o [&'p Pod],
}

impl<'p> Observed<'_, 'p> {
    /// The Pods that are neither finished nor on their way out.
    pub(super) fn active(&self) -> Vec<&'p Pod> {
        self.pods.iter().copied().filter(|pod| pod::is_active(pod)).collect()
    }

    /// The Pods on their way out whose containers may still run.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &'p Pod> {
        let leaving = |pod: &&Pod| pod::is_deleting(pod) && !pod::is_terminal(pod);
        self.pods.iter().copied().filter(leaving)
    }

    /// The Pods whose results may still have to be counted.
    pub(super) fn tracked(&self) -> impl Iterator<Item = &'p Pod> {
        let tracked = |pod: &&Pod| pod.finalizers().iter().any(|name| name == TRACKING);
        self.pods.iter().copied().filter(tracked)
    }

    /// How many indexes there are, or so many that it does not matter.
    pub(super) fn completions(&self) -> i32 {
        self.spec.completions.unwrap_or(i32::MAX)
    }

    /// The index of a Pod of an Indexed Job.
    pub(super) fn index(&self, pod: &Pod) -> Option<i32> {
        indexed::index(pod, self.completions())
    }

    /// Whether the result of this Pod counts: one with an index that the Job does not have does not.
    pub(super) fn is_counted(&self, pod: &Pod) -> bool {
        !is_indexed(self.spec) || self.index(pod).is_some()
    }

    /// The indexes that are known to have succeeded.
    pub(super) fn known_completed(&self) -> Indexes {
        let text = self.status.completed_indexes.as_deref().unwrap_or_default();
        Indexes::read(text, self.completions())
    }

    /// How often each index may fail, where it is limited.
    pub(super) fn limit_per_index(&self) -> Option<i32> {
        self.spec.backoff_limit_per_index.filter(|_| is_indexed(self.spec))
    }

    /// Whether a Pod on its way out is waited for: it is replaced only once it has ended, and only
    /// then has it failed.
    pub(super) fn only_replaces_failed(&self) -> bool {
        self.spec.pod_replacement_policy.as_deref() == Some("Failed")
            || self.spec.pod_failure_policy.is_some()
    }

    /// Whether this Pod has failed; by default also one that is removed before it has ended. One
    /// that no node has taken has ended as soon as it is removed: nobody else would say so.
    pub(super) fn has_failed(&self, pod: &Pod) -> bool {
        match pod::phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ if self.only_replaces_failed() => pod::is_deleting(pod) && !pod::is_assigned(pod),
            _ => pod::is_deleting(pod),
        }
    }

    /// What the Job's policy says of the failure of this Pod.
    pub(super) fn ruling(&self, pod: &Pod) -> Ruling {
        policy::judge(self.spec.pod_failure_policy.as_ref(), pod)
    }
}

//! What the published API does not say about the built-in kinds: how each is written and deleted.
//!
//! Lists of exceptions to [`Strategy::default`], by group and kind. Nothing here runs.

use super::{Generation, Propagation, Strategy};

type Name = (&'static str, &'static str);
type Fields = &'static [(Name, &'static [&'static str])];

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const FLOW: &str = "flowcontrol.apiserver.k8s.io";

/// Kinds whose generation follows `spec`.
const GENERATION_OF_SPEC: &[Name] = &[
    ("", "Pod"),
    ("", "ReplicationController"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (FLOW, "FlowSchema"),
    (FLOW, "PriorityLevelConfiguration"),
    (RESOURCE, "DeviceClass"),
    (RESOURCE, "ResourceSlice"),
];

/// Kinds without `spec` whose generation follows everything else.
const GENERATION_OF_BODY: &[Name] = &[
    ("", "PodTemplate"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
];

/// An update of these must name the `resourceVersion` it was made from.
const CONDITIONAL_UPDATE: &[Name] = &[
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("coordination.k8s.io", "Lease"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (STORAGE, "CSIDriver"),
    (STORAGE, "CSINode"),
    (STORAGE, "CSIStorageCapacity"),
    (STORAGE, "VolumeAttachment"),
];

/// A PUT of these creates what is absent.
const CREATE_ON_UPDATE: &[Name] = &[
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "Service"),
    ("coordination.k8s.io", "Lease"),
    ("events.k8s.io", "Event"),
    ("node.k8s.io", "RuntimeClass"),
    (RBAC, "ClusterRole"),
    (RBAC, "ClusterRoleBinding"),
    (RBAC, "Role"),
    (RBAC, "RoleBinding"),
];

/// A delete of these answers with the object.
const RETURNS_DELETED: &[Name] = &[
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ResourceQuota"),
    ("", "Service"),
    ("", "ServiceAccount"),
    (RESOURCE, "DeviceClass"),
    (RESOURCE, "ResourceClaim"),
    (RESOURCE, "ResourceClaimTemplate"),
    (RESOURCE, "ResourceSlice"),
    (STORAGE, "CSIDriver"),
    (STORAGE, "CSINode"),
    (STORAGE, "StorageClass"),
    (STORAGE, "VolumeAttachment"),
    (STORAGE, "VolumeAttributesClass"),
];

/// The dependents of these outlive a delete that does not say otherwise.
const ORPHANS: &[Name] = &[("", "ReplicationController"), ("batch", "Job")];

/// What these ask for stays as it was at first.
const SPEC_ON_CREATE: &[Name] = &[("certificates.k8s.io", "CertificateSigningRequest")];

/// All of `metadata` that people write, and all that can be written.
const WRITTEN_METADATA: &[&str] = &["labels", "annotations", "finalizers", "ownerReferences"];
pub(crate) const WHOLE_METADATA: &[&str] =
    &["labels", "annotations", "finalizers", "ownerReferences", "generateName", "uid"];

/// What a write of the status leaves alone in the metadata of these.
const STATUS_LEAVES: Fields = &[
    // Agents of old wrote owners that nobody could read.
    (("", "Pod"), &["ownerReferences", "deletionTimestamp"]),
    (("apps", "Deployment"), &["labels"]),
    (("apiregistration.k8s.io", "APIService"), WRITTEN_METADATA),
    (("networking.k8s.io", "ServiceCIDR"), WRITTEN_METADATA),
    ((ADMISSION, "ValidatingAdmissionPolicy"), WRITTEN_METADATA),
    ((RESOURCE, "ResourceClaim"), WRITTEN_METADATA),
    ((STORAGE, "VolumeAttachment"), WRITTEN_METADATA),
    ((FLOW, "FlowSchema"), WHOLE_METADATA),
    ((FLOW, "PriorityLevelConfiguration"), WHOLE_METADATA),
];

/// Fields that kube-apiserver takes only where somebody turned them on. `*` is every item of a list.
const TURNED_OFF: Fields = &[
    (("apps", "StatefulSet"), &["spec.updateStrategy.rollingUpdate.maxUnavailable"]),
    (("coordination.k8s.io", "Lease"), &["spec.preferredHolder", "spec.strategy"]),
    ((STORAGE, "CSIDriver"), &["spec.preventPodSchedulingIfMissing"]),
    (
        ("", "Pod"),
        &[
            "status.nodeAllocatableResourceClaimStatuses",
            "status.containerStatuses.*.volumeMounts.*.volumeStatus",
            "status.initContainerStatuses.*.volumeMounts.*.volumeStatus",
            "status.ephemeralContainerStatuses.*.volumeMounts.*.volumeStatus",
        ],
    ),
];

/// The same of Pods and of their templates. What ends with `?` goes when nothing else is left in it.
pub(crate) const TURNED_OFF_IN_PODS: &[&str] = &[
    "spec.schedulingGroup",
    "spec.volumes.*.projected.sources.*.clusterTrustBundle",
    "spec.volumes.*.projected.sources.*.podCertificate",
    "spec.initContainers.*.lifecycle?.stopSignal",
    "spec.containers.*.lifecycle?.stopSignal",
    "spec.ephemeralContainers.*.lifecycle?.stopSignal",
];

/// Where these have a Pod that is to be made; a Pod is one itself.
const TEMPLATES: &[(Name, &str)] = &[
    (("", "Pod"), ""),
    (("", "PodTemplate"), "/template"),
    (("", "ReplicationController"), "/spec/template"),
    (("apps", "DaemonSet"), "/spec/template"),
    (("apps", "Deployment"), "/spec/template"),
    (("apps", "ReplicaSet"), "/spec/template"),
    (("apps", "StatefulSet"), "/spec/template"),
    (("batch", "CronJob"), "/spec/jobTemplate/spec/template"),
    (("batch", "Job"), "/spec/template"),
];

/// An update of these compares what is absent with what is empty, and finds a difference.
const EMPTY_COUNTS: &[Name] = &[
    ("networking.k8s.io", "NetworkPolicy"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
];

/// The strategy of a built-in kind.
pub(super) fn of(group: &str, kind: &str, status: bool) -> Strategy {
    let listed = |names: &[Name]| names.contains(&(group, kind));
    let fields = |of: Fields| {
        of.iter().find(|(name, _)| *name == (group, kind)).map_or(&[][..], |(_, fields)| fields)
    };
    let generation = if (group, kind) == ("apps", "Deployment") {
        Generation::SpecAndAnnotations
    } else if (group, kind) == ("scheduling.k8s.io", "PriorityClass") {
        Generation::Once
    } else if (group, kind) == ("discovery.k8s.io", "EndpointSlice") {
        Generation::AsWrittenAndLabels
    } else if (group, kind) == (STORAGE, "CSIDriver") {
        Generation::SpecChanges
    } else if listed(GENERATION_OF_SPEC) {
        Generation::Spec
    } else if listed(GENERATION_OF_BODY) {
        Generation::AllButMetadataAndStatus
    } else {
        Generation::None
    };
    Strategy {
        generation,
        status,
        status_on_create: (group, kind) == ("", "Node"),
        unconditional_update: !listed(CONDITIONAL_UPDATE),
        create_on_update: listed(CREATE_ON_UPDATE),
        returns_deleted: listed(RETURNS_DELETED),
        graceful: (group, kind) == ("", "Pod"),
        propagation: if listed(ORPHANS) { Propagation::Orphan } else { Propagation::Background },
        create_only: if listed(SPEC_ON_CREATE) { &["spec"] } else { &[] },
        status_leaves: fields(STATUS_LEAVES),
        turned_off: fields(TURNED_OFF),
        empty_counts: listed(EMPTY_COUNTS),
        template: TEMPLATES.iter().find(|(name, _)| *name == (group, kind)).map(|(_, at)| *at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::builtin;

    #[test]
    fn every_exception_names_a_kind_that_is_served() {
        for (group, kind) in [
            GENERATION_OF_SPEC,
            GENERATION_OF_BODY,
            CONDITIONAL_UPDATE,
            CREATE_ON_UPDATE,
            RETURNS_DELETED,
            ORPHANS,
            SPEC_ON_CREATE,
            EMPTY_COUNTS,
            &[STATUS_LEAVES, TURNED_OFF].concat().iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            &TEMPLATES.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ]
        .concat()
        {
            let served = builtin().iter().any(|row| row.group == group && row.kind == kind);
            assert!(served, "{kind}.{group} is listed but not served");
        }
    }
}

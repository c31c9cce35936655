//! Differences that single faults may show: reviewed, with the reason.

use crate::difference::Difference;

/// One accepted difference.
struct Known {
    /// Part of the step's title.
    step: &'static str,
    /// Part of what kube-apiserver says.
    theirs: &'static str,
    /// Why it is so, and why that is fine for now.
    #[expect(dead_code, reason = "for whoever reads the list")]
    why: &'static str,
}

/// The list; the shorter the better.
const KNOWN: &[Known] = &[];

/// Kinds of which some faults are still answered differently: only a run of all faults judges
/// them. The list may only shrink.
const OPEN: &[&str] = &[
    "apiservices",
    "certificatesigningrequests",
    "clusterrolebindings",
    "clusterroles",
    "configmaps",
    "controllerrevisions",
    "cronjobs",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "customresourcedefinitions",
    "daemonsets",
    "deployments",
    "deviceclasses",
    "endpoints",
    "endpointslices",
    "events",
    "flowschemas",
    "horizontalpodautoscalers",
    "ingressclasses",
    "ingresses",
    "ipaddresses",
    "jobs",
    "leases",
    "limitranges",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "namespaces",
    "networkpolicies",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets",
    "pods",
    "podtemplates",
    "priorityclasses",
    "prioritylevelconfigurations",
    "replicasets",
    "replicationcontrollers",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcequotas",
    "resourceslices",
    "rolebindings",
    "roles",
    "runtimeclasses",
    "secrets",
    "serviceaccounts",
    "servicecidrs",
    "services",
    "statefulsets",
    "storageclasses",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
    "volumeattributesclasses",
];

/// Whether every fault of a kind is answered alike.
pub(super) fn is_judged(plural: &str) -> bool {
    !OPEN.contains(&plural)
}

/// Whether a difference is one of them.
pub(super) fn accepts(difference: &Difference) -> bool {
    KNOWN.iter().any(|known| {
        difference.step.contains(known.step) && difference.theirs_contains(known.theirs)
    })
}

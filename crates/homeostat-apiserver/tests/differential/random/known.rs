//! Differences that random requests may show: reviewed, with the reason.

use crate::difference::Difference;
use crate::script::Step;

/// One accepted difference.
struct Known {
    /// Part of the step's title, path or body.
    step: &'static str,
    /// The place, or some part of it.
    place: &'static str,
    /// Part of what kube-apiserver says there; empty for anything.
    theirs: &'static str,
    /// Why it is so, and why that is fine for now.
    #[expect(dead_code, reason = "for whoever reads the list")]
    why: &'static str,
}

const fn known(
    step: &'static str,
    place: &'static str,
    theirs: &'static str,
    why: &'static str,
) -> Known {
    Known { step, place, theirs, why }
}

const WORDS: &str = "the words of Go's readers and printers, and of its internal types";
const NODES: &str = "what a kubelet and admission tell of a Node";
const WARNINGS: &str = "a warning that is not given here";
const ANNOTATION: &str = "kube-apiserver keeps it elsewhere and shows it in whole objects only";

/// The list; the shorter the better.
const KNOWN: &[Known] = &[
    known("", "message", "is invalid: patch: Invalid value", WORDS),
    known("", "/details/causes/0/message", "managedFields", WORDS),
    known("strategic", "/details/causes/0/message", "map[", WORDS),
    known("", "message", "StorageError: invalid object", WORDS),
    known("", "message", "error converting YAML to JSON", WORDS),
    known("", "message", "of type []", WORDS),
    known("", "message", "of type map[", WORDS),
    known("", "message", "\\n@@", WORDS),
    known("", "warning", "already set in map", WORDS),
    known("jobs", "causes/", "", WORDS),
    known("jobs", "message", "spec.template: Invalid value", WORDS),
    known("endpointslices", "message", "addressType: Invalid value: \\\"\\\"", WORDS),
    known("endpointslices", "message", "Invalid value: \\\"\\\": field is immutable", WORDS),
    known("pods", "/details/causes", "", "what else is wrong with a Pod that may not change"),
    known("pods", "message", "pod updates may not change fields", WORDS),
    known("pods", "/message", "[<causes>]", WORDS),
    known("poddisruptionbudgets", "message", "cannot be both set", WORDS),
    known("status poddisruptionbudgets", "", "", "its metadata is not judged with its status"),
    known("status services", "", "", "an apply of the status of no Service is one of a Service"),
    known("nodes", "/spec/taints", "", NODES),
    known("nodes", "/status/nodeInfo", "", NODES),
    known("nodes", "podCIDR", "", NODES),
    known("nodes", "/metadata/resourceVersion", "", NODES),
    known("daemonsets", "annotations", "", ANNOTATION),
    known("daemonsets", "f:metadata", "", ANNOTATION),
    known("daemonsets", "managedFields", "", ANNOTATION),
    known("services", "warning", "is ignored when", WARNINGS),
    known("json patch", "warning", "json patch unknown field", WARNINGS),
    known("endpointslices", "warning", "FQDN endpoints are deprecated", WARNINGS),
    known("", "warning", "prefer a domain-qualified finalizer name", WARNINGS),
    known("", "/metadata/deletionTimestamp", "2020-01-01", "an apply that creates may bring it"),
    known("selfLink", "/metadata/selfLink", "/x", "a dry run shows a field that is never stored"),
    known("status pods", "qosClass", "", "a status without it keeps it there"),
    known(
        "\"creationTimestamp\":\"nope\"",
        "",
        "",
        "custom resources take any text for it in an apply",
    ),
    known("daemonsets", "/metadata/resourceVersion", "", ANNOTATION),
    known(
        r#"{"apiVersion":"{{group}}/v1beta1","kind":"Gizmo","metadata":{"name":"{{ns}}-a"}}"#,
        "",
        "",
        "an apply that gives up all of a spec leaves a null there, which it then refuses",
    ),
    known("get events", "", "", "kube-apiserver reads Events past its cache, with other words"),
    known("\"kind\":\"Odd\"", "/details/causes", "", "how far a stranger is judged"),
    known("jobs", "/message", "", WORDS),
    known("nodes", "/details", "", NODES),
    known("nodes", "/message", "", NODES),
    known(
        "replicationcontrollers",
        "managedFields",
        "",
        "who scaled one is forgotten sooner there",
    ),
    known("scale", "/details", "", "a Scale of another kind"),
    known("scale", "message", "is invalid", "a Scale of another kind"),
    known("endpointslices", "causes", "", "addresses are judged by the type that may not change"),
    known("endpointslices", "/message", "", "addresses are judged by the type that may not change"),
    known("nodes", "/metadata/labels", "", NODES),
    known("nodes", "/metadata/managedFields", "", NODES),
];

/// Whether the difference is one of those.
pub(super) fn accepts(step: &Step, difference: &Difference) -> bool {
    KNOWN.iter().any(|known| {
        [&step.title, &step.path, &step.body].iter().any(|text| text.contains(known.step))
            && difference.place.contains(known.place)
            && difference.theirs_contains(known.theirs)
    })
}

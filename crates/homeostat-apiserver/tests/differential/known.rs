//! Differences that are accepted: reviewed, with the reason, and checked to still be there.

use crate::difference::Difference;

/// One accepted difference.
#[derive(Debug)]
pub(crate) struct Known {
    /// `area: sequence / step`, or the beginning of it.
    step: &'static str,
    /// The place, or some part of it.
    place: &'static str,
    /// Why it is so, and why that is fine for now.
    #[expect(dead_code, reason = "shown with the entry when it no longer differs")]
    why: &'static str,
}

const fn known(step: &'static str, place: &'static str, why: &'static str) -> Known {
    Known { step, place, why }
}

/// The list; the shorter the better.
pub(crate) const KNOWN: &[Known] = &[
    known(
        "addresses: ranges / the one that is there",
        "f:reason",
        "an empty reason is written out, so that it is shown",
    ),
    known("forms: paths / the version", "", "this is another program"),
    known("forms: paths / the groups of old", "serverAddress", "in-process there is no port"),
    known("bodies: protobuf / a name that is no text", "", "JSON holds no other texts"),
    known("bodies: protobuf / a number for a message", "message", "another reader of protobuf"),
    known(
        "bodies: discovery in one document / of an older form, or none",
        "serverAddress",
        "as above",
    ),
    known(
        "webhooks: what webhooks are sent of subresources / the end",
        "asked",
        "webhooks are asked about a Pod that goes at once when it is marked and again when it is \
         taken away: kube-apiserver shows what its cache has of the mark by then, perhaps twice; \
         here the two are one commit, and its revision comes after the question",
    ),
    known("webhooks: what webhooks are sent of subresources / many Pods go", "asked", "as above"),
    known(
        "webhooks: custom resources of several versions / changed by one who sees the other version",
        "object/spec/other",
        "what a definition does not know is dropped when a webhook adds it, not when it is stored",
    ),
    known(
        "webhooks: custom resources of several versions / with other labels",
        "object/metadata/labels",
        "as above: labels that are no texts",
    ),
    known(
        "subresources: what policies see of subresources / a scale that is a list",
        "message",
        "a Scale that is no object is refused in fewer words",
    ),
];

/// The row that accepts the difference.
pub(crate) fn position(difference: &Difference) -> Option<usize> {
    KNOWN.iter().position(|known| {
        difference.step.starts_with(known.step) && difference.place.contains(known.place)
    })
}

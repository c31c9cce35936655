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
    known(
        "read: lists and selectors / a token that is none",
        "/message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "patch: JSON patches / a field nobody knows",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "patch: merge patches / a wrong type",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "patch: strategic patches / a directive that is none",
        "/message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "patch: strategic patches / an item without a key",
        "/message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "apply: ownership of fields / not YAML",
        "/message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "kinds: claims / smaller",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "kinds: claims / another mode",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "pods: the life of a pod / not much may change",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "resizing: sizes of containers / an amount that is no number",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "resizing: containers that come later / another image",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "resizing: containers that come later / by put",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "resizing: containers that come later / through the Pod itself",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "uncommon: priorities of requests / what is fixed",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "devices: claims to devices / it changes",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "devices: claims to devices / the template changes",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "devices: slices of devices / devices that are none",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known(
        "devices: the status of claims / others",
        "message",
        "the words of Go's JSON and YAML readers, of its formatted maps and of its internal structs",
    ),
    known("forms: paths / the version", "", "this is another program"),
    known("forms: paths / the groups of old", "serverAddress", "in-process there is no port"),
    known(
        "kinds: jobs / a template stays",
        "",
        "the template of a suspended Job may change here, as its scheduling may there",
    ),
];

/// The row that accepts the difference.
pub(crate) fn position(difference: &Difference) -> Option<usize> {
    KNOWN.iter().position(|known| {
        difference.step.starts_with(known.step) && difference.place.contains(known.place)
    })
}

//! Differences that single faults may show: reviewed, with the reason.

use crate::difference::Difference;

/// One accepted difference.
struct Known {
    /// Part of the step's title.
    step: &'static str,
    /// Part of the place where they differ.
    place: &'static str,
    /// Part of what kube-apiserver says there.
    theirs: &'static str,
    /// Why it is so, and why that is fine for now.
    #[expect(dead_code, reason = "for whoever reads the list")]
    why: &'static str,
}

/// Who writes an empty list or map changes something there, for as long as it is not stored.
const GIVEN_AND_EMPTY: &str =
    "what is empty and may be left out goes when it is read here, and when it is stored there";

/// The list; the shorter the better.
const KNOWN: &[Known] = &[
    Known { step: " []", place: "/metadata/managedFields", theirs: "", why: GIVEN_AND_EMPTY },
    Known { step: " {}", place: "/metadata/managedFields", theirs: "", why: GIVEN_AND_EMPTY },
    Known { step: " []", place: "message", theirs: "immutable", why: GIVEN_AND_EMPTY },
    Known { step: " {}", place: "message", theirs: "immutable", why: GIVEN_AND_EMPTY },
    Known { step: " {}", place: "message", theirs: "not match template", why: GIVEN_AND_EMPTY },
    Known {
        step: "certificatesigningrequests ",
        place: "/spec/u",
        theirs: "admin",
        why: "whoever asks is noted, and has another name here",
    },
];

/// Whether a difference is one of them.
pub(super) fn accepts(difference: &Difference) -> bool {
    KNOWN.iter().any(|known| {
        difference.step.contains(known.step)
            && difference.place.contains(known.place)
            && difference.theirs_contains(known.theirs)
    })
}

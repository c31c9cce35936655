//! Differences that single faults may show: reviewed, with the reason, and checked to still be there.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::{Way, ownership};
use crate::difference::Difference;

/// One accepted difference.
struct Known {
    /// The resource; empty for any.
    plural: &'static str,
    /// The value that is the fault; empty for any.
    value: &'static str,
    /// Part of the place where they differ.
    place: &'static str,
    /// Part of what kube-apiserver says there.
    theirs: &'static str,
    /// A fault that shows it, which every run sends.
    example: (Way, &'static str),
    /// Why it is so, and why that is fine for now.
    why: &'static str,
}

/// Where ownership is told. It may differ along the way to the field with the fault, and nowhere else.
const OWNERS: &str = "/metadata/managedFields";

/// Who writes an empty list or map changes something there, for as long as it is not stored.
const GIVEN_AND_EMPTY: &str =
    "what is empty and may be left out goes when it is read here, and when it is stored there";

/// The list; the shorter the better.
const KNOWN: &[Known] = &[
    Known {
        plural: "",
        value: "[]",
        place: OWNERS,
        theirs: "",
        example: (Way::Status, "pods /status/containerStatuses/0/volumeMounts []"),
        why: GIVEN_AND_EMPTY,
    },
    Known {
        plural: "",
        value: "{}",
        place: OWNERS,
        theirs: "",
        example: (Way::Status, "nodes /status/allocatable {}"),
        why: GIVEN_AND_EMPTY,
    },
    Known {
        plural: "",
        value: "[]",
        place: "message",
        theirs: "immutable",
        example: (Way::Update, "persistentvolumeclaims /spec/accessModes []"),
        why: GIVEN_AND_EMPTY,
    },
    Known {
        plural: "",
        value: "{}",
        place: "message",
        theirs: "immutable",
        example: (Way::Update, "persistentvolumeclaims /spec/resources/requests {}"),
        why: GIVEN_AND_EMPTY,
    },
    Known {
        plural: "certificatesigningrequests",
        value: "",
        place: "/spec/u",
        theirs: "admin",
        example: (Way::Update, "certificatesigningrequests /spec (absent)"),
        why: "whoever asks is noted, and has another name here",
    },
];

/// The rows that accepted something in this run, and the way.
static SEEN: Mutex<BTreeSet<(usize, Way)>> = Mutex::new(BTreeSet::new());

/// The faults that a run sends in that way to see whether the rows are still needed.
pub(super) fn examples(way: Way) -> impl Iterator<Item = &'static str> {
    let rows = KNOWN.iter().filter(move |known| known.example.0 == way);
    rows.map(|known| known.example.1)
}

/// Whether a difference between the two answers to a fault is one of them.
pub(super) fn accepts(
    way: Way,
    (plural, pointer, value): (&str, &str, &str),
    difference: &Difference,
    (ours, theirs): (&Value, &Value),
) -> bool {
    let found = KNOWN.iter().position(|known| {
        (known.plural.is_empty() || known.plural == plural)
            && (known.value.is_empty() || known.value == value)
            && difference.place.contains(known.place)
            && difference.theirs_contains(known.theirs)
            && (known.place != OWNERS || ownership::differs_only_along(pointer, ours, theirs))
    });
    if let Some(row) = found {
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert((row, way));
    }
    found.is_some()
}

/// The rows whose example is sent in that way, and that accepted nothing.
pub(super) fn unseen(way: Way) -> Vec<String> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = KNOWN.iter().enumerate().filter(|(_, known)| known.example.0 == way);
    let unseen = rows.filter(|(row, _)| !seen.contains(&(*row, way)));
    unseen.map(|(_, known)| format!("{}: {}", known.example.1, known.why)).collect()
}

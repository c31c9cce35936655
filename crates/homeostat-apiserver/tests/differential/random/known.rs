//! Differences that random requests may show: reviewed, with the reason, and checked to still be there.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::difference::Difference;
use crate::script::Step;
use crate::side::Answer;

/// One accepted difference.
struct Known {
    /// The verb, and the resource; `*` for any.
    request: (&'static str, &'static str),
    /// The place, or some part of it.
    place: &'static str,
    /// Part of what kube-apiserver says there; empty for anything.
    theirs: &'static str,
    /// Part of its whole answer; empty for anything.
    answer: &'static str,
    /// Why it is so, and why that is fine for now.
    why: &'static str,
}

const STATUS_OF_NONE: &str =
    "who writes the status of a Service that is not there makes one, without an address";

/// The list; the shorter the better.
const KNOWN: &[Known] = &[
    Known {
        request: ("apply", "*"),
        place: "message",
        theirs: "error converting YAML to JSON: yaml: ",
        answer: "",
        why: "the words of another reader of YAML",
    },
    Known {
        request: ("status", "services"),
        place: "",
        theirs: "",
        answer: r#""status":{"loadBalancer":{}}"#,
        why: STATUS_OF_NONE,
    },
    Known {
        request: ("status", "services"),
        place: "",
        theirs: "",
        answer: "spec.ports: Required value",
        why: STATUS_OF_NONE,
    },
    Known {
        request: ("apply", "gizmos"),
        place: "",
        theirs: "",
        answer: "spec in body must be of type object: \\\"null\\\"",
        why: "an apply that gives up all of a spec leaves a null there, which is then refused",
    },
];

/// The rows that accepted something in this run.
static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Whether the difference is one of those.
pub(super) fn accepts(step: &Step, difference: &Difference, their: &Answer) -> bool {
    let answer = their.body.to_string();
    let (_, title) = step.title.split_once(": ").unwrap_or_default();
    let (verb, plural) = title.rsplit_once(' ').unwrap_or_default();
    let is = |known: &str, given: &str| known == "*" || known == given;
    let found = KNOWN.iter().position(|known| {
        is(known.request.0, verb)
            && is(known.request.1, plural)
            && difference.place.contains(known.place)
            && difference.theirs_contains(known.theirs)
            && answer.contains(known.answer)
    });
    if let Some(row) = found {
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(row);
    }
    found.is_some()
}

/// The rows that accepted nothing.
pub(super) fn unseen() -> Vec<String> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let unseen = KNOWN.iter().enumerate().filter(|(row, _)| !seen.contains(row));
    unseen.map(|(_, known)| format!("{:?} {}: {}", known.request, known.place, known.why)).collect()
}

#[test]
fn no_row_accepts_whatever_is_said() {
    for known in KNOWN {
        assert!(!known.theirs.is_empty() || !known.answer.is_empty(), "{:?}", known.request);
        assert!(!known.place.is_empty() || !known.answer.is_empty(), "{:?}", known.request);
    }
}

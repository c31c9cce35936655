//! Differences that random requests may show: reviewed, with the reason, and checked to still be there.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::difference::{self, Difference};
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
    /// The codes, ours and kube-apiserver's; `None` for any.
    codes: Option<(u16, u16)>,
    /// Whether it depends on kube-apiserver's own dice, so that no run is sure to see it.
    by_chance: bool,
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
        codes: Some((400, 400)),
        by_chance: false,
        why: "the words of another reader of YAML",
    },
    Known {
        request: ("apply", "*"),
        place: "message",
        theirs: "field not declared in schema",
        answer: "",
        codes: Some((500, 500)),
        by_chance: true,
        why: "fields are looked at in a random order there, and none after one that is not known",
    },
    Known {
        request: ("status", "services"),
        place: "",
        theirs: "",
        answer: r#""status":{"loadBalancer":{}}"#,
        codes: Some((404, 201)),
        by_chance: false,
        why: STATUS_OF_NONE,
    },
    Known {
        request: ("status", "services"),
        place: "",
        theirs: "",
        answer: r#""kind":"Service""#,
        codes: Some((404, 422)),
        by_chance: false,
        why: STATUS_OF_NONE,
    },
    Known {
        request: ("apply", "gizmos"),
        place: "",
        theirs: "",
        answer: "spec in body must be of type object: \\\"null\\\"",
        codes: Some((200, 422)),
        by_chance: false,
        why: "an apply that gives up all of a spec leaves a null there, which is then refused",
    },
];

/// The rows that accepted something in this run.
static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Whether the difference is one of those.
pub(super) fn accepts(step: &Step, difference: &Difference, our: &Answer, their: &Answer) -> bool {
    let found = row(&step.title, difference, our.code, their);
    if let Some(row) = found {
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(row);
    }
    found.is_some()
}

/// The row that accepts the difference.
fn row(title: &str, difference: &Difference, code: u16, their: &Answer) -> Option<usize> {
    let answer = their.body.to_string();
    let (_, title) = title.split_once(": ").unwrap_or_default();
    let (verb, plural) = title.rsplit_once(' ').unwrap_or_default();
    let is = |known: &str, given: &str| known == "*" || known == given;
    KNOWN.iter().position(|known| {
        is(known.request.0, verb)
            && is(known.request.1, plural)
            && difference.place.contains(known.place)
            && difference.theirs_contains(known.theirs)
            && answer.contains(known.answer)
            && known.codes.is_none_or(|codes| codes == (code, their.code))
    })
}

/// The rows that accepted nothing.
pub(super) fn unseen() -> Vec<String> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let unseen =
        KNOWN.iter().enumerate().filter(|(row, known)| !known.by_chance && !seen.contains(row));
    unseen.map(|(_, known)| format!("{:?} {}: {}", known.request, known.place, known.why)).collect()
}

#[test]
fn no_row_accepts_whatever_is_said() {
    for known in KNOWN {
        let Known { request, place, theirs, answer, codes, .. } = known;
        assert!(!theirs.is_empty() || !answer.is_empty(), "{request:?}");
        // What may be anywhere and anything must at least be a matter of the answers as a whole.
        let is_told = codes.is_some_and(|(ours, theirs)| ours != theirs);
        assert!(!place.is_empty() && !theirs.is_empty() || is_told, "{request:?}");
    }
}

#[test]
fn a_difference_in_an_answer_like_any_other_is_not_accepted() {
    let body = json!({
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 80}], "clusterIP": "10.96.0.7"},
        "status": {"loadBalancer": {}},
    });
    let with = |body: Value, code| Answer { code, body, ..Answer::default() };
    let (mut ours, theirs) = (with(body.clone(), 200), with(body, 200));
    ours.body["spec"]["clusterIP"] = "None".into();
    ours.body["metadata"]["managedFields"] = json!([]);
    for title in ["3: status services", "3: apply gizmos", "3: apply services"] {
        for difference in difference::between("random", title, &ours, &theirs) {
            assert_eq!(row(title, &difference, ours.code, &theirs), None, "{title}: {difference}");
        }
    }
}

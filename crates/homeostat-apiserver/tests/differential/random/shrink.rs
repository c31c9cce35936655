//! The shortest form of a sequence that still differs in the same place, as a script.

use std::fmt::Write as _;

use super::Pair;
use crate::difference::Difference;
use crate::script::Sequence;

/// Drops what comes after the difference, then each step that it does not need.
pub(super) async fn shortest(
    pair: &Pair,
    mut sequence: Sequence,
    mut found: Vec<Difference>,
) -> (Sequence, Vec<Difference>) {
    let last = found[0].step.clone();
    let end = sequence.steps.iter().position(|step| last.ends_with(&step.title));
    sequence.steps.truncate(end.map_or(usize::MAX, |end| end + 1));
    let mut index = 0;
    while index + 1 < sequence.steps.len() {
        let mut shorter =
            Sequence { name: sequence.name.clone(), history: None, steps: sequence.steps.clone() };
        shorter.steps.remove(index);
        let still = pair.run(&shorter).await;
        let same = |one: &Difference| one.step == found[0].step && one.place == found[0].place;
        if still.iter().any(same) {
            (sequence, found) = (shorter, still);
        } else {
            index += 1;
        }
    }
    (sequence, found)
}

/// The sequence as `areas/*.http` have it.
pub(super) fn script(sequence: &Sequence) -> String {
    let mut text = format!("## {}\n", sequence.name);
    for step in &sequence.steps {
        let _ = write!(text, "\n### {}\n", step.title);
        if let Some(name) = &step.save {
            let _ = writeln!(text, "@save {name}");
        }
        let _ = writeln!(text, "{} {}", step.method, step.path);
        for (name, value) in &step.headers {
            let _ = writeln!(text, "{name}: {value}");
        }
        if !step.body.is_empty() {
            let _ = write!(text, "\n{}\n", step.body);
        }
    }
    text
}

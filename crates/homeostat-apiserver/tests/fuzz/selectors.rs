//! Selectors of labels and of fields: right, absurd, and very long.

use crate::dice::Dice;

const LABELS: &[&str] = &[
    "app=web",
    "app!=web",
    "app",
    "!app",
    "app in (web,db)",
    "app notin (web)",
    "app in (",
    "=",
    ",",
    "a=b,c",
    "app==web",
    "a b",
    "app in ()",
    "é=ü",
    "app>1",
    "app<x",
    "((((",
    "app=web,app=db",
];

const FIELDS: &[&str] = &[
    "metadata.name=a",
    "metadata.namespace=default",
    "metadata.name!=a",
    "status.phase=Running",
    "spec.nodeName=",
    "spec.a=1",
    "spec.c.a=x",
    "odd",
    "a=b=c",
    "\\,=\\=",
    "metadata.name=a,",
    "=",
    "metadata.name==a,metadata.name==b",
];

const KEYS: &[&str] =
    &["app", "a.b/c", "metadata.name", "spec.a", "", "é", "in", "notin", "/", "a b", "\u{0}", "!"];
const OPERATORS: &[&str] =
    &["=", "==", "!=", " in ", " notin ", ">", "<", "", "===", "=!", "in(", " exists", "\t=\n"];
const VALUES: &[&str] =
    &["web", "", "(web)", "(a,b,)", "()", "(", ")", "\\", "\\=", "1", "-1", "é", "x y", "\"q\""];

/// How long the very long ones are; more does not fit into the line of a request.
const MANY: usize = 2000;

/// A selector of labels.
pub(crate) fn labels(dice: &Dice) -> String {
    any(dice, LABELS, "app in (", "web,")
}

/// A selector of fields.
pub(crate) fn fields(dice: &Dice) -> String {
    any(dice, FIELDS, "metadata.name=", "\\=")
}

fn any(dice: &Dice, known: &[&str], begin: &str, again: &str) -> String {
    match dice.below(100) {
        0..60 => (*dice.pick(known)).to_owned(),
        60..95 => {
            let part = |_| {
                let (key, operator) = (*dice.pick(KEYS), *dice.pick(OPERATORS));
                format!("{key}{operator}{}", dice.pick(VALUES))
            };
            (0..1 + dice.below(6)).map(part).collect::<Vec<_>>().join(",")
        }
        95 => format!("{begin}{}", again.repeat(MANY)),
        96 => (0..MANY).map(|at| format!("k{at}!=v")).collect::<Vec<_>>().join(","),
        97 => dice.pick(&["(", "!", ",", "=", " ", "\\"]).repeat(MANY * 5),
        98 => format!("{}=x", "k".repeat(MANY * 5)),
        _ => format!("a={}", "v".repeat(MANY * 5)),
    }
}

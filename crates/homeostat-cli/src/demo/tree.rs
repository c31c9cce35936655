//! Owners and what they own, as text. Pure: facts in, lines out.

use std::collections::{BTreeMap, BTreeSet};

/// A longer name moves no state away from the others.
const WIDEST: usize = 60;

/// What the tree knows of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    /// `WebApp default/hello`.
    pub(crate) title: String,
    pub(crate) uid: String,
    /// The uid of its controller.
    pub(crate) owner: Option<String>,
    /// `Ready`, `2 of 2`, `Running`: one short phrase.
    pub(crate) state: String,
    /// Whether it is as it should be.
    pub(crate) well: bool,
}

/// One line per object, children below their owner. Objects whose owner is not shown are roots.
pub(crate) fn lines(facts: &[Fact]) -> Vec<String> {
    let shown: BTreeSet<&str> = facts.iter().map(|fact| fact.uid.as_str()).collect();
    let mut children: BTreeMap<Option<&str>, Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        let owner = fact.owner.as_deref().filter(|owner| shown.contains(owner));
        children.entry(owner).or_default().push(fact);
    }
    for siblings in children.values_mut() {
        siblings.sort_by(|a, b| a.title.cmp(&b.title));
    }
    let mut rows = Vec::new();
    branch(&children, None, "", &mut rows);
    // As wide as the names need: states stand near them.
    let widths = rows.iter().map(|(name, _)| name.chars().count());
    let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let line = |(name, fact): &(String, &Fact)| {
        let mark = if fact.well { '●' } else { '○' };
        format!("{name:width$}  {mark} {}", fact.state)
    };
    rows.iter().map(line).collect()
}

/// No more than `room` lines, of which the last says how many are missing.
pub(crate) fn cut(mut lines: Vec<String>, room: usize) -> Vec<String> {
    if lines.len() > room {
        let missing = lines.len() + 1 - room;
        lines.truncate(room - 1);
        lines.push(format!("… and {missing} more: make the window higher, or ask kubectl"));
    }
    lines
}

/// Names with what joins them to their owner, in the order of the tree.
fn branch<'a>(
    children: &BTreeMap<Option<&str>, Vec<&'a Fact>>,
    owner: Option<&str>,
    indent: &str,
    rows: &mut Vec<(String, &'a Fact)>,
) {
    let siblings = children.get(&owner).map(Vec::as_slice).unwrap_or_default();
    for (index, fact) in siblings.iter().enumerate() {
        let last = index + 1 == siblings.len();
        let (joint, below) = match owner {
            None => ("", ""),
            Some(_) if last => ("└─ ", "   "),
            Some(_) => ("├─ ", "│  "),
        };
        rows.push((format!("{indent}{joint}{}", fact.title), *fact));
        branch(children, Some(&fact.uid), &format!("{indent}{below}"), rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(title: &str, uid: &str, owner: Option<&str>) -> Fact {
        Fact {
            title: title.to_owned(),
            uid: uid.to_owned(),
            owner: owner.map(str::to_owned),
            state: "Ready".to_owned(),
            well: true,
        }
    }

    #[test]
    fn children_stand_below_their_owner() {
        let facts = [
            fact("Pod b", "3", Some("2")),
            fact("ReplicaSet r", "2", Some("1")),
            fact("Service s", "4", Some("1")),
            fact("WebApp w", "1", None),
        ];
        let titles: Vec<String> = lines(&facts)
            .into_iter()
            .map(|line| line.split('●').next().unwrap_or_default().trim_end().to_owned())
            .collect();
        assert_eq!(titles, ["WebApp w", "├─ ReplicaSet r", "│  └─ Pod b", "└─ Service s"]);
    }

    #[test]
    fn states_stand_in_one_column_as_near_as_the_names_allow() {
        let endless = "x".repeat(WIDEST + 1);
        let facts = [fact("WebApp w", "1", None), fact("Pod p", "2", Some("1"))];
        assert_eq!(lines(&facts), ["WebApp w  ● Ready", "└─ Pod p  ● Ready"]);
        let facts = [fact("Pod p", "2", None), fact(&endless, "1", None)];
        assert_eq!(lines(&facts), ["Pod p  ● Ready".to_owned(), format!("{endless}  ● Ready")]);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let all: Vec<String> = (0..5).map(|number| number.to_string()).collect();
        assert_eq!(cut(all.clone(), 5), all);
        let shown = cut(all, 4);
        assert_eq!(shown[..3], ["0", "1", "2"]);
        assert!(shown.len() == 4 && shown[3].contains("2 more"), "{shown:?}");
    }

    #[test]
    fn an_object_whose_owner_is_not_shown_is_a_root() {
        assert!(lines(&[fact("Pod p", "1", Some("gone"))])[0].starts_with("Pod p"));
    }
}

//! Owners and what they own, in the order they are drawn. Pure: facts in, rows out.

use std::collections::{BTreeMap, BTreeSet};

use super::health::Health;

/// What the tree knows of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    /// `WebApp hello`.
    pub(crate) title: String,
    pub(crate) uid: String,
    /// The uid of its controller.
    pub(crate) owner: Option<String>,
    /// Whether it is an object of an operator.
    pub(crate) is_root: bool,
    /// How it is, in a phrase: `2 of 2 ready`, or whatever went wrong.
    pub(crate) state: String,
    /// Whether it is as it should be.
    pub(crate) health: Health,
}

/// One object, at its place in the tree.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The title, after what joins it to its owner.
    pub(crate) name: String,
    /// What goes on below the row: the lines to the siblings that follow, and to its children.
    pub(crate) below: String,
    pub(crate) fact: &'a Fact,
}

/// One row per object, children below their owner. Objects whose owner is not shown are roots.
pub(crate) fn rows(facts: &[Fact]) -> Vec<Row<'_>> {
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
    rows
}

fn branch<'a>(
    children: &BTreeMap<Option<&str>, Vec<&'a Fact>>,
    owner: Option<&str>,
    indent: &str,
    rows: &mut Vec<Row<'a>>,
) {
    let siblings = children.get(&owner).map(Vec::as_slice).unwrap_or_default();
    for (index, fact) in siblings.iter().enumerate() {
        let last = index + 1 == siblings.len();
        let (joint, below) = match owner {
            None => ("", ""),
            Some(_) if last => ("└─ ", "   "),
            Some(_) => ("├─ ", "│  "),
        };
        let own = if children.contains_key(&Some(fact.uid.as_str())) { "│" } else { "" };
        rows.push(Row {
            name: format!("{indent}{joint}{}", fact.title),
            below: format!("{indent}{below}{own}"),
            fact,
        });
        branch(children, Some(&fact.uid), &format!("{indent}{below}"), rows);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An object that is as it should be.
    pub(crate) fn fact(title: &str, uid: &str, owner: Option<&str>) -> Fact {
        Fact {
            title: title.to_owned(),
            uid: uid.to_owned(),
            owner: owner.map(str::to_owned),
            is_root: owner.is_none(),
            state: "Ready".to_owned(),
            health: Health::Well,
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
        let rows = rows(&facts);
        let of = |part: fn(&Row<'_>) -> String| rows.iter().map(part).collect::<Vec<_>>();
        let names = ["WebApp w", "├─ ReplicaSet r", "│  └─ Pod b", "└─ Service s"];
        assert_eq!(of(|row| row.name.clone()), names);
        assert_eq!(of(|row| row.below.clone()), ["│", "│  │", "│     ", "   "]);
    }

    #[test]
    fn an_object_whose_owner_is_not_shown_is_a_root() {
        assert_eq!(rows(&[fact("Pod p", "1", Some("gone"))])[0].name, "Pod p");
    }
}

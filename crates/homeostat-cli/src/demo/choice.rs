//! What a low window shows of a tree that does not fit: the operators' own objects first, then what
//! fails, then the others from the top down, never one without its owners. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::health::Health;
use super::tree::Fact;

/// At most so many of them, and those that are left out.
pub(crate) fn choose(facts: &[Fact], room: usize) -> (Vec<Fact>, Vec<Fact>) {
    let by_uid: BTreeMap<&str, &Fact> =
        facts.iter().map(|fact| (fact.uid.as_str(), fact)).collect();
    let owner = |fact: &Fact| by_uid.get(fact.owner.as_deref()?).copied();
    // From itself up to its root; nobody is his own ancestor twice.
    let line = |fact: &'_ Fact| {
        let mut line = vec![by_uid[fact.uid.as_str()]];
        while let Some(next) = owner(line[line.len() - 1]).filter(|_| line.len() <= facts.len()) {
            line.push(next);
        }
        line
    };
    let mut turns: Vec<&Fact> = facts.iter().collect();
    turns.sort_by_key(|fact| {
        let depth = line(fact).len();
        let fails = fact.health == Health::Failing;
        (Reverse(depth == 1), Reverse(fails), depth, &fact.title)
    });
    let mut chosen: BTreeSet<&str> = BTreeSet::new();
    for fact in turns {
        let missing = line(fact).into_iter().map(|one| one.uid.as_str());
        let missing: Vec<&str> = missing.filter(|uid| !chosen.contains(uid)).collect();
        if chosen.len() + missing.len() <= room {
            chosen.extend(missing);
        }
    }
    facts.iter().cloned().partition(|fact| chosen.contains(fact.uid.as_str()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::fact;
    use super::*;

    #[test]
    fn roots_come_first_then_what_fails_with_its_owners_then_the_others() {
        let mut facts = vec![
            fact("WebApp w", "1", None),
            fact("Deployment w", "2", Some("1")),
            fact("ReplicaSet w", "3", Some("2")),
            fact("Pod w", "4", Some("3")),
            fact("Database d", "5", None),
            fact("Secret d", "6", Some("5")),
            fact("StatefulSet d", "7", Some("5")),
            fact("Pod d", "8", Some("7")),
        ];
        facts[7].health = Health::Failing;
        let shown = |room: usize| {
            let (shown, rest) = choose(&facts, room);
            assert_eq!(shown.len() + rest.len(), facts.len());
            shown.into_iter().map(|fact| fact.uid).collect::<String>()
        };
        assert_eq!(shown(1), "5", "one root");
        assert_eq!(shown(2), "15", "both roots");
        assert_eq!(shown(3), "125", "no room for the failing one's owner too");
        assert_eq!(shown(4), "1578");
        assert_eq!(shown(5), "12578");
        assert_eq!(shown(8), "12345678");
        assert_eq!(shown(0), "");
    }
}

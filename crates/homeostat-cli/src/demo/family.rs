//! Who belongs to the operators' objects: they themselves and whatever descends from them, also once
//! the ancestor is gone. A user's own Deployment and its Pods are nobody's business. Pure.

use std::collections::BTreeSet;

use super::tree::Fact;

/// Knows who belonged at the last look.
#[derive(Debug, Default)]
pub(crate) struct Family(BTreeSet<String>);

impl Family {
    /// Those that belong.
    pub(crate) fn of(&mut self, facts: Vec<Fact>) -> Vec<Fact> {
        let roots = facts.iter().filter(|fact| fact.is_root).map(|fact| fact.uid.clone());
        self.0.extend(roots);
        loop {
            let is_new = |fact: &&Fact| {
                let owner = fact.owner.as_ref();
                !self.0.contains(&fact.uid) && owner.is_some_and(|owner| self.0.contains(owner))
            };
            let more: Vec<String> =
                facts.iter().filter(is_new).map(|fact| fact.uid.clone()).collect();
            if more.is_empty() {
                break;
            }
            self.0.extend(more);
        }
        // Those that are gone are known as long as somebody names them as owner.
        let named: BTreeSet<&String> = facts
            .iter()
            .flat_map(|fact| [Some(&fact.uid), fact.owner.as_ref()])
            .flatten()
            .collect();
        self.0.retain(|uid| named.contains(uid));
        facts.into_iter().filter(|fact| self.0.contains(&fact.uid)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::fact;
    use super::*;

    fn titles(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| fact.title).collect()
    }

    #[test]
    fn what_users_made_themselves_is_not_shown_nor_what_it_owns() {
        let all = vec![
            fact("Pod a", "5", Some("4")),
            fact("ReplicaSet a", "4", Some("a Deployment of somebody's own")),
            fact("Pod b", "3", Some("2")),
            fact("ReplicaSet b", "2", Some("1")),
            fact("WebApp b", "1", None),
        ];
        assert_eq!(titles(Family::default().of(all)), ["Pod b", "ReplicaSet b", "WebApp b"]);
    }

    #[test]
    fn what_outlives_its_owner_is_shown_until_it_is_gone_too() {
        let mut family = Family::default();
        let (set, pod) = (fact("ReplicaSet b", "2", Some("1")), fact("Pod b", "3", Some("2")));
        family.of(vec![fact("WebApp b", "1", None), set.clone(), pod.clone()]);
        assert_eq!(titles(family.of(vec![set, pod.clone()])), ["ReplicaSet b", "Pod b"]);
        assert_eq!(titles(family.of(vec![pod])), ["Pod b"]);
        assert_eq!(titles(family.of(Vec::new())), [""; 0]);
        assert!(family.0.is_empty());
    }
}

//! The view as plain lines: what is new about each object, once, and what its reader may do next,
//! when there is nothing to wait for any more. Pure: facts in, lines out.

use std::collections::BTreeMap;

use super::health::Health;
use super::tree::Fact;

/// Knows what was said.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    said: BTreeMap<String, Said>,
    /// What is said once nothing is on its way any more; nothing when it was said.
    advice: Option<String>,
}

/// What was said about one object.
#[derive(Debug)]
struct Said {
    state: String,
    /// All its complaints since it was well or on its way: one that fails again and again (to get
    /// its image, to wait, to get its image) says the same again and again.
    complaints: Vec<String>,
}

impl Plain {
    /// Says that in the end.
    pub(crate) fn ending_with(advice: String) -> Self {
        Self { advice: Some(advice), ..Self::default() }
    }

    /// What is to be said now.
    pub(crate) fn news(&mut self, facts: &[Fact]) -> Vec<String> {
        let mut sorted: Vec<&Fact> = facts.iter().collect();
        sorted.sort_by(|a, b| a.title.cmp(&b.title));
        let (mut lines, mut now) = (Vec::new(), BTreeMap::new());
        for Fact { title, state, health, .. } in sorted {
            let before = self.said.remove(title);
            let is_old = before.as_ref().is_some_and(|said| said.state == *state);
            let mut complaints = before.map(|said| said.complaints).unwrap_or_default();
            let mut is_news = !is_old;
            if *health == Health::Failing {
                is_news &= !complaints.contains(state);
                if is_news {
                    complaints.push(state.clone());
                }
            } else {
                complaints.clear();
            }
            if is_news {
                lines.push(format!("{title}: {state}"));
            }
            now.insert(title.clone(), Said { state: state.clone(), complaints });
        }
        lines.extend(self.said.keys().map(|title| format!("{title}: gone")));
        self.said = now;
        let moves = facts.iter().any(|fact| fact.health == Health::OnItsWay);
        if !facts.is_empty() && !moves {
            lines.extend(self.advise());
        }
        lines
    }

    pub(crate) fn owes_advice(&self) -> bool {
        self.advice.is_some()
    }

    /// What its reader may do next, if that was not said before.
    pub(crate) fn advise(&mut self) -> Vec<String> {
        let advice = self.advice.take();
        advice.iter().flat_map(|advice| advice.lines()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::fact;
    use super::*;

    fn pod(health: Health, state: &str) -> Vec<Fact> {
        vec![Fact { health, state: state.to_owned(), ..fact("Pod p", "1", None) }]
    }

    #[test]
    fn every_change_is_told_once_and_the_end_too() {
        let mut plain = Plain::default();
        let running = pod(Health::Well, "Running");
        assert_eq!(plain.news(&running), ["Pod p: Running"]);
        assert_eq!(plain.news(&running), [""; 0]);
        assert_eq!(plain.news(&pod(Health::OnItsWay, "going")), ["Pod p: going"]);
        assert_eq!(plain.news(&[]), ["Pod p: gone"]);
        assert_eq!(plain.news(&running), ["Pod p: Running"]);
    }

    #[test]
    fn complaints_that_take_turns_are_told_once_until_it_is_better() {
        let mut plain = Plain::default();
        let errors =
            [pod(Health::Failing, "ErrImagePull"), pod(Health::Failing, "ImagePullBackOff")];
        let told = [plain.news(&errors[0]), plain.news(&errors[1])].concat();
        assert_eq!(told, ["Pod p: ErrImagePull", "Pod p: ImagePullBackOff"]);
        for turn in 0..6 {
            assert_eq!(plain.news(&errors[turn % 2]), [""; 0]);
        }
        assert_eq!(plain.news(&pod(Health::Well, "Running")), ["Pod p: Running"]);
        assert_eq!(plain.news(&errors[0]), ["Pod p: ErrImagePull"]);
    }

    #[test]
    fn advice_is_told_once_when_nothing_is_on_its_way_any_more() {
        let mut plain = Plain::ending_with("try this\nthen that".to_owned());
        assert_eq!(plain.news(&[]), [""; 0]);
        assert_eq!(plain.news(&pod(Health::OnItsWay, "Pending")), ["Pod p: Pending"]);
        let told = plain.news(&pod(Health::Failing, "ErrImagePull"));
        assert_eq!(told, ["Pod p: ErrImagePull", "try this", "then that"], "it may not get better");
        assert_eq!(plain.news(&pod(Health::Well, "Running")), ["Pod p: Running"]);
        assert!(!plain.owes_advice());
    }

    #[test]
    fn advice_that_is_asked_for_is_not_told_again() {
        let mut plain = Plain::ending_with("try this".to_owned());
        assert!(plain.owes_advice());
        assert_eq!(plain.advise(), ["try this"]);
        assert_eq!(plain.news(&pod(Health::Well, "Running")), ["Pod p: Running"]);
    }
}

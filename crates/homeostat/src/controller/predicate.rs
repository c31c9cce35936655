//! Which changes are worth a reconcile. A predicate sees the object before and after.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::core::SelectorExt;
use serde::Deserialize;
use serde_json::Value;

use crate::cache::{Delta, Entry, selector};
use crate::error::Result;
use crate::kind::View;

/// A test on a change. New and deleted objects pass every ready-made one ([`Self::labelled`] stops
/// those that it does not select), and so does a change that begins a deletion or puts another object
/// (by uid) in the place of the old one. That a primary is gone is heard of whatever a filter says: what
/// is remembered of it is forgotten, and no reconcile runs.
#[derive(Clone)]
pub struct Predicate(Arc<dyn Fn(&Delta) -> bool + Send + Sync>);

impl Predicate {
    /// A test of your own. It must be quick and must not block: it runs in the cache's task.
    ///
    /// It should look at the change alone and keep nothing between two of them. Whether an object
    /// counts when all are looked at once more (by a clock, in a second term as leader) is asked again
    /// wherever that is found out, as if the object had just been added at the start.
    pub fn new(test: impl Fn(&Delta) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(test))
    }

    /// The desired state changed: `metadata.generation` differs. Kinds without a generation pass.
    ///
    /// It drops every other edit: of labels, annotations, finalizers and owner references, and of the
    /// status. A status that somebody wipes stays so until the next edit, and what a reconcile reads
    /// from labels or annotations is not heard of. [`Self::or`] adds what the reconcile looks at.
    ///
    /// ```
    /// use homeostat::Predicate;
    ///
    /// let wanted = Predicate::generation_changed().or(Predicate::annotations_changed());
    /// // What the reconcile says in the status is said again if somebody takes it away.
    /// let wanted = wanted.or(Predicate::status_changed());
    /// ```
    #[must_use]
    pub fn generation_changed() -> Self {
        Self::on_update(|old, new| {
            new.header.generation.is_none() || old.header.generation != new.header.generation
        })
    }

    /// The status differs, whoever wrote it: what a reconcile writes there itself makes it run once
    /// more. Nothing differs in a cache of metadata alone.
    #[must_use]
    pub fn status_changed() -> Self {
        #[derive(Deserialize)]
        struct Told {
            #[serde(default)]
            status: Value,
        }
        Self::on_update(|old, new| match (old.decode::<Told>(), new.decode::<Told>()) {
            (Ok(old), Ok(new)) => old.status != new.status,
            _ => true,
        })
    }

    /// The labels differ.
    #[must_use]
    pub fn labels_changed() -> Self {
        Self::on_update(|old, new| old.header.labels != new.header.labels)
    }

    /// The labels match `selector` (`a=b,c in (d,e)`), before the change or after it: what enters
    /// the selection passes, and so does what leaves it. Whoever has left it and is deleted later
    /// passes once more, so that its finalizers are carried out. [`crate::Controller::labels`] and
    /// [`super::Related::labels`] keep the others out of the cache as well.
    ///
    /// # Errors
    /// A terminal [`crate::Error`] when the selector cannot be read.
    pub fn labelled(selector: &str) -> Result<Self> {
        let selector = selector::parse(selector)?;
        Ok(Self::new(move |delta| {
            let (old, new) = (delta.old.as_ref(), delta.new.as_ref());
            let goes =
                |side: Option<&Arc<Entry>>| side.is_some_and(|s| s.header.is_being_deleted());
            let is_another =
                old.zip(new).is_some_and(|(old, new)| old.header.uid != new.header.uid);
            let mut sides = old.into_iter().chain(new);
            goes(old) != goes(new)
                || is_another
                || sides.any(|side| selector.matches(&side.header.labels))
        }))
    }

    /// The annotations differ.
    #[must_use]
    pub fn annotations_changed() -> Self {
        Self::on_update(|old, new| old.annotations() != new.annotations())
    }

    /// The finalizers differ.
    #[must_use]
    pub fn finalizers_changed() -> Self {
        Self::on_update(|old, new| old.header.finalizers != new.header.finalizers)
    }

    /// A test on the object before and after, as its type; an added object has no before, a
    /// deleted one no after. What cannot be decoded passes: the reconcile will say why.
    pub fn typed<K: View>(
        test: impl Fn(Option<&K>, Option<&K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |delta| {
            let decode = |side: &Option<Arc<Entry>>| {
                side.as_ref().map(|entry| entry.decode::<K>()).transpose()
            };
            match (decode(&delta.old), decode(&delta.new)) {
                (Ok(old), Ok(new)) => test(old.as_ref(), new.as_ref()),
                _ => true,
            }
        })
    }

    /// What `view` shows of the object differs.
    ///
    /// ```
    /// use homeostat::Predicate;
    /// use homeostat::k8s_openapi::api::core::v1::Pod;
    ///
    /// let moved = Predicate::changed(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
    /// ```
    pub fn changed<K: View, V: PartialEq>(view: impl Fn(&K) -> V + Send + Sync + 'static) -> Self {
        Self::on_update(move |old, new| match (old.decode::<K>(), new.decode::<K>()) {
            (Ok(old), Ok(new)) => view(&old) != view(&new),
            _ => true,
        })
    }

    /// Both pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |delta| self.passes(delta) && other.passes(delta))
    }

    /// At least one passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |delta| self.passes(delta) || other.passes(delta))
    }

    /// What this one stops passes, and the other way round: new and deleted objects too.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "one of three combinators, not an operator")]
    pub fn not(self) -> Self {
        Self::new(move |delta| !self.passes(delta))
    }

    /// Whether the change passes. It does when the test panics: a reconcile too many is better
    /// than one too few.
    #[must_use]
    pub fn passes(&self, delta: &Delta) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.0)(delta))).unwrap_or_else(|_| {
            tracing::error!(key = %delta.key(), "a predicate panicked");
            true
        })
    }

    fn on_update(differs: impl Fn(&Entry, &Entry) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |delta| match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => {
                old.header.uid != new.header.uid
                    || old.header.is_being_deleted() != new.header.is_being_deleted()
                    || differs(old, new)
            }
            _ => true,
        })
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::Kind;
    use crate::trigger::EventKind;

    fn delta(old: &Value, new: &Value) -> Delta {
        let kind = Kind::new("", "v1", "Pod", "pods", true);
        let entry = |metadata: &Value| {
            let mut object = json!({ "metadata": { "name": "a", "namespace": "b", "uid": "1" } });
            let fields = metadata.as_object().cloned().unwrap_or_default();
            object["metadata"].as_object_mut().unwrap().extend(fields);
            Some(Arc::new(Entry::parse(&kind, &object.to_string(), false).unwrap()))
        };
        Delta { change: EventKind::Updated, old: entry(old), new: entry(new), initial: false }
    }

    #[test]
    fn each_one_sees_its_own_part_and_they_combine() {
        let labelled =
            delta(&json!({ "generation": 1 }), &json!({ "generation": 1, "labels": { "a": "b" } }));
        let edited = delta(&json!({ "generation": 1 }), &json!({ "generation": 2 }));
        let noted = delta(
            &json!({ "generation": 1 }),
            &json!({ "generation": 1, "annotations": { "a": "b" } }),
        );
        let all = [&labelled, &edited, &noted];
        let passes = |predicate: &Predicate| all.map(|delta| predicate.passes(delta));
        let (labels, generation) = (Predicate::labels_changed(), Predicate::generation_changed());
        assert_eq!(passes(&labels), [true, false, false]);
        assert_eq!(passes(&generation), [false, true, false]);
        assert_eq!(passes(&Predicate::annotations_changed()), [false, false, true]);
        assert_eq!(passes(&labels.clone().or(generation.clone())), [true, true, false]);
        assert_eq!(passes(&labels.clone().and(generation)), [false, false, false]);
        assert_eq!(passes(&labels.not()), [false, true, true]);
    }

    #[test]
    fn finalizers_that_come_or_go_pass_and_other_metadata_does_not() {
        let finalizers = Predicate::finalizers_changed();
        let (none, one) = (json!({}), json!({ "finalizers": ["a.b/c"] }));
        let two = json!({ "finalizers": ["a.b/c", "a.b/d"], "labels": { "a": "b" } });
        let other = json!({ "finalizers": ["a.b/c"], "labels": { "a": "b" }, "generation": 2 });
        let passes = |old, new| finalizers.passes(&delta(old, new));
        assert!(passes(&none, &one) && passes(&one, &none) && passes(&one, &two));
        assert!(!passes(&one, &one) && !passes(&one, &other));
    }

    #[test]
    fn a_namesake_and_a_deletion_pass_though_the_generation_is_the_same() {
        let generation = Predicate::generation_changed();
        let same = json!({ "generation": 1 });
        assert!(!generation.passes(&delta(&same, &same)));
        assert!(generation.passes(&delta(&same, &json!({ "generation": 1, "uid": "2" }))));
        let going = json!({ "generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z" });
        assert!(generation.passes(&delta(&same, &going)));
    }

    #[test]
    fn what_enters_a_selection_passes_and_what_leaves_it() {
        let (out, within) = (json!({}), json!({ "labels": { "a": "b" } }));
        let selected = Predicate::labelled("a in (b)").unwrap();
        assert!(selected.passes(&delta(&out, &within)) && selected.passes(&delta(&within, &out)));
        assert!(selected.passes(&delta(&within, &within)) && !selected.passes(&delta(&out, &out)));
        assert!(Predicate::labelled("a in b").unwrap_err().is_terminal());
    }

    #[test]
    fn a_deletion_passes_a_label_filter_that_the_object_has_left() {
        let selected = Predicate::labelled("a=b").unwrap();
        let (out, at) = (json!({}), "2026-01-01T00:00:00Z");
        let going = json!({ "deletionTimestamp": at });
        assert!(selected.passes(&delta(&out, &going)), "its finalizers are to be carried out");
        assert!(!selected.passes(&delta(&going, &going)));
        let found = Delta { change: EventKind::Added, old: None, ..delta(&out, &going) };
        assert!(selected.passes(&found), "so it may be at the start");
        let gone = Delta { change: EventKind::Deleted, new: None, ..delta(&going, &out) };
        assert!(selected.passes(&gone));
        assert!(selected.passes(&delta(&out, &json!({ "uid": "2" }))), "a namesake");
        let new = Delta { change: EventKind::Added, old: None, ..delta(&out, &out) };
        assert!(!selected.passes(&new), "it was never selected");
    }

    #[test]
    fn one_that_panics_lets_the_change_through() {
        let same = json!({});
        assert!(Predicate::new(|_| panic!("oh")).passes(&delta(&same, &same)));
    }
}

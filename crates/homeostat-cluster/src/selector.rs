//! Label selectors: matching, their text form, and who is interested in which labels.
//!
//! [`Interest`] answers the question "whose selector matches these labels?" for event mapping. It
//! is filled by reconciles and never reads the API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat::Key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels of an object; absent labels are an empty map.
pub(crate) type Labels = BTreeMap<String, String>;

/// Whether `labels` satisfy every part of `selector`. An empty selector matches everything.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let exact = selector.match_labels.iter().flatten().all(|(key, want)| value(key) == Some(want));
    exact
        && selector.match_expressions.iter().flatten().all(|requirement| {
            let found = value(&requirement.key);
            let listed =
                || found.is_some_and(|v| requirement.values.iter().flatten().any(|w| w == v));
            match requirement.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

/// A selector of exact labels, as Services have it.
pub(crate) fn exact(labels: &Labels) -> LabelSelector {
    LabelSelector { match_labels: Some(labels.clone()), match_expressions: None }
}

/// Whether the selector names nothing, and so must not be used to claim objects.
pub(crate) fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// The selectors that reconciles have seen, by the key of the object that carries them.
///
/// A reconcile records its selector before it lists; an object that appears later is then mapped
/// to the key, one that appeared earlier is in the list: no wake-up is lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interest {
    selectors: Arc<Mutex<BTreeMap<Key, LabelSelector>>>,
}

impl Interest {
    /// Notes that `key` cares about objects in its namespace that match `selector`.
    pub(crate) fn record(&self, key: &Key, selector: &LabelSelector) {
        let mut selectors = self.selectors.lock().unwrap_or_else(PoisonError::into_inner);
        if selectors.get(key) != Some(selector) {
            selectors.insert(key.clone(), selector.clone());
        }
    }

    /// Every key that cares about anything.
    pub(crate) fn all(&self) -> Vec<Key> {
        let selectors = self.selectors.lock().unwrap_or_else(PoisonError::into_inner);
        selectors.keys().cloned().collect()
    }

    /// The keys in `namespace` whose selector matches `labels`.
    pub(crate) fn matching(&self, namespace: Option<&str>, labels: Option<&Labels>) -> Vec<Key> {
        let selectors = self.selectors.lock().unwrap_or_else(PoisonError::into_inner);
        selectors
            .iter()
            .filter(|(key, selector)| key.namespace() == namespace && matches(selector, labels))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn every_requirement_must_hold() {
        let selector = LabelSelector {
            match_labels: Some(labels(&[("app", "web")])),
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "tier".into(),
                operator: "NotIn".into(),
                values: Some(vec!["test".into()]),
            }]),
        };
        assert!(matches(&selector, Some(&labels(&[("app", "web")]))));
        assert!(!matches(&selector, Some(&labels(&[("app", "web"), ("tier", "test")]))));
        assert!(!matches(&selector, None));
    }

    #[test]
    fn interest_is_bounded_by_the_namespace() {
        let interest = Interest::default();
        let key = Key::namespaced("a", "web");
        interest.record(&key, &exact(&labels(&[("app", "web")])));
        let found = labels(&[("app", "web")]);
        assert_eq!(interest.matching(Some("a"), Some(&found)), [key]);
        assert!(interest.matching(Some("b"), Some(&found)).is_empty());
    }
}

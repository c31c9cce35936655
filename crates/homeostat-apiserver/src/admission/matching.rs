//! Which requests a webhook or a policy is about: rules, scopes, selectors and equivalent versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Operation, Review};
use crate::kinds::Kind;
use crate::registry::{convert, metadata};

/// Nothing that admits is itself admitted: a broken configuration could never be mended.
const EXEMPT: &[&str] = &[
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Whether neither webhooks nor policies see the request.
pub(super) fn is_exempt(review: &Review<'_>) -> bool {
    review.kind.group == "admissionregistration.k8s.io"
        && EXEMPT.contains(&review.kind.plural.as_str())
}

/// Whether the request asks who somebody is or may do what: policies stay out of it, since one that
/// is wrong could lock everybody out. Webhooks see it.
pub(super) fn is_question(review: &Review<'_>) -> bool {
    matches!(review.kind.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
        && !review.kind.is_stored()
}

/// The kind in whose form the object is shown, or nothing when the request does not match.
///
/// `criteria` has `namespaceSelector`, `objectSelector` and `matchPolicy`; `rules` are its rules.
pub(super) fn matched(review: &Review<'_>, criteria: &Value, rules: &[Value]) -> Option<Arc<Kind>> {
    if !in_namespaces(review, criteria.get("namespaceSelector"))
        || !selects_object(review, criteria.get("objectSelector"))
    {
        return None;
    }
    rule_kind(review, criteria, rules)
}

/// As `matched`, for the `matchConstraints` of a policy or the `matchResources` of a binding: no
/// rules at all match everything, and some requests may be excluded.
pub(super) fn matched_resources(review: &Review<'_>, criteria: &Value) -> Option<Arc<Kind>> {
    let list =
        |field: &str| criteria.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if rule_kind(review, criteria, list("excludeResourceRules")).is_some() {
        return None;
    }
    match list("resourceRules") {
        [] => matched(review, criteria, &[]).or_else(|| {
            let applies = in_namespaces(review, criteria.get("namespaceSelector"))
                && selects_object(review, criteria.get("objectSelector"));
            applies.then(|| Arc::new(review.kind.clone()))
        }),
        rules => matched(review, criteria, rules),
    }
}

fn rule_kind(review: &Review<'_>, criteria: &Value, rules: &[Value]) -> Option<Arc<Kind>> {
    if rules.iter().any(|rule| rule_matches(review, review.kind, rule)) {
        return Some(Arc::new(review.kind.clone()));
    }
    let policy = criteria.get("matchPolicy").and_then(Value::as_str).unwrap_or("Equivalent");
    if policy != "Equivalent" || rules.is_empty() {
        return None;
    }
    let catalogue = review.writer.registry.catalogue();
    let equivalent = |other: &&Arc<Kind>| {
        convert::resource(other) == convert::resource(review.kind)
            && (review.subresource.is_empty() || other.subresource(review.subresource).is_some())
    };
    let others: Vec<&Arc<Kind>> = catalogue.all().iter().filter(equivalent).collect();
    rules
        .iter()
        .find_map(|rule| others.iter().find(|other| rule_matches(review, other, rule)))
        .map(|kind| Arc::clone(kind))
}

fn rule_matches(review: &Review<'_>, kind: &Kind, rule: &Value) -> bool {
    let list = |field: &str| rule.get(field).and_then(Value::as_array).into_iter().flatten();
    let one_of = |field: &str, wanted: &str| {
        list(field).filter_map(Value::as_str).any(|item| item == "*" || item == wanted)
    };
    let namespaced = review.kind.namespaced;
    let scope = match rule.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => namespaced,
        Some("Cluster") => !namespaced,
        _ => true,
    };
    let resource = list("resources").filter_map(Value::as_str).any(|item| {
        let (resource, sub) = item.split_once('/').unwrap_or((item, ""));
        (resource == "*" || resource == kind.plural) && (sub == "*" || sub == review.subresource)
    });
    let named = rule.get("resourceNames").and_then(Value::as_array).is_none_or(|names| {
        names.is_empty() || names.iter().any(|name| name.as_str() == Some(review.name))
    });
    scope
        && resource
        && named
        && one_of("operations", review.operation.word())
        && one_of("apiGroups", &kind.group)
        && one_of("apiVersions", &kind.version)
}

fn in_namespaces(review: &Review<'_>, selector: Option<&Value>) -> bool {
    let is_namespace = review.kind.group.is_empty() && review.kind.plural == "namespaces";
    if !review.kind.namespaced && !is_namespace {
        return true;
    }
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else { return true };
    if !is_namespace {
        let found = review.writer.registry.peek("namespaces", "", review.namespace);
        return found.is_some_and(|found| selects(selector, &metadata::labels(&found)));
    }
    let written = review.subresource.is_empty() && review.operation != Operation::Delete;
    let space = if written { Some(&review.object) } else { review.old };
    space.is_some_and(|space| selects(selector, &metadata::labels(space)))
}

fn selects_object(review: &Review<'_>, selector: Option<&Value>) -> bool {
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else { return true };
    // The options of a connect have no labels to select by.
    let is_selected = |object: &Value| {
        object.get("metadata").is_some() && selects(selector, &metadata::labels(object))
    };
    is_selected(&review.object) || review.old.is_some_and(is_selected)
}

fn is_empty(selector: &Value) -> bool {
    selector.as_object().is_none_or(|fields| {
        fields.values().all(|field| match field {
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => true,
        })
    })
}

/// Whether a `LabelSelector` selects these labels.
pub(crate) fn selects(selector: &Value, labels: &BTreeMap<&str, &str>) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    wanted.into_iter().all(|(key, value)| labels.get(key.as_str()).copied() == value.as_str())
        && expressions.into_iter().flatten().all(|expression| {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or("");
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: Vec<&str> = values.filter_map(Value::as_str).collect();
            let own = labels.get(text("key"));
            match text("operator") {
                "In" => own.is_some_and(|own| values.contains(own)),
                "NotIn" => !own.is_some_and(|own| values.contains(own)),
                "Exists" => own.is_some(),
                "DoesNotExist" => own.is_none(),
                _ => false,
            }
        })
}

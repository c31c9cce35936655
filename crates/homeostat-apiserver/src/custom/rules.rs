//! `x-kubernetes-validations` of a schema: whether they are well written, fit the types they speak
//! of, and cannot cost too much.

use serde_json::Value;

use super::{RULE, flag, list, text};
use crate::field::{FieldError, Reason};
use crate::go::internal;
use homeostat_cel::{Decl, Source, Type, check as check_types, most_cost};

/// What one rule may cost at most, as estimated.
const RULE_LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost together.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// The largest request, in bytes: what bounds how often something can be there.
const LARGEST_REQUEST: i64 = 3 * 1024 * 1024;

const UNSEEN: &str = "internal error: failed to construct type information for \
                      x-kubernetes-validations rules: unable to convert structural schema to CEL \
                      declarations";

const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the rules of a schema that is structural. What did not change (`is_known`) was cheap
/// enough once and may stay. Where the schema itself is wrong (`wrong`), rules are not looked at.
pub(super) fn check(
    document: &Value,
    path: &str,
    is_known: bool,
    wrong: &[FieldError],
) -> Vec<FieldError> {
    let mut walk = Walk { is_known, wrong, errors: Vec::new(), total: 0, expensive: Vec::new() };
    let root = Place {
        path: path.to_owned(),
        is_root: true,
        times: Some(1),
        unrelated: None,
        is_ruled: false,
        is_unseen: false,
    };
    walk.node(document, root);
    let Walk { mut errors, total, mut expensive, .. } = walk;
    if total > SCHEMA_LIMIT {
        expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        for (path, _) in expensive.into_iter().take(4) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for \
                          entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(path, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, excess(what, total, SCHEMA_LIMIT)));
    }
    errors
}

/// One node of a schema.
struct Place {
    path: String,
    is_root: bool,
    /// How often it can be there, where the schema says so.
    times: Option<u64>,
    /// The list above it whose items have no identity.
    unrelated: Option<String>,
    /// Whether it or a node above it has rules.
    is_ruled: bool,
    /// Whether expressions cannot see it, or one of those above it that are ruled.
    is_unseen: bool,
}

struct Walk<'a> {
    is_known: bool,
    wrong: &'a [FieldError],
    errors: Vec<FieldError>,
    total: u64,
    expensive: Vec<(String, u64)>,
}

impl Walk<'_> {
    fn node(&mut self, document: &Value, mut place: Place) {
        let rules: Vec<&Value> = list(document, "/x-kubernetes-validations").collect();
        let is_object = place.is_root || flag(document, "x-kubernetes-embedded-resource");
        place.is_ruled |= !rules.is_empty();
        let decl = Some(document).filter(|_| place.is_ruled);
        let decl = decl.and_then(|document| Decl::of(document, is_object, "selfType"));
        place.is_unseen |= place.is_ruled && decl.is_none();
        self.below(document, &place);
        let is_wrong = self.wrong.iter().any(|error| error.path.starts_with(&place.path));
        if rules.is_empty() || is_wrong {
            return;
        }
        let Some(decl) = decl.filter(|_| !place.is_unseen) else {
            self.errors.push(FieldError {
                path: format!("{}.x-kubernetes-validations", place.path),
                reason: Reason::Internal,
                value: None,
                detail: UNSEEN.to_owned(),
            });
            return;
        };
        let place = &place;
        for (index, rule) in rules.iter().enumerate() {
            let path = format!("{}.x-kubernetes-validations[{index}]", place.path);
            self.rule(rule, &decl, place, &path);
        }
    }

    fn rule(&mut self, rule: &Value, decl: &Decl, place: &Place, path: &str) {
        let optional = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
        let old = if optional { Type::optional(decl.ty.clone()) } else { decl.ty.clone() };
        let variables = [("self", decl.ty.clone()), ("oldSelf", old)];
        let compiled = |expression: &str| {
            let source = Source::parse(expression)?;
            let checked = check_types(&source, &variables)?;
            let cost = most_cost(&source.root, &checked, decl);
            Ok::<_, String>((checked, cost))
        };
        let invalid = |field: &str, detail: &str| {
            let shown = internal::form(RULE, rule);
            FieldError::new(format!("{path}.{field}"), Reason::Invalid, shown, detail)
        };
        let mut uses_old = false;
        match compiled(text(rule, "/rule")) {
            Err(why) => {
                self.errors.push(invalid("rule", &format!("compilation failed: {why}")));
            }
            Ok((checked, _)) if checked.ty != Type::Bool => {
                self.errors.push(invalid("rule", "cel expression must evaluate to a bool"));
            }
            Ok((checked, cost)) => {
                uses_old = checked.uses.contains("oldSelf");
                let times = place.times.unwrap_or_else(|| {
                    u64::try_from(LARGEST_REQUEST / (decl.min_size + 1)).unwrap_or(u64::MAX)
                });
                self.charge(
                    "estimated rule cost",
                    format!("{path}.rule"),
                    cost.saturating_mul(times),
                );
                let message = text(rule, "/messageExpression");
                let field = "messageExpression";
                match Some(message).filter(|message| !message.is_empty()).map(compiled) {
                    None => {}
                    Some(Err(why)) => {
                        let detail = format!("messageExpression compilation failed: {why}");
                        self.errors.push(invalid(field, &detail));
                    }
                    Some(Ok((checked, _))) if checked.ty != Type::String => {
                        let detail = "messageExpression must evaluate to a string";
                        self.errors.push(invalid(field, detail));
                    }
                    Some(Ok((_, cost))) => {
                        let what = "estimated messageExpression cost";
                        self.charge(what, format!("{path}.{field}"), cost);
                    }
                }
            }
        }
        match (&place.unrelated, rule.get("optionalOldSelf")) {
            (Some(above), _) if uses_old => {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {above}"
                );
                let rule = text(rule, "/rule").into();
                self.errors.push(FieldError::new(
                    format!("{path}.rule"),
                    Reason::Invalid,
                    rule,
                    detail,
                ));
            }
            (_, Some(given)) if !uses_old && !given.is_null() => self.errors.push(FieldError::new(
                format!("{path}.optionalOldSelf"),
                Reason::Invalid,
                given.clone(),
                "may not be set if oldSelf is not used in rule",
            )),
            _ => {}
        }
    }

    fn charge(&mut self, what: &str, path: String, cost: u64) {
        if cost > RULE_LIMIT && !self.is_known {
            self.errors.push(FieldError::forbidden(path.as_str(), excess(what, cost, RULE_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((path, cost));
        }
    }

    fn below(&mut self, document: &Value, place: &Place) {
        let count = |field: &str| document.get(field).and_then(Value::as_u64);
        let child = |path: String, most: Option<u64>, related: bool| Place {
            path,
            is_root: false,
            is_ruled: place.is_ruled,
            is_unseen: place.is_unseen,
            times: place.times.zip(most).map(|(times, most)| times.saturating_mul(most)),
            unrelated: match &place.unrelated {
                None if !related => Some(place.path.clone()),
                above => above.clone(),
            },
        };
        let path = &place.path;
        let fields = document.get("properties").and_then(Value::as_object);
        let in_order: std::collections::BTreeMap<_, _> = fields.into_iter().flatten().collect();
        for (name, field) in in_order {
            let related = text(document, "/x-kubernetes-map-type") != "atomic";
            self.node(field, child(format!("{path}.properties[{name}]"), Some(1), related));
        }
        if let Some(values) = document.get("additionalProperties").filter(|v| v.is_object()) {
            let path = format!("{path}.additionalProperties");
            self.node(values, child(path, count("maxProperties"), true));
        }
        if let Some(items) = document.get("items").filter(|items| items.is_object()) {
            let related = text(document, "/x-kubernetes-list-type") == "map";
            self.node(items, child(format!("{path}.items"), count("maxItems"), related));
        }
    }
}

/// What is wrong with a rule before anybody reads its expressions.
pub(super) fn wording(document: &Value, rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let given = |name: &str| text(rule, &format!("/{name}"));
    let invalid = |field: &str, detail: &str| {
        FieldError::new(format!("{path}.{field}"), Reason::Invalid, given(field).into(), detail)
    };
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let (expression, message) = (given("rule").trim(), given("message").trim());
    if expression.is_empty() {
        errors.push(FieldError::required(format!("{path}.rule"), "rule is not specified"));
    } else if !given("message").is_empty() && message.is_empty() {
        errors.push(invalid("message", "must be non-empty if specified"));
    } else if has_lines(message) {
        errors.push(invalid("message", "must not contain line breaks"));
    } else if has_lines(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(format!("{path}.message"), detail));
    }
    if !given("messageExpression").is_empty() && given("messageExpression").trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(format!("{path}.messageExpression"), detail));
    }
    let reason = rule.get("reason").and_then(Value::as_str);
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        let known: Vec<String> = REASONS.iter().map(|reason| format!("{reason:?}")).collect();
        errors.push(FieldError::new(
            format!("{path}.reason"),
            Reason::NotSupported,
            reason.into(),
            format!("supported values: {}", known.join(", ")),
        ));
    }
    let place = given("fieldPath");
    if !place.is_empty() && place.trim().is_empty() {
        errors.push(invalid("fieldPath", "must be non-empty if specified"));
    }
    if has_lines(place) {
        errors.push(invalid("fieldPath", "must not contain line breaks"));
    }
    if !place.is_empty() && !is_path(document, place) {
        errors.push(invalid("fieldPath", "must be a valid path"));
    }
}

/// Whether `.a.b['c']` leads somewhere in the schema.
fn is_path(document: &Value, path: &str) -> bool {
    let (mut schema, mut rest) = (document, path);
    while !rest.is_empty() {
        let name = if let Some(after) = rest.strip_prefix("['") {
            let Some((name, after)) = after.split_once("']") else { return false };
            rest = after;
            name.replace("\\'", "'")
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            rest = &after[end..];
            after[..end].to_owned()
        } else {
            return false;
        };
        let field = schema.get("properties").and_then(|fields| fields.get(&name));
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        match field.or(values) {
            Some(below) => schema = below,
            None => return false,
        }
    }
    true
}

/// By how much a cost is too high.
fn excess(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

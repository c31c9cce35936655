//! Metrics in the words of the first version and of the second: the same facts at other places.

use serde_json::{Map, Value, json};

/// What stands in the first version for something that is not there in the second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// Nothing.
    Nothing,
    /// An empty text.
    Empty,
    /// No amount.
    Zero,
}

use Absent::{Empty, Nothing, Zero};

/// A fact: its name in the first version, its place in the second.
type Fact = (&'static str, &'static str, Absent);

/// What is aimed at, by the source of the metric, in the order in which it is written.
const TARGETS: &[(&str, &[Fact])] = &[
    (
        "object",
        &[
            ("target", "/describedObject", Nothing),
            ("metricName", "/metric/name", Empty),
            ("targetValue", "/target/value", Zero),
            ("selector", "/metric/selector", Nothing),
            ("averageValue", "/target/averageValue", Nothing),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", Empty),
            ("targetAverageValue", "/target/averageValue", Zero),
            ("selector", "/metric/selector", Nothing),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", Empty),
            ("targetAverageUtilization", "/target/averageUtilization", Nothing),
            ("targetAverageValue", "/target/averageValue", Nothing),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", Empty),
            ("targetAverageUtilization", "/target/averageUtilization", Nothing),
            ("targetAverageValue", "/target/averageValue", Nothing),
            ("container", "/container", Empty),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", Empty),
            ("metricSelector", "/metric/selector", Nothing),
            ("targetValue", "/target/value", Nothing),
            ("targetAverageValue", "/target/averageValue", Nothing),
        ],
    ),
];

/// What is measured.
const MEASURES: &[(&str, &[Fact])] = &[
    (
        "object",
        &[
            ("target", "/describedObject", Nothing),
            ("metricName", "/metric/name", Empty),
            ("currentValue", "/current/value", Zero),
            ("selector", "/metric/selector", Nothing),
            ("averageValue", "/current/averageValue", Nothing),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", Empty),
            ("currentAverageValue", "/current/averageValue", Zero),
            ("selector", "/metric/selector", Nothing),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", Empty),
            ("currentAverageUtilization", "/current/averageUtilization", Nothing),
            ("currentAverageValue", "/current/averageValue", Zero),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", Empty),
            ("currentAverageUtilization", "/current/averageUtilization", Nothing),
            ("currentAverageValue", "/current/averageValue", Zero),
            ("container", "/container", Empty),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", Empty),
            ("metricSelector", "/metric/selector", Nothing),
            ("currentValue", "/current/value", Zero),
            ("currentAverageValue", "/current/averageValue", Nothing),
        ],
    ),
];

/// The fields of behavior. The first version writes them as Go names them.
const DIRECTIONS: [&str; 2] = ["scaleUp", "scaleDown"];
const RULES: [&str; 4] = ["stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"];
const POLICY: [&str; 3] = ["type", "value", "periodSeconds"];

pub(super) fn targets_to_first(metrics: &[&Value]) -> Value {
    metrics.iter().map(|metric| to_first(metric, TARGETS)).collect()
}

pub(super) fn measures_to_first(metrics: &[&Value]) -> Value {
    metrics.iter().map(|metric| to_first(metric, MEASURES)).collect()
}

pub(super) fn targets_to_second(metrics: &Value) -> Option<Value> {
    let metrics = metrics.as_array()?.iter();
    Some(
        metrics
            .map(|metric| {
                let mut metric = to_second(metric, TARGETS);
                for (sort, _) in TARGETS {
                    if let Some(source) = metric.get_mut(*sort) {
                        complete_target(sort, source);
                    }
                }
                metric
            })
            .collect(),
    )
}

pub(super) fn measures_to_second(metrics: &Value) -> Option<Value> {
    Some(metrics.as_array()?.iter().map(|metric| to_second(metric, MEASURES)).collect())
}

fn to_first(metric: &Value, sources: &[(&str, &[Fact])]) -> Value {
    let mut out = json!({"type": metric["type"]});
    for (sort, facts) in sources {
        let Some(source) = metric.get(*sort).filter(|source| !source.is_null()) else { continue };
        let mut written = Map::new();
        for (name, place, absent) in *facts {
            let value = match (source.pointer(place), absent) {
                (Some(object), _) if *name == "target" => {
                    ordered(object, &["kind", "name", "apiVersion"])
                }
                (Some(selector), _) if name.ends_with("elector") => self::selector(selector),
                (Some(value), _) => value.clone(),
                (None, Nothing) => continue,
                (None, Empty) => json!(""),
                (None, Zero) => json!("0"),
            };
            written.insert((*name).to_owned(), value);
        }
        out[*sort] = Value::Object(written);
    }
    out
}

fn to_second(metric: &Value, sources: &[(&str, &[Fact])]) -> Value {
    let Some(given) = metric.as_object() else { return metric.clone() };
    let mut out = json!({"type": named(given, "type").cloned().unwrap_or_else(|| json!(""))});
    for (sort, facts) in sources {
        let source = named(given, sort).filter(|source| !source.is_null());
        let Some(source) = source else { continue };
        let Some(source) = source.as_object() else {
            // Whoever reads it says that it is none.
            out[*sort] = source.clone();
            continue;
        };
        let mut written = json!({});
        for (name, place, absent) in *facts {
            let value = match (named(source, name).filter(|value| !value.is_null()), absent) {
                (Some(value), _) => value.clone(),
                (None, Nothing) => continue,
                (None, Empty) => json!(""),
                (None, Zero) => json!("0"),
            };
            let (parent, field) = place[1..].split_once('/').unwrap_or(("", &place[1..]));
            if parent.is_empty() {
                written[field] = value;
            } else {
                written[parent][field] = value;
            }
        }
        out[*sort] = written;
    }
    out
}

/// The second version says which of its amounts counts.
fn complete_target(sort: &str, source: &mut Value) {
    let has = |source: &Value, field: &str| source.pointer(&format!("/target/{field}")).is_some();
    let ty = match sort {
        "object" if !has(source, "averageValue") => "Value",
        "external" if has(source, "value") => "Value",
        "resource" | "containerResource" if has(source, "averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    if !source.is_object() {
        return;
    }
    // The first version cannot leave the amount out.
    if sort == "object" && ty == "AverageValue" && source["target"]["value"] == "0" {
        source["target"].as_object_mut().map(|target| target.shift_remove("value"));
    }
    source["target"]["type"] = ty.into();
}

pub(super) fn condition(condition: &Value) -> Value {
    let mut out = ordered(condition, &["type", "status"]);
    out["lastTransitionTime"] = condition.get("lastTransitionTime").cloned().unwrap_or_default();
    for field in ["reason", "message"] {
        if let Some(text) = condition.get(field).filter(|text| **text != json!("")) {
            out[field] = text.clone();
        }
    }
    out
}

pub(super) fn behavior_to_first(behavior: &Value) -> Value {
    go_names(behavior, &DIRECTIONS, |_, rules| {
        go_names(rules, &RULES, |name, value| match value {
            Value::Array(policies) if name == "policies" => {
                policies.iter().map(|policy| go_names(policy, &POLICY, |_, v| v.clone())).collect()
            }
            value => value.clone(),
        })
    })
}

pub(super) fn behavior_to_second(behavior: &Value) -> Value {
    json_names(behavior, &DIRECTIONS, |_, rules| {
        json_names(rules, &RULES, |name, value| match value {
            Value::Array(policies) if name == "policies" => policies
                .iter()
                .map(|policy| json_names(policy, &POLICY, |_, v| v.clone()))
                .collect(),
            value => value.clone(),
        })
    })
}

/// All fields under Go's names, those that are not there as `null`.
fn go_names(value: &Value, fields: &[&str], below: impl Fn(&str, &Value) -> Value) -> Value {
    let Some(given) = value.as_object() else { return value.clone() };
    let name = |field: &str| format!("{}{}", field[..1].to_uppercase(), &field[1..]);
    let all = fields.iter().map(|field| {
        let value = given.get(*field).map_or(Value::Null, |value| below(field, value));
        (name(field), value)
    });
    Value::Object(all.collect())
}

fn json_names(value: &Value, fields: &[&str], below: impl Fn(&str, &Value) -> Value) -> Value {
    let Some(given) = value.as_object() else { return value.clone() };
    let all = fields.iter().filter_map(|field| {
        let value = named(given, field).filter(|value| !value.is_null())?;
        Some(((*field).to_owned(), below(field, value)))
    });
    Value::Object(all.collect())
}

/// The field of that name; Go does not care about capitals.
fn named<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let alike = || object.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name));
    object.get(name).or_else(|| alike().map(|(_, value)| value))
}

/// These fields of an object, in this order.
fn ordered(object: &Value, fields: &[&str]) -> Value {
    let given = fields.iter().filter_map(|field| {
        let value = object.get(*field)?;
        Some(((*field).to_owned(), value.clone()))
    });
    Value::Object(given.collect())
}

fn selector(selector: &Value) -> Value {
    let mut out = ordered(selector, &["matchLabels", "matchExpressions"]);
    out.get_mut("matchLabels").and_then(Value::as_object_mut).map(Map::sort_keys);
    let expressions = out.get_mut("matchExpressions").and_then(Value::as_array_mut);
    for expression in expressions.into_iter().flatten() {
        *expression = ordered(expression, &["key", "operator", "values"]);
    }
    out
}

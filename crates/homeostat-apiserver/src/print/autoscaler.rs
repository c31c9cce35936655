//! The targets of an autoscaler: what is measured beside what is aimed at.

use serde_json::{Value, json};

use super::Row;
use crate::autoscaling;

/// How many are shown.
const SHOWN: usize = 2;
const UNKNOWN: &str = "<unknown>";

pub(super) fn targets(row: &Row<'_>) -> Value {
    let object = autoscaling::in_second(row.object);
    let list = |place: &str| object.pointer(place).and_then(Value::as_array).cloned();
    let metrics = list("/spec/metrics").unwrap_or_default();
    let measured = list("/status/currentMetrics").unwrap_or_default();
    if metrics.is_empty() {
        return json!("<none>");
    }
    let all = metrics.iter().enumerate().map(|(at, metric)| target(metric, measured.get(at)));
    let shown: Vec<String> = all.take(SHOWN).collect();
    let more = metrics.len().saturating_sub(SHOWN);
    let shown = shown.join(", ");
    json!(if more > 0 { format!("{shown} + {more} more...") } else { shown })
}

/// One of them, with what was measured in its place.
fn target(metric: &Value, measured: Option<&Value>) -> String {
    let sort = match metric["type"].as_str().unwrap_or_default() {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let aimed = |field: &str| metric.pointer(&format!("/{sort}/target/{field}"));
    let source = measured.and_then(|measured| measured.get(sort));
    let current = |field: &str| source?.pointer(&format!("/current/{field}"));
    let amount = |value: Option<&Value>, or: &str| {
        value.and_then(Value::as_str).map_or_else(|| or.to_owned(), str::to_owned)
    };
    // An amount that is not there, in a measure that is, is none.
    let absent = if source.is_some() { "<nil>" } else { UNKNOWN };
    match sort {
        "external" | "object" => match aimed("averageValue") {
            Some(average) => {
                let now = amount(current("averageValue"), UNKNOWN);
                format!("{now}/{} (avg)", amount(Some(average), ""))
            }
            None => {
                format!("{}/{}", amount(current("value"), absent), amount(aimed("value"), "<nil>"))
            }
        },
        "pods" => format!(
            "{}/{}",
            amount(current("averageValue"), absent),
            amount(aimed("averageValue"), "<nil>")
        ),
        _ => {
            let percent = |value: Option<&Value>, or: &str| {
                value.map_or_else(|| or.to_owned(), |percent| format!("{percent}%"))
            };
            let (now, wanted) = match aimed("averageValue") {
                Some(average) => {
                    (amount(current("averageValue"), absent), amount(Some(average), ""))
                }
                None => (
                    percent(current("averageUtilization"), UNKNOWN),
                    percent(aimed("averageUtilization"), "<auto>"),
                ),
            };
            let name = metric.pointer(&format!("/{sort}/name")).and_then(Value::as_str);
            format!("{}: {now}/{wanted}", name.unwrap_or_default())
        }
    }
}

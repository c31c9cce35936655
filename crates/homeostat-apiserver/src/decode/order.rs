//! The order in which fields stand in a document, for complaints about several of them.

use std::collections::BTreeMap;

use serde_json::Value;

/// All paths together may have so many bytes: below a name of megabytes each field has a path of
/// megabytes. Complaints about what comes later are in no order.
const LONGEST_TOGETHER: usize = 16 * 1024 * 1024;

/// Where every field of a document stands; empty when the order is of no interest.
#[derive(Debug, Default)]
pub struct DocumentOrder {
    positions: BTreeMap<String, usize>,
    bytes: usize,
}

impl DocumentOrder {
    /// The order of `value`. Looked at only when keys are given twice: without, the complaints are
    /// in order already.
    #[must_use]
    pub fn of(value: &Value, duplicates: &[String]) -> Self {
        let mut order = Self::default();
        if !duplicates.is_empty() {
            order.visit(value, "");
        }
        order
    }

    fn visit(&mut self, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.bytes += path.len() + name.len();
                    if self.bytes > LONGEST_TOGETHER {
                        return;
                    }
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.positions.insert(path.clone(), self.positions.len());
                    self.visit(field, &path);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.bytes += path.len();
                    if self.bytes > LONGEST_TOGETHER {
                        return;
                    }
                    self.visit(item, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    /// Complaints that name a field each (`… field "spec.replicas"`), in the order of the fields.
    #[must_use]
    pub fn sort(&self, mut complaints: Vec<String>) -> Vec<String> {
        complaints.sort_by_key(|complaint| {
            let path = complaint.split('"').nth(1).unwrap_or_default();
            self.positions.get(path).copied().unwrap_or_default()
        });
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_follow_the_document() {
        let body = br#"{"spec":{"a":1,"x":0,"a":2,"y":0}}"#;
        let decoded = super::super::json(body).unwrap();
        let order = DocumentOrder::of(&decoded.value, &decoded.duplicates);
        let unknown = ["spec.x".to_owned(), "spec.y".to_owned()];
        let complaints = super::super::strict_messages(&unknown, &decoded.duplicates);
        let expected = [
            r#"unknown field "spec.x""#,
            r#"duplicate field "spec.a""#,
            r#"unknown field "spec.y""#,
        ];
        assert_eq!(order.sort(complaints), expected);
    }

    #[test]
    fn a_name_of_megabytes_is_not_kept_for_every_field_below_it() {
        let fields: Vec<String> = (0..50_000).map(|at| format!("\"k{at}\":{{}}")).collect();
        let fields = fields.join(",");
        let body = format!("{{\"a\":1,\"a\":2,\"{}\":{{{fields}}}}}", "x".repeat(1024 * 1024));
        let decoded = super::super::json(body.as_bytes()).unwrap();
        let order = DocumentOrder::of(&decoded.value, &decoded.duplicates);
        let kept: usize = order.positions.keys().map(String::len).sum();
        assert!(kept <= LONGEST_TOGETHER && order.positions.contains_key("a"), "{kept} bytes");
    }
}

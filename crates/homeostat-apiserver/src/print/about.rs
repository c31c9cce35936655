//! What is said about the columns of tables: read once from generated data.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

const WRITTEN: &[u8] = include_bytes!("../../data/columns.json.gz");

/// By kind, then by heading.
type Descriptions = BTreeMap<String, BTreeMap<String, String>>;

/// What is said of a column of a built-in kind; without a kind, of one that every kind has. Empty
/// when nothing is.
pub(super) fn about(group: &str, kind: &str, heading: &str) -> &'static str {
    static READ: OnceLock<Descriptions> = OnceLock::new();
    let all =
        READ.get_or_init(|| serde_json::from_reader(GzDecoder::new(WRITTEN)).unwrap_or_default());
    let family = match group.split('.').next().unwrap_or_default() {
        // Both groups have the same events.
        "" | "events" => "core",
        first => first,
    };
    let own = all.get(&format!("{family}.{kind}")).and_then(|columns| columns.get(heading));
    let said = own.or_else(|| all.get("").and_then(|columns| columns.get(heading)));
    said.map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::about;

    #[test]
    fn kinds_say_more_of_their_columns_than_of_the_name_that_all_have() {
        assert!(about("", "Pod", "Ready").contains("readiness"));
        assert_eq!(about("apps", "Deployment", "Name"), about("", "", "Name"));
        assert!(about("", "", "Name").starts_with("Name must be unique"));
        assert_eq!(about("", "Pod", "no such column"), "");
    }
}

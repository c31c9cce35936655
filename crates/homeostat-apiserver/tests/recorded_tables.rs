//! Replays the Tables that kube-apiserver 1.36.4 made: `recorded/tables.json` holds objects with
//! their columns and cells. Ages depend on when it was recorded and are left out.

use homeostat_apiserver::kinds::builtin;
use homeostat_apiserver::print::{IncludeObject, Look, MetaVersion, table};
use serde_json::{Value, json};

const AGES: &[&str] = &["Age", "Last Seen", "First Seen"];

#[test]
fn tables_have_the_columns_and_cells_of_kube_apiserver() {
    let recorded: Value = serde_json::from_str(include_str!("recorded/tables.json")).unwrap();
    let mut mistakes = Vec::new();
    for case in recorded.as_array().unwrap() {
        let object = &case["object"];
        let kind = builtin()
            .iter()
            .find(|row| object["kind"] == row.kind && object["apiVersion"] == row.api_version());
        let now = "2026-11-16T02:00:00Z".parse().unwrap();
        let (include, version) = (IncludeObject::None, MetaVersion::V1);
        let look = Look { include, now, headers: true, version };
        let table = table(kind.unwrap(), &[object], &json!({}), look);
        let columns = table["columnDefinitions"].as_array().unwrap();
        let headings: Vec<Value> = columns
            .iter()
            .map(|column| {
                json!([column["name"], column["type"], column["format"], column["priority"]])
            })
            .collect();
        if case["columns"] != Value::from(headings.clone()) {
            mistakes.push(format!("{}: {headings:?} {}", case["name"], case["columns"]));
            continue;
        }
        for (index, column) in columns.iter().enumerate() {
            let (ours, theirs) = (&table["rows"][0]["cells"][index], &case["cells"][index]);
            if ours != theirs && !AGES.contains(&column["name"].as_str().unwrap()) {
                mistakes.push(format!("{} {}: {ours} {theirs}", case["name"], column["name"]));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

//! What users see in `kubectl get`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{IncludeObject, Look, MetaVersion, table};
use crate::kinds::{Column, Custom, Kind, builtin};

fn kind(name: &str) -> &'static Kind {
    builtin().iter().find(|kind| kind.kind == name).unwrap()
}

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn look(include: IncludeObject, headers: bool) -> Look {
    Look { include, now: now(), headers, version: MetaVersion::V1 }
}

fn cells(kind: &Kind, object: &Value) -> Vec<Value> {
    let table = table(kind, &[object], &json!({}), look(IncludeObject::None, true));
    let cells = table["rows"][0]["cells"].as_array().unwrap().clone();
    // The age of an address has no heading.
    let headless = usize::from(kind.kind == "IPAddress");
    assert_eq!(cells.len() - headless, table["columnDefinitions"].as_array().unwrap().len());
    cells
}

#[test]
fn a_crashing_pod_shows_its_reason_and_restarts() {
    let pod = json!({
        "metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:59:00Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 0, "state": {"running": {}}},
            {"name": "b", "ready": false, "restartCount": 3,
             "state": {"waiting": {"reason": "CrashLoopBackOff"}},
             "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:59:30Z"}}},
        ]},
    });
    let row = cells(kind("Pod"), &pod);
    assert_eq!(
        row[..5],
        [json!("web"), json!("1/2"), json!("CrashLoopBackOff"), json!("3 (30s ago)"), json!("60s")]
    );
    assert_eq!(row[6], "<none>");
}

#[test]
fn a_pod_that_is_going_away_says_so() {
    let pod = json!({
        "metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:59:00Z"},
        "spec": {"containers": [{"name": "a"}]},
        "status": {"phase": "Running"},
    });
    assert_eq!(cells(kind("Pod"), &pod)[2], "Terminating");
}

#[test]
fn every_built_in_kind_has_a_table_even_for_an_empty_object() {
    for kind in builtin() {
        let row = cells(kind, &json!({"metadata": {"name": "x"}}));
        assert!(row.contains(&json!("x")), "{}", kind.kind);
    }
}

#[test]
fn kinds_without_columns_show_when_they_were_created() {
    let object = json!({"metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(cells(kind("ClusterRole"), &object), [json!("r"), json!("2026-01-01T00:00:00Z")]);
}

#[test]
fn custom_columns_follow_their_paths_and_dates_become_ages() {
    let mut at = kind("ConfigMap").clone();
    let column = |name: &str, ty: &str, path: &str| Column {
        name: name.to_owned(),
        ty: ty.to_owned(),
        json_path: path.to_owned(),
        ..Column::default()
    };
    at.custom = Some(std::sync::Arc::new(Custom {
        columns: vec![
            column("Phase", "string", ".status.phase"),
            column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
            column("Age", "date", ".metadata.creationTimestamp"),
            column("Count", "integer", ".spec.count"),
        ],
        ..Custom::default()
    }));
    let object = json!({
        "metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": "DONE", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert_eq!(
        cells(&at, &object),
        [json!("x"), json!("DONE"), json!("True"), json!("60m"), Value::Null]
    );
}

#[test]
fn rows_carry_as_much_of_the_object_as_was_asked_for() {
    let object = json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}});
    let of = |include| {
        let list = json!({"resourceVersion": "7"});
        table(kind("Secret"), &[&object], &list, look(include, false))
    };
    assert_eq!(of(IncludeObject::None)["rows"][0]["object"], Value::Null);
    assert_eq!(of(IncludeObject::Object)["rows"][0]["object"], object);
    let metadata = of(IncludeObject::Metadata);
    assert_eq!(metadata["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(metadata["rows"][0]["object"].get("data"), None);
    assert_eq!(metadata["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(metadata["columnDefinitions"], Value::Null);
}

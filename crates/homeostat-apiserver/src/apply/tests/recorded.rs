//! Replays what kube-apiserver 1.36.4 did: `recorded.json` holds sequences of requests with its
//! answers, defaults and all.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{builtin, thing};
use crate::apply::{ApplyError, FieldSet, Manager, apply, track_update};
use crate::patch;
use crate::schema::KindSchema;
use crate::{default, kinds};

struct Step<'a> {
    name: String,
    kind: &'a str,
    schema: &'static KindSchema,
    request: &'a Value,
    live: Option<&'a Value>,
}

fn replay(check: impl Fn(&Step<'_>)) {
    let recorded: Value = serde_json::from_str(include_str!("recorded.json")).unwrap();
    for scenario in recorded.as_array().unwrap() {
        let kind = scenario["kind"].as_str().unwrap();
        let schema = if kind == "Thing" { thing() } else { builtin(kind) };
        let mut live = None;
        for (position, request) in scenario["steps"].as_array().unwrap().iter().enumerate() {
            let name = format!("{}, step {position}: {}", scenario["name"], request["op"]);
            check(&Step { name, kind, schema, request, live });
            live = request.get("result").or(live);
        }
    }
}

impl Step<'_> {
    fn op(&self) -> &str {
        self.request["op"].as_str().unwrap()
    }

    fn manager(&self) -> Manager<'_> {
        let object = self.live.unwrap_or(&self.request["result"]);
        Manager {
            name: self.request["manager"].as_str().unwrap(),
            api_version: object["apiVersion"].as_str().unwrap(),
            subresource: self.request["subresource"].as_str().unwrap_or_default(),
            now: self.time(),
        }
    }

    /// The answer's youngest entry is this request's own.
    fn time(&self) -> Timestamp {
        let entries = self.request["result"]["metadata"]["managedFields"].as_array();
        let times = entries.into_iter().flatten().filter_map(|entry| entry["time"].as_str());
        times.max().map_or(Timestamp::UNIX_EPOCH, |time| time.parse().unwrap())
    }

    /// What the endpoint never takes from a request.
    fn reset(&self) -> FieldSet {
        if self.request["subresource"] == "status" {
            FieldSet::of_fields([&["spec"][..], &["metadata", "labels"]])
        } else {
            FieldSet::of_fields([&["status"][..]])
        }
    }

    fn apply(&self) -> Result<Value, ApplyError> {
        let force = self.request["force"] == true;
        let body = &self.request["body"];
        apply(self.schema.root(), self.live, body, &self.manager(), force, &self.reset())
    }

    /// The object as the server would store it, without what only the server writes.
    fn settled(&self, mut object: Value) -> Value {
        drop_empty(&mut object);
        match kinds::builtin().iter().find(|row| row.kind == self.kind) {
            Some(kind) => default::builtin(kind, &mut object),
            None => default::apply_defaults(self.schema.root(), &mut object),
        }
        for name in ["managedFields", "resourceVersion", "generation"] {
            object["metadata"].as_object_mut().unwrap().remove(name);
        }
        object
    }
}

/// Drops what may be written or left out without a difference; which of the two the server does
/// depends on Go types and is not decided by apply or patch.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            let empty = [json!(null), json!({}), json!([])];
            map.retain(|name, value| {
                !empty.contains(value) && (name != "minReadySeconds" || *value != 0)
            });
        }
        Value::Array(list) => list.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

#[test]
fn ownership_after_an_apply_is_what_kube_apiserver_says() {
    replay(|step| {
        if step.op() == "apply"
            && let Some(result) = step.request.get("result")
        {
            let object = step.apply().unwrap_or_else(|error| panic!("{}: {error}", step.name));
            assert_eq!(
                object["metadata"]["managedFields"], result["metadata"]["managedFields"],
                "{}",
                step.name
            );
        }
    });
}

#[test]
fn the_applied_object_is_what_kube_apiserver_stores() {
    replay(|step| {
        if step.op() == "apply"
            && step.live.is_some()
            && let Some(result) = step.request.get("result")
        {
            let object = step.settled(step.apply().unwrap());
            assert_eq!(object, step.settled(result.clone()), "{}", step.name);
        }
    });
}

#[test]
fn refused_applies_are_refused_in_the_words_of_kube_apiserver() {
    replay(|step| {
        let code = step.request["code"].as_u64().unwrap();
        if step.op() != "apply" || !matches!(code, 400 | 409 | 500) {
            return;
        }
        let error = step.apply().unwrap_err();
        let (expected, causes) = match &error {
            ApplyError::Conflicts(conflicts) => (409, conflicts.as_slice()),
            ApplyError::Invalid(_) => (400, &[][..]),
            _ => (500, &[][..]),
        };
        assert_eq!(expected, code, "{}: {error}", step.name);
        let message = step.request["message"].as_str().unwrap();
        let common = message.split(", got ").next().unwrap();
        assert!(error.to_string().starts_with(common), "{}: {error}", step.name);
        let mut causes: Vec<Value> = causes
            .iter()
            .map(|cause| {
                json!({"reason": "FieldManagerConflict", "message": cause.message(), "field": cause.field()})
            })
            .collect();
        let mut recorded = step.request["causes"].as_array().cloned().unwrap_or_default();
        causes.sort_by_key(Value::to_string);
        recorded.sort_by_key(Value::to_string);
        if code == 409 {
            assert_eq!(causes, recorded, "{}", step.name);
        }
    });
}

#[test]
fn ownership_after_other_writes_is_what_kube_apiserver_says() {
    replay(|step| {
        let Some(result) = step.request.get("result").filter(|_| step.op() != "apply") else {
            return;
        };
        let sent = match step.op() {
            "create" | "update" => &step.request["body"],
            _ => step.live.unwrap(),
        };
        let mut new = result.clone();
        if (step.kind, step.op()) == ("Pod", "create") {
            // Written by admission, which has its turn after ownership is settled.
            for name in ["priority", "preemptionPolicy", "serviceAccount", "serviceAccountName"] {
                new["spec"].as_object_mut().unwrap().remove(name);
            }
        }
        new["metadata"]["managedFields"] = sent["metadata"]["managedFields"].clone();
        track_update(step.schema.root(), step.live, &mut new, &step.manager(), &step.reset())
            .unwrap();
        assert_eq!(
            new["metadata"].get("managedFields"),
            result["metadata"].get("managedFields"),
            "{}",
            step.name
        );
    });
}

#[test]
fn patched_objects_are_what_kube_apiserver_stores() {
    replay(|step| {
        let Some(live) = step.live else { return };
        let body = &step.request["body"];
        let patched = match step.op() {
            "strategic" => patch::strategic(step.schema.root(), live, body),
            "merge" => Ok(patch::merge(live, body)),
            "json" => patch::json(live, body),
            _ => return,
        };
        match patched {
            // Refused later, by validation.
            Ok(_) if step.request["code"] == 422 => {}
            Ok(object) => {
                let result = step.request.get("result").unwrap_or_else(|| panic!("{}", step.name));
                assert_eq!(step.settled(object), step.settled(result.clone()), "{}", step.name);
            }
            Err(error) => {
                assert_eq!(step.request["code"], error.status(), "{}: {error}", step.name);
            }
        }
    });
}

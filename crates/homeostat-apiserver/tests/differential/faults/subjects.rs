//! The objects that faults are put into, and how both servers come to have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_apiserver::kinds::{Kind, builtin};
use serde_json::{Value, json};

use super::values::{self, Fault};
use super::{Servers, Way};
use crate::script::{Step, Until};
use crate::side::Side;

/// Objects that are right, one or more of each kind, some with a status of their own.
const OBJECTS: &str = include_str!("objects.json");
/// A status that is right for objects of each kind that has one, by the name of the resource.
const STATUSES: &str = include_str!("statuses.json");

/// A container that can be added to any Pod of these.
const EPHEMERAL: &str = r#"{"name": "e", "image": "i", "targetContainerName": "c", "stdin": true,
    "tty": true, "command": ["a"], "args": ["b"], "env": [{"name": "A", "value": "b"}],
    "imagePullPolicy": "Always", "terminationMessagePath": "/dev/t",
    "terminationMessagePolicy": "File", "securityContext": {"runAsUser": 1}}"#;
/// What a resize is about.
const RESIZED: &[&str] = &[
    "/spec/containers/0/resources",
    "/spec/containers/0/resizePolicy",
    "/spec/initContainers/0/resources",
    "/spec/initContainers/0/resizePolicy",
    "/spec/resources",
];

/// Kinds whose objects kube-apiserver itself works on, and what is there when it is done.
const WORKED_ON: &[(&str, &str)] = &[
    ("apiservices", "Available"),
    ("customresourcedefinitions", "Established"),
    ("flowschemas", "Dangling"),
];

/// An object that is right, with a status that is.
pub(super) struct Subject {
    pub(super) kind: Arc<Kind>,
    object: Value,
    status: Value,
}

/// All of them.
pub(super) fn all() -> Vec<Subject> {
    let objects: Vec<Value> = serde_json::from_str(OBJECTS).unwrap();
    let statuses: BTreeMap<String, Value> = serde_json::from_str(STATUSES).unwrap();
    let subject = |mut object: Value| {
        let is = |row: &&Arc<Kind>| {
            object["kind"] == row.kind && object["apiVersion"] == row.api_version()
        };
        let kind = builtin().iter().find(is).unwrap().clone();
        if object["metadata"].get("name").is_none() {
            object["metadata"]["name"] = json!("x");
        }
        let own = object.as_object_mut().and_then(|fields| fields.shift_remove("status"));
        let status = own.or_else(|| statuses.get(&kind.plural).cloned()).unwrap_or_default();
        Subject { kind, object, status }
    };
    objects.into_iter().map(subject).collect()
}

impl Subject {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap()
    }

    /// The path of the collection, or of what is below it.
    fn path(&self, below: &str) -> String {
        let version = self.kind.api_version();
        let base = if self.kind.group.is_empty() { "/api" } else { "/apis" };
        let space = if self.kind.namespaced { "/namespaces/{{ns}}" } else { "" };
        format!("{base}/{version}{space}/{}{below}", self.kind.plural)
    }

    /// What can be wrong with it when it is sent in that way.
    pub(super) fn faults(&self, way: Way) -> Vec<Fault> {
        let root = self.kind.schema.root();
        match (way, root.field("status")) {
            (Way::Create | Way::Update, _) => values::faults(root, &self.object),
            (Way::Status, Some(schema)) if self.kind.subresource("status").is_some() => {
                values::faults_below("/status", schema, &self.status)
            }
            (Way::EphemeralContainers, _) if self.kind.plural == "pods" => {
                let added = with_ephemeral(self.object.clone());
                let mut all = values::faults(root, &added);
                all.retain(|(pointer, _)| pointer.starts_with("/spec/ephemeralContainers"));
                all
            }
            (Way::Resize, _) if self.kind.plural == "pods" => {
                let mut all = values::faults(root, &self.object);
                all.retain(|(pointer, _)| RESIZED.iter().any(|place| pointer.starts_with(place)));
                all
            }
            (Way::Status | Way::EphemeralContainers | Way::Resize, _) => Vec::new(),
        }
    }

    /// The request that sends the object, as that side has it, with the fault.
    pub(super) fn step(&self, way: Way, object: &Value, (pointer, value): &Fault) -> Step {
        let mut wrong = object.clone();
        values::put(&mut wrong, pointer, value.clone());
        let (method, below) = match way {
            Way::Create => ("POST", String::new()),
            Way::Update => ("PUT", format!("/{}", self.name())),
            Way::Status => ("PUT", format!("/{}/status", self.name())),
            Way::EphemeralContainers => ("PUT", format!("/{}/ephemeralcontainers", self.name())),
            Way::Resize => ("PUT", format!("/{}/resize", self.name())),
        };
        let path = self.path(&format!("{below}?dryRun=All&fieldManager=faults"));
        request(method, path, &wrong)
    }
}

fn request(method: &str, path: String, body: &Value) -> Step {
    Step {
        method: method.to_owned(),
        path,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.to_string(),
        ..Step::default()
    }
}

/// The object as each side has it: what a fault is put into.
pub(super) struct Live {
    /// Where it is, if it is in one.
    pub(super) namespace: String,
    pub(super) ours: Value,
    pub(super) theirs: Value,
    /// Whether the object is there, or only might be.
    is_stored: bool,
    /// Whether the namespace was made for it.
    owns_namespace: bool,
}

impl Live {
    /// Sees to it that both sides are ready for faults of the object, the `at`-th of this run.
    pub(super) async fn make(
        subject: &Subject,
        way: Way,
        servers: &Servers,
        run: &str,
        at: usize,
    ) -> Self {
        // Objects that are there have a namespace each: some have a say in others.
        let is_stored = way != Way::Create;
        let namespace = if is_stored { format!("{run}-{at}") } else { run.to_owned() };
        let (ours, theirs) = servers.sides(&namespace);
        let owns_namespace = is_stored || at == 0;
        if owns_namespace {
            tokio::join!(ours.prepare(), theirs.prepare());
        }
        if !is_stored {
            // A run that was ended may have left one.
            if !subject.kind.namespaced {
                removed(subject, &theirs).await;
            }
            let object = || subject.object.clone();
            return Self { namespace, ours: object(), theirs: object(), is_stored, owns_namespace };
        }
        let (ours, theirs) = tokio::join!(stored(subject, way, ours), stored(subject, way, theirs));
        Self { namespace, ours, theirs, is_stored, owns_namespace }
    }

    /// Leaves nothing behind on kube-apiserver's side; ours ends with the test.
    pub(super) async fn remove(&self, subject: &Subject, servers: &Servers) {
        let (_, theirs) = servers.sides(&self.namespace);
        if self.is_stored {
            removed(subject, &theirs).await;
        }
        if self.owns_namespace {
            theirs.clean_up().await;
        }
    }
}

/// Makes the object and gives it as it can be sent back.
async fn stored(subject: &Subject, way: Way, mut side: Side) -> Value {
    let own = subject.path(&format!("/{}", subject.name()));
    if !subject.kind.namespaced {
        removed(subject, &side).await;
    }
    let made = side.raw(&request("POST", subject.path(""), &subject.object)).await;
    assert_eq!(made["kind"], subject.kind.kind, "a right object is refused: {made}");
    let working = WORKED_ON.iter().find(|(plural, _)| *plural == subject.kind.plural);
    let read = Step {
        until: working.map(|(_, words)| Until { code: 200, words: (*words).to_owned() }),
        ..request("GET", own.clone(), &Value::Null)
    };
    side.send(&read).await;
    let mut live = side.raw(&read).await;
    if way == Way::Status && !subject.status.is_null() {
        live["status"] = subject.status.clone();
        live = side.raw(&request("PUT", format!("{own}/status"), &live)).await;
        assert_eq!(live["kind"], subject.kind.kind, "a right status is refused: {live}");
    }
    if let Some(metadata) = live["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if way == Way::EphemeralContainers {
        live = with_ephemeral(live);
    }
    live
}

/// A Pod with a container for a while.
fn with_ephemeral(mut pod: Value) -> Value {
    let container: Value = serde_json::from_str(EPHEMERAL).unwrap();
    pod["spec"]["ephemeralContainers"] = json!([container]);
    pod
}

/// Takes away the object and whatever keeps it.
async fn removed(subject: &Subject, side: &Side) {
    let own = subject.path(&format!("/{}", subject.name()));
    side.raw(&request("DELETE", own.clone(), &json!({"gracePeriodSeconds": 0}))).await;
    let freed = if subject.kind.plural == "namespaces" {
        let emptied = json!({"metadata": {"name": subject.name()}, "spec": {"finalizers": []}});
        request("PUT", format!("{own}/finalize"), &emptied)
    } else {
        let mut step = request("PATCH", own, &json!({"metadata": {"finalizers": null}}));
        step.headers[0].1 = "application/merge-patch+json".to_owned();
        step
    };
    side.raw(&freed).await;
}

//! A random sequence of requests: a few objects of one or two kinds, made, read, changed in every
//! way the API has, and deleted; with options and bodies that are not always right.

use serde_json::{Value, json};

use super::objects::{Edit, Sample, only, set};
use crate::dice::Dice;
use crate::script::{Sequence, Step};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

#[derive(Clone, Copy)]
enum Verb {
    Create,
    Get,
    List,
    Update,
    Json,
    Merge,
    Strategic,
    Apply,
    Status,
    Scale,
    Delete,
    DeleteCollection,
    Watch,
}

const VERBS: &[(usize, Verb)] = &[
    (12, Verb::Create),
    (8, Verb::Get),
    (9, Verb::List),
    (14, Verb::Update),
    (10, Verb::Json),
    (10, Verb::Merge),
    (10, Verb::Strategic),
    (14, Verb::Apply),
    (8, Verb::Status),
    (4, Verb::Scale),
    (9, Verb::Delete),
    (3, Verb::DeleteCollection),
    (2, Verb::Watch),
];

/// The sequence of that seed.
pub(super) fn sequence(samples: &[Sample], seed: u64) -> Sequence {
    let dice = Dice::new(seed);
    let (first, second) = (dice.pick(samples), dice.pick(samples));
    let mut steps = Vec::new();
    for index in 0..4 + dice.below(7) {
        let sample = if dice.chance(85) { first } else { second };
        let verb = if index == 0 && dice.chance(90) { Verb::Create } else { dice.weighted(VERBS) };
        steps.push(Request { dice: &dice, sample }.step(index, verb));
    }
    if dice.chance(12) {
        let last = Request { dice: &dice, sample: first };
        steps.push(last.step(steps.len(), Verb::Watch));
    }
    Sequence { name: format!("random: seed {seed}"), history: None, steps }
}

struct Request<'a> {
    dice: &'a Dice,
    sample: &'a Sample,
}

impl Request<'_> {
    fn step(&self, index: usize, verb: Verb) -> Step {
        let short = if self.dice.chance(80) { "a" } else { "b" };
        let name = self.sample.name(short);
        let (word, mut step) = match verb {
            Verb::Create => ("create", self.create(&name)),
            Verb::Get => ("get", self.get(&name, short)),
            Verb::List => ("list", self.list()),
            Verb::Update => ("update", self.update(&name, short)),
            Verb::Json => ("json patch", self.json_patch(&name, short)),
            Verb::Merge => ("merge patch", self.merge(&name, "application/merge-patch+json")),
            Verb::Strategic => {
                ("strategic patch", self.merge(&name, "application/strategic-merge-patch+json"))
            }
            Verb::Apply => ("apply", self.apply(&name)),
            Verb::Status => ("status", self.status(&name, short)),
            Verb::Scale => ("scale", self.scale(&name)),
            Verb::Delete => ("delete", self.delete(&name, short)),
            Verb::DeleteCollection => ("delete collection", self.delete_collection()),
            Verb::Watch => ("watch", self.watch(short)),
        };
        step.title = format!("{index}: {word} {}", self.sample.plural());
        if !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection | Verb::Scale) {
            // What a sequence saw first is a stale revision later.
            step.save = Some(if index == 0 { "old".to_owned() } else { short.to_owned() });
            self.form(&mut step, METADATA);
        }
        self.spoil(&mut step);
        step
    }

    /// Which form the answer shall have.
    fn form(&self, step: &mut Step, metadata: &str) {
        let form = match self.dice.below(100) {
            0..6 => TABLE,
            6..10 => metadata,
            10..12 => "application/yaml",
            12 => "text/plain",
            _ => return,
        };
        step.headers.push(("accept".to_owned(), form.to_owned()));
    }

    /// Now and then a body that cannot be read.
    fn spoil(&self, step: &mut Step) {
        if step.body.is_empty() || !self.dice.chance(4) {
            return;
        }
        match self.dice.below(7) {
            0 => step.body.truncate(step.body.len() / 2),
            1 => step.body = "true".to_owned(),
            2 => step.body = "[]".to_owned(),
            3 => step.body = "\"x\"".to_owned(),
            4 => step.body = String::new(),
            5 => step.body = step.body.replacen('{', "{\"kind\": \"Twice\", ", 1),
            _ => step.headers.retain(|(name, _)| name != "content-type"),
        }
        if step.headers.is_empty() {
            step.headers.push(("content-type".to_owned(), "text/plain".to_owned()));
        }
    }

    fn edited(&self, object: &mut Value, most: usize) -> Vec<Edit> {
        let edits: Vec<Edit> =
            (0..self.dice.below(most + 1)).map(|_| self.sample.edit(self.dice)).collect();
        for edit in &edits {
            set(object, edit);
        }
        edits
    }

    fn write_query(&self) -> Vec<String> {
        let mut query = Vec::new();
        if self.dice.chance(40) {
            query.push(format!("fieldManager={}", self.dice.pick(&["one", "two", "three"])));
        }
        if self.dice.chance(8) {
            query.push(format!("dryRun={}", self.dice.pick(&["All", "All", "All", "Odd"])));
        }
        if self.dice.chance(20) {
            let level = self.dice.pick(&["Strict", "Strict", "Warn", "Ignore", "Odd"]);
            query.push(format!("fieldValidation={level}"));
        }
        query
    }

    fn write(&self, method: &str, path: String, media: &str, body: &Value) -> Step {
        let headers = vec![("content-type".to_owned(), media.to_owned())];
        let path = with_query(path, &self.write_query());
        let body = body.to_string();
        Step { method: method.to_owned(), path, headers, body, ..Step::default() }
    }

    fn one(&self, name: &str) -> String {
        format!("{}/{name}", self.sample.path)
    }

    fn create(&self, name: &str) -> Step {
        let mut object = self.sample.named(name);
        self.edited(&mut object, 2);
        // Names that are none of a sequence's own belong to its namespace only.
        if self.sample.is_namespaced() && self.dice.chance(4) {
            object["metadata"]["name"] = (*self.dice.pick(&["Upper", "a b", ""])).into();
        }
        if self.dice.chance(3) {
            object["metadata"]["namespace"] = "elsewhere".into();
        }
        if self.dice.chance(3) {
            object["metadata"]["resourceVersion"] = "1".into();
        }
        if self.dice.chance(3) {
            object["kind"] = (*self.dice.pick(&["Odd", "ConfigMap", ""])).into();
        }
        self.write("POST", self.sample.path.clone(), "application/json", &object)
    }

    fn get(&self, name: &str, short: &str) -> Step {
        let mut query = Vec::new();
        if self.dice.chance(20) {
            let choices = ["0", "1", &format!("{{{{{short}.rv}}}}"), "x"];
            query.push(format!("resourceVersion={}", self.dice.pick(&choices)));
        }
        Step {
            method: "GET".to_owned(),
            path: with_query(self.one(name), &query),
            ..Step::default()
        }
    }

    fn selectors(&self, query: &mut Vec<String>) {
        if !self.sample.is_namespaced() {
            query.push("labelSelector=seq%3D{{ns}}".to_owned());
        } else if self.dice.chance(35) {
            let labels = [
                "seq%3D{{ns}}",
                "x%3Dy",
                "x!%3Dy",
                "x",
                "!x",
                "x in (y,z)",
                "x in (",
                "seq,x notin (y)",
            ];
            query.push(format!("labelSelector={}", self.dice.pick(&labels).replace(' ', "+")));
        }
        if self.dice.chance(20) {
            let name = self.sample.name("a");
            let mut choices = vec![
                format!("metadata.name%3D{name}"),
                format!("metadata.name!%3D{name}"),
                "spec.nothing%3Dx".to_owned(),
                "odd".to_owned(),
            ];
            choices.extend(self.sample.fields.iter().map(|field| format!("{field}%3Dsmall")));
            choices.extend(self.sample.fields.iter().map(|field| format!("{field}!%3Dsmall")));
            query.push(format!("fieldSelector={}", self.dice.pick(&choices)));
        }
    }

    fn list(&self) -> Step {
        let mut query = Vec::new();
        self.selectors(&mut query);
        // Others write to the same cluster, and a page may end at what they wrote.
        if self.sample.is_namespaced() && self.dice.chance(25) {
            query.push(format!("limit={}", self.dice.pick(&["1", "2", "500", "0", "x"])));
        }
        if self.dice.chance(20) {
            query.push(format!("resourceVersion={}", self.dice.pick(&["0", "x", "{{old.rv}}"])));
        }
        if self.dice.chance(10) {
            let choices = ["NotOlderThan", "Odd"];
            query.push(format!("resourceVersionMatch={}", self.dice.pick(&choices)));
        }
        let path = with_query(self.sample.path.clone(), &query);
        let mut step = Step { method: "GET".to_owned(), path, ..Step::default() };
        self.form(&mut step, METADATA_LIST);
        step
    }

    /// `metadata.resourceVersion` and `uid`, right, wrong, or absent.
    fn identify(&self, object: &mut Value, short: &str) {
        let revision = match self.dice.below(100) {
            0..55 => format!("{{{{{short}.rv}}}}"),
            55..65 => "{{old.rv}}".to_owned(),
            65..68 => "1".to_owned(),
            68..70 => "x".to_owned(),
            _ => String::new(),
        };
        if !revision.is_empty() {
            set(object, &("/metadata/resourceVersion".to_owned(), revision.into()));
        }
        if self.dice.chance(8) {
            let uid = format!("{{{{{short}.uid}}}}");
            set(object, &("/metadata/uid".to_owned(), uid.into()));
        }
    }

    fn update(&self, name: &str, short: &str) -> Step {
        let mut object = self.sample.named(name);
        self.edited(&mut object, 2);
        self.identify(&mut object, short);
        if self.dice.chance(3) {
            object["metadata"]["name"] = "other".into();
        }
        self.write("PUT", self.one(name), "application/json", &object)
    }

    fn json_patch(&self, name: &str, short: &str) -> Step {
        let operation = |_| {
            let (path, value) = self.sample.edit(self.dice);
            match self.dice.below(10) {
                0..5 => json!({"op": "add", "path": path, "value": value}),
                5..7 => json!({"op": "replace", "path": path, "value": value}),
                7 => json!({"op": "remove", "path": path}),
                8 => json!({"op": "test", "path": "/metadata/name", "value": name}),
                _ => {
                    json!({"op": "add", "path": "/metadata/resourceVersion", "value": format!("{{{{{short}.rv}}}}")})
                }
            }
        };
        let operations: Value = (0..=self.dice.below(2)).map(operation).collect();
        self.write("PATCH", self.one(name), "application/json-patch+json", &operations)
    }

    fn merge(&self, name: &str, media: &str) -> Step {
        let mut object = self.sample.named(name);
        let edit = self.sample.edit(self.dice);
        set(&mut object, &edit);
        let mut patch = only(&object, &edit.0);
        if self.dice.chance(6) {
            set(&mut patch, &("/metadata/resourceVersion".to_owned(), "{{old.rv}}".into()));
        }
        self.write("PATCH", self.one(name), media, &patch)
    }

    fn apply(&self, name: &str) -> Step {
        let mut object =
            if self.dice.chance(60) { self.sample.named(name) } else { self.sample.head(name) };
        self.edited(&mut object, 2);
        let mut step = self.write("PATCH", self.one(name), "application/apply-patch+yaml", &object);
        if !step.path.contains("fieldManager=") && self.dice.chance(95) {
            let and = if step.path.contains('?') { '&' } else { '?' };
            step.path.push(and);
            step.path.push_str("fieldManager=one");
        }
        if self.dice.chance(35) {
            let and = if step.path.contains('?') { '&' } else { '?' };
            step.path.push(and);
            step.path.push_str("force=true");
        }
        step
    }

    fn status(&self, name: &str, short: &str) -> Step {
        let path = format!("{}/status", self.one(name));
        let edit = self.sample.status_edit(self.dice);
        match self.dice.below(4) {
            0 => {
                let mut object = self.sample.named(name);
                set(&mut object, &edit);
                self.identify(&mut object, short);
                self.write("PUT", path, "application/json", &object)
            }
            1 => {
                let mut object = self.sample.head(name);
                set(&mut object, &edit);
                let mut step = self.write("PATCH", path, "application/apply-patch+yaml", &object);
                let and = if step.path.contains('?') { '&' } else { '?' };
                step.path.push(and);
                step.path.push_str("fieldManager=one");
                step
            }
            2 => {
                let operations = json!([{"op": "add", "path": edit.0, "value": edit.1}]);
                self.write("PATCH", path, "application/json-patch+json", &operations)
            }
            _ => {
                let mut object = json!({});
                set(&mut object, &edit);
                self.write("PATCH", path, "application/merge-patch+json", &object)
            }
        }
    }

    fn scale(&self, name: &str) -> Step {
        let path = format!("{}/scale", self.one(name));
        if !self.sample.scale || self.dice.chance(30) {
            return Step { method: "GET".to_owned(), path, ..Step::default() };
        }
        let replicas = *self.dice.pick(&[0, 2, 4, 40, -1]);
        self.write(
            "PATCH",
            path,
            "application/merge-patch+json",
            &json!({"spec": {"replicas": replicas}}),
        )
    }

    fn delete_options(&self, short: &str) -> Value {
        let mut options = json!({});
        if self.dice.chance(50) {
            let policies = ["Background", "Foreground", "Orphan", "Odd"];
            options["propagationPolicy"] = (*self.dice.pick(&policies)).into();
        }
        if self.dice.chance(25) {
            options["gracePeriodSeconds"] = (*self.dice.pick(&[0, 1, -1])).into();
        }
        if self.dice.chance(20) {
            options["preconditions"] = match self.dice.below(4) {
                0 => json!({"uid": format!("{{{{{short}.uid}}}}")}),
                1 => json!({"uid": "6c2e6b0f-0000-4000-8000-00000000000e"}),
                2 => json!({"resourceVersion": format!("{{{{{short}.rv}}}}")}),
                _ => json!({"resourceVersion": "1"}),
            };
        }
        if self.dice.chance(10) {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    fn delete(&self, name: &str, short: &str) -> Step {
        let method = "DELETE".to_owned();
        if self.dice.chance(60) {
            return Step { method, path: self.one(name), ..Step::default() };
        }
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = self.delete_options(short).to_string();
        Step { method, path: self.one(name), headers, body, ..Step::default() }
    }

    fn delete_collection(&self) -> Step {
        let mut query = Vec::new();
        self.selectors(&mut query);
        let path = with_query(self.sample.path.clone(), &query);
        Step { method: "DELETE".to_owned(), path, ..Step::default() }
    }

    fn watch(&self, short: &str) -> Step {
        let mut query = vec!["watch=true".to_owned(), "timeoutSeconds=1".to_owned()];
        self.selectors(&mut query);
        match self.dice.below(10) {
            0..6 => query.push("resourceVersion={{old.rv}}".to_owned()),
            6 => query.push(format!("resourceVersion={{{{{short}.rv}}}}")),
            7 => {
                let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
                query.push(initial.to_owned());
            }
            8 => query.push("resourceVersion=0".to_owned()),
            _ => {}
        }
        let path = with_query(self.sample.path.clone(), &query);
        let mut step = Step { method: "GET".to_owned(), path, ..Step::default() };
        self.form(&mut step, METADATA);
        step
    }
}

fn with_query(path: String, query: &[String]) -> String {
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

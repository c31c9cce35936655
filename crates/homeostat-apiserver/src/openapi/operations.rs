//! The paths of a custom resource: which operations there are, what they take and what they answer,
//! in the words that the operations of built-in kinds have.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const JSON_AND_YAML: &[&str] = &["application/json", "application/yaml"];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// One operation of a path.
struct Route<'a> {
    method: &'a str,
    /// What authorization calls it, more or less.
    action: &'a str,
    /// What its description and its name call it.
    verb: &'a str,
    /// The type of its answer.
    answer: &'a str,
    /// The type of its body.
    body: Option<&'a str>,
}

/// The parameters of each action, as built-in kinds have them; those of every action are under
/// the empty name.
pub(super) type Parameters = BTreeMap<String, Vec<Value>>;

/// Adds the paths of a custom resource whose types are `item` and `list`.
pub(super) fn add_paths(
    paths: &mut Map<String, Value>,
    kind: &Kind,
    (item, list): (&str, &str),
    parameters: &Parameters,
) {
    let status = format!("{META}.Status");
    let patch = format!("{META}.Patch");
    let options = format!("{META}.DeleteOptions");
    let base = format!("/apis/{}/{}", kind.group, kind.version);
    let mut add = |path: String, below: &str, routes: &[Route<'_>]| {
        let place = Place { kind, path: &path, below, parameters };
        let item = place.item(routes);
        paths.insert(path, item);
    };
    let listed = || route("get", "list", "list", list, None);
    let collection = if kind.namespaced {
        add(format!("{base}/{}", kind.plural), "", &[listed()]);
        format!("{base}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{base}/{}", kind.plural)
    };
    let routes = [
        listed(),
        route("post", "post", "create", item, Some(item)),
        route("delete", "deletecollection", "deletecollection", &status, None),
    ];
    add(collection.clone(), "", &routes);
    let [get, put, change] = single(item, &patch);
    let remove = route("delete", "delete", "delete", &status, Some(&options));
    add(format!("{collection}/{{name}}"), "", &[get, put, remove, change]);
    for below in &kind.subresources {
        let of = if below.name == "scale" { SCALE } else { item };
        add(format!("{collection}/{{name}}/{}", below.name), &below.name, &single(of, &patch));
    }
}

const fn route<'a>(
    method: &'a str,
    action: &'a str,
    verb: &'a str,
    answer: &'a str,
    body: Option<&'a str>,
) -> Route<'a> {
    Route { method, action, verb, answer, body }
}

/// What one object, or a part of it, is asked for.
fn single<'a>(of: &'a str, patch: &'a str) -> [Route<'a>; 3] {
    [
        route("get", "get", "read", of, None),
        route("put", "put", "replace", of, Some(of)),
        route("patch", "patch", "patch", of, Some(patch)),
    ]
}

/// A path, and what its operations share.
struct Place<'a> {
    kind: &'a Kind,
    path: &'a str,
    /// The subresource, if it is one.
    below: &'a str,
    parameters: &'a Parameters,
}

impl Place<'_> {
    fn item(&self, routes: &[Route<'_>]) -> Value {
        let taken: Vec<Vec<Value>> = routes.iter().map(|route| self.taken(route.action)).collect();
        let is_common = |parameter: &Value| {
            taken.iter().all(|all| all.iter().any(|one| one["name"] == parameter["name"]))
        };
        let mut item = Map::new();
        for (route, taken) in routes.iter().zip(&taken) {
            let own = taken.iter().filter(|parameter| !is_common(parameter)).cloned().collect();
            item.insert(route.method.to_owned(), self.operation(route, own));
        }
        let first = taken.first().into_iter().flatten();
        item.insert("parameters".to_owned(), first.filter(|one| is_common(one)).cloned().collect());
        Value::Object(item)
    }

    /// What an action takes, by name.
    fn taken(&self, action: &str) -> Vec<Value> {
        let of = |action: &str| self.parameters.get(action).into_iter().flatten().cloned();
        let mut all: Vec<Value> = of("").chain(of(action)).collect();
        if self.path.contains("{name}") {
            let words = format!("name of the {}", self.kind.kind);
            all.push(json!({"name": "name", "in": "path", "required": true,
                "description": words, "schema": {"type": "string", "uniqueItems": true}}));
        }
        let in_path = |parameter: &Value| {
            parameter["name"] != "namespace" || self.path.contains("{namespace}")
        };
        all.retain(in_path);
        all.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        all
    }

    fn operation(&self, route: &Route<'_>, parameters: Vec<Value>) -> Value {
        let Kind { group, version, kind, .. } = self.kind;
        let content = |types: &[&str], name: &str| -> Map<String, Value> {
            let media = json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
            types.iter().map(|name| ((*name).to_owned(), media.clone())).collect()
        };
        let mut responses = Map::new();
        let more: &[(&str, &str)] = match route.action {
            "post" => &[("201", "Created"), ("202", "Accepted")],
            "put" => &[("201", "Created")],
            "delete" => &[("202", "Accepted")],
            _ => &[],
        };
        for (code, words) in [("200", "OK")].iter().chain(more) {
            let answer =
                json!({"description": words, "content": content(JSON_AND_YAML, route.answer)});
            responses.insert((*code).to_owned(), answer);
        }
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        let short = group.strip_suffix(".k8s.io").unwrap_or(group);
        let mut operation = json!({
            "tags": [format!("{}_{version}", camel(short, false))],
            "description": self.description(route.verb),
            "operationId": self.name(route.verb),
            "responses": responses,
            "x-kubernetes-action": route.action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        });
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = route.body {
            let types = if route.action == "patch" { PATCHES } else { JSON_AND_YAML };
            operation["requestBody"] = json!({"content": content(types, body)});
            if route.action != "delete" {
                operation["requestBody"]["required"] = true.into();
            }
        }
        operation
    }

    fn description(&self, verb: &str) -> String {
        let kind = &self.kind.kind;
        let below =
            if self.below.is_empty() { String::new() } else { format!(" {} of", self.below) };
        match verb {
            "list" => format!("list{below} objects of kind {kind}"),
            "patch" => format!("partially update{below} the specified {kind}"),
            "create" | "delete" => format!("{verb}{below}{}{kind}", article(kind)),
            "deletecollection" => format!("delete collection of {kind}"),
            _ => format!("{verb}{below} the specified {kind}"),
        }
    }

    /// The name of an operation: its verb, then the version, then what it is about.
    fn name(&self, verb: &str) -> String {
        let Kind { group, version, kind, namespaced, .. } = self.kind;
        let (verb, collection) =
            if verb == "deletecollection" { ("delete", "Collection") } else { (verb, "") };
        let everywhere = *namespaced && !self.path.contains("{namespace}");
        let (space, end) = match (namespaced, everywhere) {
            (_, true) => ("", "ForAllNamespaces"),
            (true, false) => ("Namespaced", ""),
            (false, false) => ("", ""),
        };
        let group = camel(group.strip_suffix(".k8s.io").unwrap_or(group), true);
        let version = camel(version, true);
        let below = camel(self.below, true);
        format!("{verb}{group}{version}{collection}{space}{kind}{below}{end}")
    }
}

/// Words without the marks between them, each with a capital letter (the first if `first`).
fn camel(text: &str, first: bool) -> String {
    let mut out = String::new();
    let mut capital = first;
    for (index, letter) in text.char_indices() {
        if letter.is_alphabetic() || letter == '_' || (index > 0 && letter.is_numeric()) {
            if capital {
                out.extend(letter.to_uppercase());
            } else {
                out.push(letter);
            }
            capital = false;
        } else {
            capital = true;
        }
    }
    out
}

/// Plurals have none.
fn article(noun: &str) -> &'static str {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    match noun {
        _ if noun.ends_with('s') && !noun.ends_with("ss") => " ",
        _ if vowel => " an ",
        _ => " a ",
    }
}

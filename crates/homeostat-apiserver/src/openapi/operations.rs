//! The paths of a custom resource: which operations there are and what they take.
//!
//! Clients look at the parameters (`fieldValidation`), at the kind each operation is about, and
//! at the paths; the rest is what the format asks for.

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

const META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1";

const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];
const READ: &[(&str, &str)] = &[("resourceVersion", "string")];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const JSON_AND_YAML: &[&str] = &["application/json", "application/yaml"];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// What an operation works on.
struct About<'a> {
    kind: (&'a str, &'a str, &'a str),
    item: &'a str,
    list: &'a str,
}

/// Adds the paths of a custom resource; `item`, `list` and `scale` are references to its types.
pub(super) fn add_paths(
    paths: &mut Map<String, Value>,
    kind: &Kind,
    item: &str,
    list: &str,
    scale: &str,
) {
    let own = About { kind: (&kind.group, &kind.version, &kind.kind), item, list };
    let base = format!("/apis/{}/{}", kind.group, kind.version);
    let collection = if kind.namespaced {
        let everywhere = json!({"get": operation(&own, "list", LIST, None, list)});
        paths.insert(format!("{base}/{}", kind.plural), everywhere);
        format!("{base}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{base}/{}", kind.plural)
    };
    let mut verbs = json!({
        "get": operation(&own, "list", LIST, None, own.list),
        "post": operation(&own, "post", WRITE, Some((own.item, JSON_AND_YAML)), own.item),
        "delete": operation(&own, "deletecollection", LIST, None, &format!("{META}.Status")),
    });
    name_the_path(&mut verbs, kind.namespaced, false);
    paths.insert(collection.clone(), verbs);

    let mut verbs = single(&own);
    let options = format!("{META}.DeleteOptions");
    let body = Some((options.as_str(), JSON_AND_YAML));
    verbs["delete"] = operation(&own, "delete", DELETE, body, &format!("{META}.Status"));
    name_the_path(&mut verbs, kind.namespaced, true);
    paths.insert(format!("{collection}/{{name}}"), verbs);

    for below in &kind.subresources {
        let item = if below.name == "scale" { scale } else { own.item };
        let about = About { kind: (&below.group, &below.version, &below.kind), item, list };
        let mut verbs = single(&about);
        name_the_path(&mut verbs, kind.namespaced, true);
        paths.insert(format!("{collection}/{{name}}/{}", below.name), verbs);
    }
}

fn single(about: &About<'_>) -> Value {
    let patch = format!("{META}.Patch");
    json!({
        "get": operation(about, "get", READ, None, about.item),
        "put": operation(about, "put", WRITE, Some((about.item, JSON_AND_YAML)), about.item),
        "patch": operation(about, "patch", PATCH, Some((patch.as_str(), PATCHES)), about.item),
    })
}

fn operation(
    about: &About<'_>,
    action: &str,
    parameters: &[(&str, &str)],
    body: Option<(&str, &[&str])>,
    answer: &str,
) -> Value {
    let (group, version, kind) = about.kind;
    let content = |types: &[&str], reference: &str| -> Map<String, Value> {
        let media = json!({"schema": {"$ref": reference}});
        types.iter().map(|name| ((*name).to_owned(), media.clone())).collect()
    };
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|(name, ty)| json!({"name": name, "in": "query", "schema": {"type": ty, "uniqueItems": true}}))
        .collect();
    let mut operation = json!({
        "tags": [format!("{group}_{version}")],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content(JSON_AND_YAML, answer)}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    });
    if let Some((reference, types)) = body {
        operation["requestBody"] =
            json!({"required": action != "delete", "content": content(types, reference)});
    }
    operation
}

/// Declares the variables of the path beside its operations.
fn name_the_path(verbs: &mut Value, namespaced: bool, named: bool) {
    let variable = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
    let mut parameters = Vec::new();
    if named {
        parameters.push(variable("name"));
    }
    if namespaced {
        parameters.push(variable("namespace"));
    }
    verbs["parameters"] = parameters.into();
}

//! The OpenAPI v3 document of one group-version of custom resources.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::operations::{Parameters, add_paths};
use super::{Documents, registered, types};
use crate::kinds::Kind;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Renders the document of the given kinds, which all belong to one group-version. Kinds without
/// a custom resource definition are left out.
#[must_use]
pub fn custom_document(kinds: &[Arc<Kind>]) -> Value {
    let mut paths = Map::new();
    let mut all = Map::new();
    let Shared { meta, scale, prose, parameters } = shared();
    for kind in kinds.iter().filter(|kind| kind.custom.is_some()) {
        let name = type_name(kind, &kind.kind);
        let list_name = type_name(kind, &kind.list_kind);
        add_paths(&mut paths, kind, (&name, &list_name), parameters);
        all.insert(name.clone(), types::item(kind, prose));
        all.insert(list_name, types::list(kind, &name, prose));
    }
    all.extend(meta.clone());
    if kinds.iter().any(|kind| kind.subresource("scale").is_some()) {
        all.extend(scale.clone());
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths,
        "components": {"schemas": all},
    })
}

/// `info.programming-kubernetes.cnat.v1alpha1.At`: the group's words in reverse.
fn type_name(kind: &Kind, name: &str) -> String {
    let group: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{name}", group.join("."), kind.version)
}

/// What documents of custom resources share with the published ones.
struct Shared {
    /// The metadata types every document has.
    meta: Map<String, Value>,
    /// `Scale` and what it refers to.
    scale: Map<String, Value>,
    /// The schemas of `apiVersion`, `kind` and `metadata` as built-in kinds publish them.
    prose: Value,
    /// What the operations of built-in kinds take.
    parameters: Parameters,
}

/// Read once: the published documents are large, and these are a small part of them.
fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let small = parse("apis/scheduling.k8s.io/v1");
        let class = &small["components"]["schemas"]["io.k8s.api.scheduling.v1.PriorityClass"];
        let spaced = parse("apis/apps/v1");
        let roots = ["ObjectMeta", "ListMeta", "DeleteOptions", "Patch", "Status"];
        let mut meta = with_dependencies(&small, &roots.map(|name| format!("{META}.{name}")));
        meta[&format!("{META}.DeleteOptions")]["x-kubernetes-group-version-kind"] =
            registered::for_clients("DeleteOptions");
        Shared {
            meta,
            scale: with_dependencies(&spaced, &[SCALE.to_owned()]),
            prose: class["properties"].clone(),
            parameters: parameters(&small["paths"], &spaced["paths"]),
        }
    })
}

/// What each action takes: read off one kind that has them all, and one with namespaces.
fn parameters(paths: &Value, spaced: &Value) -> Parameters {
    let all = &paths["/apis/scheduling.k8s.io/v1/priorityclasses"];
    let one = &paths["/apis/scheduling.k8s.io/v1/priorityclasses/{name}"];
    let with_space = &spaced["/apis/apps/v1/namespaces/{namespace}/deployments"];
    let of = |value: &Value| value["parameters"].as_array().cloned().unwrap_or_default();
    let listed = of(&all["get"]);
    let read = listed.iter().filter(|one| one["name"] == "resourceVersion").cloned().collect();
    let actions = [
        ("", of(with_space)),
        ("get", read),
        ("deletecollection", listed.clone()),
        ("list", listed),
        ("post", of(&all["post"])),
        ("put", of(&one["put"])),
        ("patch", of(&one["patch"])),
        ("delete", of(&one["delete"])),
    ];
    actions.into_iter().map(|(name, parameters)| (name.to_owned(), parameters)).collect()
}

/// Types of a built-in document and whatever they refer to.
fn with_dependencies(document: &Value, roots: &[String]) -> Map<String, Value> {
    let schemas = &document["components"]["schemas"];
    let mut todo = roots.to_vec();
    let mut seen = BTreeSet::new();
    let mut types = Map::new();
    while let Some(name) = todo.pop() {
        if !seen.insert(name.clone()) || schemas[&name].is_null() {
            continue;
        }
        references(&schemas[&name], &mut todo);
        types.insert(name.clone(), schemas[&name].clone());
    }
    types
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix("#/components/schemas/")) {
                    Some(name) if key == "$ref" => found.push(name.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn parse(path: &str) -> Value {
    let document = Documents::builtin().document(path);
    document.and_then(|document| serde_json::from_slice(&document.text()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Custom, Strategy, Subresource, builtin};

    fn at() -> Arc<Kind> {
        let below = |name: &str, group: &str, version: &str, kind: &str| Subresource {
            name: name.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
        };
        Arc::new(Kind {
            group: "cnat.example.info".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "At".to_owned(),
            list_kind: "AtList".to_owned(),
            plural: "ats".to_owned(),
            singular: "at".to_owned(),
            short_names: vec![],
            categories: vec![],
            namespaced: true,
            verbs: vec![],
            subresources: vec![
                below("status", "cnat.example.info", "v1alpha1", "At"),
                below("scale", "autoscaling", "v1", "Scale"),
            ],
            schema: builtin()[0].schema.clone(),
            strategy: Strategy::default(),
            custom: Some(Arc::new(Custom {
                open_api: json!({"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"schedule": {"type": "string", "description": "when"}}}}}),
                ..Custom::default()
            })),
        })
    }

    #[test]
    fn a_custom_document_has_what_clients_look_for() {
        let document = custom_document(&[at()]);
        let schema = &document["components"]["schemas"]["info.example.cnat.v1alpha1.At"];
        assert_eq!(schema["properties"]["spec"]["properties"]["schedule"]["description"], "when");
        let gvk = json!({"group": "cnat.example.info", "version": "v1alpha1", "kind": "At"});
        assert_eq!(schema["x-kubernetes-group-version-kind"], json!([gvk]));
        let one = "/apis/cnat.example.info/v1alpha1/namespaces/{namespace}/ats/{name}";
        let patch = &document["paths"][one]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
        assert!(document["paths"][format!("{one}/status")]["put"].is_object());
        assert!(document["paths"]["/apis/cnat.example.info/v1alpha1/ats"]["get"].is_object());
    }

    #[test]
    fn every_reference_of_a_custom_document_leads_somewhere() {
        let document = custom_document(&[at()]);
        let mut names = Vec::new();
        references(&document, &mut names);
        assert!(names.contains(&SCALE.to_owned()) && names.len() > 20);
        for name in names {
            assert!(document["components"]["schemas"][&name].is_object(), "{name}");
        }
    }
}

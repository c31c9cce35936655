//! The types that a policy will meet, from discovery and the published schemas.

use std::collections::{BTreeMap, BTreeSet};

use homeostat::Result;
use homeostat::kube::Client;
use homeostat_cel::{Decl, Type};
use http::Method;
use serde_json::{Value, json};

use crate::write;

/// No more types than these of one rule are checked.
const MOST: usize = 10;

/// Group, version and kind; their order is that of the warnings.
type Named = (String, String, String);

/// The types that match the policy's constraints and have a schema, by their names. Rules that
/// match everything are not checked.
pub(super) async fn met(client: &Client, policy: &Value) -> Result<Vec<(String, Type)>> {
    let mut named: BTreeSet<Named> = BTreeSet::new();
    let rules = policy.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        of_rule(client, rule, &mut named).await?;
    }
    let mut met = Vec::new();
    for (group, version, kind) in named {
        if let Some(ty) = declared(client, &group, &version, &kind).await? {
            met.push((format!("{group}/{version}, Kind={kind}"), ty));
        }
    }
    Ok(met)
}

/// The type of the policy's parameters; `None` where there are none, or no schema for them.
pub(super) async fn of_params(client: &Client, policy: &Value) -> Result<Option<Type>> {
    let text = |pointer: &str| policy.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("/spec/paramKind/apiVersion"), text("/spec/paramKind/kind"));
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    if version.is_empty() {
        return Ok(None);
    }
    declared(client, group, version, kind).await
}

async fn of_rule(client: &Client, rule: &Value, named: &mut BTreeSet<Named>) -> Result<()> {
    let words = |field: &str| {
        let given = rule.get(field).and_then(Value::as_array).into_iter().flatten();
        let mut words: Vec<String> = given.filter_map(Value::as_str).map(str::to_owned).collect();
        words.sort();
        words
    };
    let (groups, versions, mut resources) =
        (words("apiGroups"), words("apiVersions"), words("resources"));
    resources.retain(|resource| !resource.contains(['*', '/']));
    if groups.iter().chain(&versions).any(|word| word.contains('*')) {
        return Ok(());
    }
    let mut count = 0;
    for group in &groups {
        for version in &versions {
            let found = get(client, &format!("/{}", place(group, version))).await?;
            let listed = found.as_ref().and_then(|found| found["resources"].as_array());
            for resource in &resources {
                let mut rows = listed.into_iter().flatten();
                let Some(row) = rows.find(|row| row["name"] == resource.as_str()) else { continue };
                let kind = row["kind"].as_str().unwrap_or_default().to_owned();
                named.insert((group.clone(), version.clone(), kind));
                count += 1;
                if count == MOST {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    write::send(client, Method::GET, path, "application/json", &Value::Null).await
}

/// Where a version is served.
fn place(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The type of a kind, as its version publishes it.
async fn declared(client: &Client, group: &str, version: &str, kind: &str) -> Result<Option<Type>> {
    let path = format!("/openapi/v3/{}", place(group, version));
    let Some(document) = get(client, &path).await? else { return Ok(None) };
    let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object) else {
        return Ok(None);
    };
    let wanted = json!({"group": group, "version": version, "kind": kind});
    let is_wanted = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.contains(&wanted))
    };
    let Some(schema) = schemas.values().find(is_wanted) else { return Ok(None) };
    let all: BTreeMap<&str, &Value> =
        schemas.iter().map(|(name, schema)| (name.as_str(), schema)).collect();
    let whole = expanded(schema, &all, &mut Vec::new());
    Ok(Decl::of(&whole, false, kind).map(|decl| decl.ty))
}

/// A schema with everything that it refers to in its place. What refers to itself is an object
/// of which nothing is known.
fn expanded<'a>(
    schema: &'a Value,
    all: &BTreeMap<&str, &'a Value>,
    within: &mut Vec<&'a str>,
) -> Value {
    // A reference may stand alone in an `allOf`, to have a description beside it.
    let wrapped = schema["allOf"].as_array().and_then(|parts| parts.first());
    let reference = schema["$ref"].as_str().or_else(|| wrapped?["$ref"].as_str());
    if let Some(name) = reference.and_then(|path| path.strip_prefix("#/components/schemas/")) {
        return match all.get(name) {
            Some(found) if !within.contains(&name) => {
                within.push(name);
                let whole = expanded(found, all, within);
                within.pop();
                whole
            }
            _ => json!({"type": "object"}),
        };
    }
    let mut whole = schema.clone();
    if schema["format"] == "int-or-string" {
        whole["x-kubernetes-int-or-string"] = true.into();
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        whole["properties"][name] = expanded(field, all, within);
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            whole[part] = expanded(&schema[part], all, within);
        }
    }
    whole
}

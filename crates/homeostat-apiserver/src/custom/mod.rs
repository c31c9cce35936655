//! CustomResourceDefinitions: from a definition to the rows of the table of kinds it stands for.
//!
//! It never stores or serves anything: the engine keeps the rows and asks again when the
//! definition changes.

mod accepted;
mod arena;
pub(crate) mod conversion;
mod default_values;
mod kept;
mod naming;
mod presented;
mod prune;
mod rules;
mod schemas;
mod shared;
mod stanza;
mod status;
mod structural;
mod versioned;
mod versions;
mod wellformed;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::{
    Column, Custom, Generation, Kind, ScalePaths, Strategy, Subresource, WHOLE_METADATA,
};
use crate::schema::KindSchema;
use crate::validate::Rules;

pub use accepted::NamesInUse;
pub(crate) use arena::{OBJECT_META, nothing};
pub use conversion::Conversion;
pub(crate) use default_values::has_ruled_defaults;
pub(crate) use kept::{as_compared, as_kept};
pub use prune::prune;
pub use status::conditions;
pub(crate) use status::{is_established, new_status, note_storage, was_looked_at};
pub use versions::Versions;

/// The published names of what definitions are made of.
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
const ITEMS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray";
const RULE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule";
const VERSIONS: &str =
    "[]io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion";

/// The verbs of a custom resource in the order discovery lists them.
const VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Fills what a definition leaves out: singular and list names, the conversion, and the version
/// that objects are first stored in.
pub fn defaults(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    if let Some(names) = definition.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        for (field, value) in
            [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))]
        {
            if !kind.is_empty()
                && names.get(field).and_then(Value::as_str).is_none_or(str::is_empty)
            {
                names.insert(field.to_owned(), Value::String(value));
            }
        }
    }
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        // A list that was given counts here, even if it is empty.
        if let Some(stanza) = spec.get_mut("conversion") {
            kept::drop_idle_webhook(stanza, Value::is_array);
        }
        let service = spec
            .get_mut("conversion")
            .and_then(|stanza| stanza.pointer_mut("/webhook/clientConfig/service"))
            .and_then(Value::as_object_mut);
        if let Some(service) = service {
            service.entry("port").or_insert_with(|| 443.into());
        }
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.shift_remove("preserveUnknownFields");
        }
    }
    if list(definition, "/status/storedVersions").next().is_none() {
        let storage = list(definition, "/spec/versions").find(|version| flag(version, "storage"));
        if let Some(name) = storage.map(|version| version["name"].clone()) {
            definition["status"]["storedVersions"] = json!([name]);
        }
    }
}

/// Everything that is wrong with a definition: names, versions, structure, CEL, conversion.
#[must_use]
pub fn check(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = versioned::Versions::of(definition, old);
    if old.is_none() {
        naming::own_name(definition, &mut errors);
    }
    naming::place(definition, &mut errors);
    versions.have_schemas(&mut errors);
    versions.each(&mut errors);
    naming::wanted(definition, &mut errors);
    versions.together(&mut errors);
    errors.extend(stanza::check(definition, old));
    errors.extend(old.into_iter().flat_map(|old| versioned::check_change(definition, old)));
    naming::accepted(definition, &mut errors);
    versions.stored(&mut errors);
    naming::permission(definition, &mut errors);
    errors
}

/// The rows of the served versions of a definition that was found to be right.
#[must_use]
pub fn rows(definition: &Value) -> Vec<Kind> {
    let versions = Arc::new(Versions::of(definition));
    let served = list(definition, "/spec/versions").filter(|version| flag(version, "served"));
    served.map(|version| row(definition, version, &versions)).collect()
}

/// Whether an object calls itself something else than the custom kind that it was given as.
pub(crate) fn is_stranger(kind: &Kind, object: &Value) -> bool {
    let is_own =
        text(object, "/kind") == kind.kind && text(object, "/apiVersion") == kind.api_version();
    kind.custom.is_some() && !is_own
}

/// The schema of one version.
fn schema_of(version: &Value) -> KindSchema {
    let empty = json!({});
    let (schemas, root) =
        arena::build(version.pointer("/schema/openAPIV3Schema").unwrap_or(&empty));
    KindSchema { schemas: Arc::new(schemas), root }
}

fn row(definition: &Value, version: &Value, versions: &Arc<Versions>) -> Kind {
    let open_api = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({}));
    let schema = schema_of(version);
    let rules = Arc::new(Rules::compile(schema.root(), &open_api, true));
    let name = text(version, "/name").to_owned();
    let group = text(definition, "/spec/group").to_owned();
    // Served are the names it was given, which need not be those it asks for.
    let given = text(definition, "/status/acceptedNames/plural");
    let names = if given.is_empty() { "/spec/names" } else { "/status/acceptedNames" };
    let named = |field: &str| text(definition, &format!("{names}/{field}")).to_owned();
    let kind = named("kind");
    let scale = version.pointer("/subresources/scale").map(|scale| ScalePaths {
        spec: text(scale, "/specReplicasPath").to_owned(),
        status: text(scale, "/statusReplicasPath").to_owned(),
        selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
    });
    let status = version.pointer("/subresources/status").is_some();
    let part = |name: &str, kind: &str, group: &str, version: &str| Subresource {
        name: name.to_owned(),
        kind: kind.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
    };
    let mut subresources = Vec::new();
    if status {
        subresources.push(part("status", &kind, &group, &name));
    }
    if scale.is_some() {
        subresources.push(part("scale", "Scale", "autoscaling", "v1"));
    }
    Kind {
        list_kind: named("listKind"),
        plural: named("plural"),
        singular: named("singular"),
        short_names: words(definition, &format!("{names}/shortNames")),
        categories: words(definition, &format!("{names}/categories")),
        namespaced: text(definition, "/spec/scope") == "Namespaced",
        verbs: VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
        subresources,
        schema,
        strategy: Strategy {
            generation: Generation::AllButMetadataAndStatus,
            status,
            unconditional_update: false,
            status_leaves: WHOLE_METADATA,
            ..Strategy::default()
        },
        custom: Some(Arc::new(Custom {
            definition: text(definition, "/metadata/name").to_owned(),
            definition_uid: text(definition, "/metadata/uid").to_owned(),
            columns: list(version, "/additionalPrinterColumns").map(column).collect(),
            scale,
            selectable_fields: list(version, "/selectableFields")
                .map(|field| text(field, "/jsonPath").to_owned())
                .collect(),
            deprecation: flag(version, "deprecated").then(|| {
                version
                    .get("deprecationWarning")
                    .and_then(Value::as_str)
                    .map_or_else(|| format!("{group}/{name} {kind} is deprecated"), str::to_owned)
            }),
            versions: versions.clone(),
            since: 0,
            edition: 0,
            open_api,
            rules,
        })),
        group,
        version: name,
        kind,
    }
}

fn column(column: &Value) -> Column {
    Column {
        name: text(column, "/name").to_owned(),
        ty: text(column, "/type").to_owned(),
        format: text(column, "/format").to_owned(),
        description: text(column, "/description").to_owned(),
        priority: column
            .get("priority")
            .and_then(Value::as_i64)
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or_default(),
        json_path: text(column, "/jsonPath").to_owned(),
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn words(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests;

//! Who owns an object's number of replicas, in the words of its scale, and back.
//!
//! A Scale has one field to own. Its owners are those of the number in the object; whoever comes to
//! own it through the scale owns the number from then on, and nothing else of the object.

use serde_json::Value;

use super::managed::{self, Managed, Owned};
use super::{FieldSet, PathElement};

/// The version of every Scale, and where it has its number.
const VERSION: &str = "autoscaling/v1";
const NUMBER: [&str; 2] = ["spec", "replicas"];

/// Where an object keeps its number in the version `group/version`: `None` for a version that nobody
/// knows, nowhere for one that has no scale.
pub(crate) type Places<'a> = &'a dyn Fn(&str) -> Option<Option<Vec<String>>>;

/// Where a version that is known and has a scale keeps its number.
fn place(places: Places<'_>, version: &str) -> Option<Vec<PathElement>> {
    let names = places(version)??;
    Some(names.into_iter().map(PathElement::field).collect())
}

fn number() -> Vec<PathElement> {
    NUMBER.map(PathElement::field).to_vec()
}

fn only(path: Vec<PathElement>) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}

/// Gives the Scale of an object the owners that the number has there.
///
/// # Errors
/// Says what is wrong with the owners of the object.
pub(crate) fn own_scale(
    object: &Value,
    scale: &mut Value,
    places: Places<'_>,
) -> Result<(), String> {
    let mut owners = Managed::new();
    for (owner, owned) in managed::decode(object)? {
        let path = place(places, &owned.api_version);
        if path.is_some_and(|path| owned.fields.contains(&path)) {
            let fields = only(number());
            owners.insert(owner, Owned { fields, api_version: VERSION.to_owned(), ..owned });
        }
    }
    managed::encode(scale, owners);
    Ok(())
}

/// Gives an object that speaks `version` the owners that its Scale has now. Who owned the number
/// and does no more loses it.
///
/// # Errors
/// Says what is wrong with the owners of either.
pub(crate) fn own_object(
    object: &mut Value,
    scale: &Value,
    version: &str,
    places: Places<'_>,
) -> Result<(), String> {
    let (before, mut scaling) = (managed::decode(object)?, managed::decode(scale)?);
    let mut owners = Managed::new();
    for (owner, mut owned) in before.clone() {
        if places(&owned.api_version).is_none() {
            continue;
        }
        let path = place(places, &owned.api_version);
        if let Some(path) = path.filter(|path| owned.fields.contains(path))
            && scaling.remove(&owner).is_none()
        {
            owned.fields = owned.fields.difference(&only(path));
        }
        if !owned.fields.is_empty() {
            owners.insert(owner, owned);
        }
    }
    let path = place(places, version).unwrap_or_default();
    for (owner, _) in scaling.into_iter().filter(|(_, owned)| owned.fields.contains(&number())) {
        let time = before.get(&owner).and_then(|owned| owned.time.clone());
        let fields = only(path.clone());
        owners.insert(owner, Owned { fields, api_version: version.to_owned(), time });
    }
    managed::encode(object, owners);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{own_object, own_scale};

    fn places(version: &str) -> Option<Option<Vec<String>>> {
        match version {
            "g/v1" => Some(Some(vec!["spec".to_owned(), "n".to_owned()])),
            "g/v2" => Some(None),
            _ => None,
        }
    }

    fn entry(manager: &str, version: &str, part: &str, fields: &Value) -> Value {
        let mut entry = json!({"manager": manager, "operation": "Apply", "apiVersion": version,
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
        if !part.is_empty() {
            entry["subresource"] = part.into();
        }
        entry
    }

    fn owners(object: &Value) -> Vec<String> {
        let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        all.map(|entry| format!("{} {}", entry["manager"], entry["fieldsV1"])).collect()
    }

    #[test]
    fn a_number_taken_through_the_scale_is_lost_by_its_owner_who_keeps_the_rest() {
        let mut object = json!({"metadata": {"managedFields": [
            entry("a", "g/v1", "", &json!({"f:spec": {"f:n": {}, "f:x": {}}})),
            entry("b", "g/v2", "", &json!({"f:spec": {"f:n": {}}})),
            entry("c", "other/v1", "", &json!({"f:spec": {"f:y": {}}})),
        ]}});
        let mut scale = json!({"metadata": {}});
        own_scale(&object, &mut scale, &places).unwrap();
        assert_eq!(owners(&scale), [r#""a" {"f:spec":{"f:replicas":{}}}"#]);

        let taken = entry("d", "autoscaling/v1", "scale", &json!({"f:spec": {"f:replicas": {}}}));
        let scale = json!({"metadata": {"managedFields": [taken]}});
        own_object(&mut object, &scale, "g/v1", &places).unwrap();
        let mut now = owners(&object);
        now.sort();
        assert_eq!(
            now,
            [
                r#""a" {"f:spec":{"f:x":{}}}"#,
                r#""b" {"f:spec":{"f:n":{}}}"#,
                r#""d" {"f:spec":{"f:n":{}}}"#
            ]
        );
    }
}

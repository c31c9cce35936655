//! Parameters that are said once: every parameter but those that speak of one kind, and two that old
//! clients look for in operations. Their names carry a hash of what they say.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;
use serde_json::{Map, Value, json};

/// The members of a parameter in the order in which they are hashed.
const ORDER: &[&str] =
    &["uniqueItems", "type", "format", "description", "name", "in", "required", "schema"];

/// The parameter itself, or a reference to it if it is one that is said once.
pub(super) fn name(parameter: Value, shared: &mut BTreeMap<String, Value>) -> Value {
    if !is_shared(&parameter) {
        return parameter;
    }
    let name = shared_name(&parameter);
    let reference = json!({"$ref": format!("#/parameters/{name}")});
    shared.entry(name).or_insert(parameter);
    reference
}

fn is_shared(parameter: &Value) -> bool {
    match (parameter["name"].as_str(), parameter["in"].as_str()) {
        (Some("name"), Some("query" | "path"))
        | (Some("fieldValidation" | "dryRun"), Some("query")) => false,
        (Some("body"), Some("body")) => parameter["schema"]["$ref"]
            .as_str()
            .is_some_and(|name| name.starts_with("#/definitions/io.k8s.apimachinery")),
        _ => true,
    }
}

fn shared_name(parameter: &Value) -> String {
    let members = ORDER.iter().filter_map(|&name| Some((name, parameter.get(name)?)));
    let ordered: Map<String, Value> =
        members.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let hash = fnv(&escaped(&Value::Object(ordered).to_string())).to_be_bytes();
    let name = parameter["name"].as_str().unwrap_or_default();
    format!("{name}-{}", BASE64_URL_SAFE.encode(&hash[..6]))
}

/// JSON as Go writes it, safe inside of HTML.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// FNV-1 of 64 bits.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_the_name_that_kube_apiserver_gives_it() {
        let options = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
        let body = json!({"in": "body", "name": "body", "schema": {"$ref": options}});
        let mut shared = BTreeMap::new();
        let reference = name(body.clone(), &mut shared);
        assert_eq!(reference, json!({"$ref": "#/parameters/body-2Y1dVQaQ"}));
        assert_eq!(shared["body-2Y1dVQaQ"], body);
        let own = json!({"in": "path", "name": "name", "type": "string"});
        assert_eq!(name(own.clone(), &mut shared), own);
    }
}

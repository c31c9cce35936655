//! The response of an admission webhook: what of it counts, and why it is none.

use serde_json::{Value, json};

use super::inquiry::Answer;
use crate::decode;
use crate::go::json_type;
use crate::registry::options::unregistered;

const REVIEW: &str = "AdmissionReview";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// The fields of a response: their names, what Go calls their types, and what is of those.
const FIELDS: &[Field] = &[
    ("uid", "types.UID", Value::is_string),
    ("allowed", "bool", Value::is_boolean),
    ("patch", "[]uint8", Value::is_string),
    ("patchType", "v1.PatchType", Value::is_string),
    ("auditAnnotations", "map[string]string", Value::is_object),
    ("warnings", "[]string", Value::is_array),
];

type Field = (&'static str, &'static str, fn(&Value) -> bool);

/// The response in the reply to a review of this uid.
///
/// # Errors
/// What is wrong with it, in the words of kube-apiserver.
pub(crate) fn read(review: &Value, uid: &str, mutates: bool, mut reply: Value) -> Answer {
    let version = review["apiVersion"].as_str().unwrap_or_default();
    decoded(version, &mut reply).map_err(|why| format!("failed to call webhook: {why}"))?;
    let is_strict = version.ends_with("/v1");
    let checked = if is_strict { check(uid, mutates, &reply) } else { check_present(&reply) };
    checked.map_err(|why| format!("received invalid webhook response: {why}"))?;
    let mut response = reply["response"].take();
    if !is_strict {
        // Reviews of old say nothing of the type of a patch.
        response["patchType"] = "JSONPatch".into();
    }
    Ok(response)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

/// Reads the reply as a review of that version.
fn decoded(version: &str, reply: &mut Value) -> Result<(), String> {
    let or = |given: &str, meant: &str| if given.is_empty() { meant } else { given }.to_owned();
    let (given, kind) = (or(text(reply, "apiVersion"), version), or(text(reply, "kind"), REVIEW));
    if (given.as_str(), kind.as_str()) != (version, REVIEW) {
        let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
        let is_known = match kind.as_str() {
            REVIEW => matches!(given.as_str(), "admission.k8s.io/v1" | "admission.k8s.io/v1beta1"),
            "Status" => given == "v1",
            _ => false,
        };
        return Err(match is_known {
            false => unregistered(&kind, &given),
            true => format!(
                "converting ({}.{kind}) to ({}.{REVIEW}): unknown conversion",
                short(&given),
                short(version)
            ),
        });
    }
    match reply.get_mut("response") {
        None | Some(Value::Null) => Ok(()),
        Some(response) if response.is_object() => decode_response(response),
        Some(other) => Err(mismatch(other, "AdmissionReview.response", "v1.AdmissionResponse")),
    }
}

fn mismatch(found: &Value, field: &str, ty: &str) -> String {
    format!("json: cannot unmarshal {} into Go struct field {field} of type {ty}", json_type(found))
}

fn decode_response(response: &mut Value) -> Result<(), String> {
    for (name, ty, is_of_type) in FIELDS {
        let Some(value) = response.get_mut(name).filter(|value| !value.is_null()) else { continue };
        let field = format!("AdmissionResponse.response.{name}");
        if !is_of_type(value) {
            return Err(mismatch(value, &field, ty));
        }
        let is_text = |item: &&Value| !item.is_string() && !item.is_null();
        let odd = match &*value {
            Value::Object(entries) => entries.values().find(is_text),
            Value::Array(items) => items.iter().find(is_text),
            _ => None,
        };
        if let Some(odd) = odd {
            return Err(mismatch(odd, &field, "string"));
        }
        if let (true, Value::String(patch)) = (*name == "patch", value) {
            decode::bytes(patch)?;
        }
    }
    match response.get_mut("status").filter(|status| !status.is_null()) {
        None => Ok(()),
        Some(status) if !status.is_object() => {
            Err(mismatch(status, "AdmissionResponse.response.status", "v1.Status"))
        }
        Some(status) => decode::typed_as(STATUS, status).map_err(|why| {
            // The name of a field is told with all that is around it.
            match why.split_once("Go struct field ").and_then(|(head, rest)| {
                let (owner, path) = rest.split_once('.')?;
                Some(format!("{head}Go struct field {owner}.response.status.{path}"))
            }) {
                Some(whole) => whole,
                None => why,
            }
        }),
    }
}

fn check_present(reply: &Value) -> Result<(), String> {
    if reply["response"].is_object() {
        return Ok(());
    }
    Err("webhook response was absent".to_owned())
}

fn check(uid: &str, mutates: bool, reply: &Value) -> Result<(), String> {
    check_present(reply)?;
    let response = &reply["response"];
    let given = text(response, "uid");
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let (version, kind) = (text(reply, "apiVersion"), text(reply, "kind"));
    if version.is_empty() || kind.is_empty() {
        let version = if version.is_empty() { "/" } else { version };
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind={REVIEW}, got {version}, \
             Kind={kind}"
        ));
    }
    let has_patch = !text(response, "patch").is_empty();
    let ty = response.get("patchType").filter(|ty| !ty.is_null());
    match (mutates, has_patch, ty) {
        (false, true, _) => Err("validating webhook may not return response.patch".to_owned()),
        (false, false, Some(_)) => {
            Err("validating webhook may not return response.patchType".to_owned())
        }
        (true, true, None) => {
            Err("webhook returned response.patch but not response.patchType".to_owned())
        }
        (true, false, Some(_)) => {
            Err("webhook returned response.patchType but not response.patch".to_owned())
        }
        (true, true, Some(ty)) if *ty == json!("") => {
            Err("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    fn answer(version: &str, mutates: bool, response: &Value) -> Result<Value, String> {
        let version = format!("admission.k8s.io/{version}");
        let review = json!({"apiVersion": version});
        let reply = json!({"apiVersion": version, "kind": "AdmissionReview", "response": response});
        read(&review, "u", mutates, reply)
    }

    #[test]
    fn only_mutating_webhooks_may_patch_and_must_say_how() {
        let response = |more: Value| {
            let mut response = json!({"uid": "u", "allowed": true});
            response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            response
        };
        let patch = response(json!({"patch": "W10=", "patchType": "JSONPatch"}));
        assert!(answer("v1", true, &patch).is_ok());
        assert!(answer("v1", false, &patch).unwrap_err().contains("may not return response.patch"));
        let untyped = response(json!({"patch": "W10="}));
        assert!(answer("v1", true, &untyped).unwrap_err().contains("not response.patchType"));
        assert_eq!(answer("v1beta1", true, &untyped).unwrap()["patchType"], "JSONPatch");
        let broken = response(json!({"patch": "%"}));
        assert!(answer("v1", true, &broken).unwrap_err().contains("illegal base64 data"));
    }

    #[test]
    fn an_answer_to_another_question_is_none() {
        let other = json!({"uid": "other", "allowed": true});
        assert!(answer("v1", false, &other).unwrap_err().contains("expected response.uid=\"u\""));
        assert!(answer("v1beta1", false, &other).is_ok());
        assert!(answer("v1", false, &Value::Null).unwrap_err().contains("was absent"));
    }
}

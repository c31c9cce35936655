//! `spec.conversion` of a definition: what may be written there.

use serde_json::Value;

use super::status::is_established;
use super::{list, text};
use crate::field::{FieldError, Reason};
use crate::validate::{client_config, dns_label_1035};

const REVIEWS: &[&str] = &["v1", "v1beta1"];
const CLIENT: &str = "spec.conversion.webhookClientConfig";
const READ: &str = "spec.conversion.conversionReviewVersions";

/// All that is wrong with the conversion of a definition; what was wrong before may stay.
pub(super) fn check(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(stanza) = definition.pointer("/spec/conversion") else { return errors };
    let strategy = text(stanza, "/strategy");
    match strategy {
        "None" | "Webhook" => {}
        "" => errors.push(FieldError::required("spec.conversion.strategy", "")),
        other => errors.push(FieldError::new(
            "spec.conversion.strategy",
            Reason::NotSupported,
            other.into(),
            "supported values: \"None\", \"Webhook\"",
        )),
    }
    let client = stanza.pointer("/webhook/clientConfig").filter(|client| client.is_object());
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(FieldError::forbidden(CLIENT, detail));
        }
        if list(stanza, "/webhook/conversionReviewVersions").next().is_some() {
            errors.push(FieldError::forbidden(READ, detail));
        }
        return errors;
    }
    match client {
        None => {
            errors.push(FieldError::required(CLIENT, "required when strategy is set to Webhook"));
        }
        Some(client) => errors.extend(check_client(client, old)),
    }
    errors.extend(check_reviews(stanza, old));
    errors
}

fn check_client(client: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|service| service.is_object());
    let mut errors = match (url, service) {
        (Some(url), None) => client_config::url(url, &format!("{CLIENT}.url")),
        (None, Some(service)) => {
            let mut errors = client_config::service(service, &format!("{CLIENT}.service"));
            // The two are mistaken for each other here.
            for error in &mut errors {
                if let Some(path) = error.path.strip_suffix(".name") {
                    error.path = format!("{path}.namespace");
                } else if let Some(path) = error.path.strip_suffix(".namespace") {
                    error.path = format!("{path}.name");
                }
            }
            errors
        }
        _ => vec![FieldError::required(CLIENT, "exactly one of url or service is required")],
    };
    let bundle_errors = |client: &Value| {
        client_config::ca_bundle(text(client, "/caBundle"), &format!("{CLIENT}.caBundle"))
    };
    // Until a definition is served, the bundle may still be on its way; one that was bad may stay.
    let lenient = old.is_none_or(|old| {
        let before = old.pointer("/spec/conversion/webhook/clientConfig");
        !is_established(old) || before.is_some_and(|before| !bundle_errors(before).is_empty())
    });
    if !lenient {
        errors.extend(bundle_errors(client));
    }
    errors
}

fn check_reviews(stanza: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let read = |stanza: &Value| -> Vec<String> {
        let versions = list(stanza, "/webhook/conversionReviewVersions");
        versions.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let is_known = |versions: &[String]| versions.iter().any(|v| REVIEWS.contains(&v.as_str()));
    let versions = read(stanza);
    if versions.is_empty() {
        return vec![FieldError::required(READ, "")];
    }
    let invalid = |path: String, value: Value, detail: &str| {
        FieldError::new(path, Reason::Invalid, value, detail)
    };
    let mut errors = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let (path, value) = (format!("{READ}[{at}]"), Value::from(version.as_str()));
        if versions[..at].contains(version) {
            errors.push(invalid(path, value, "duplicate version"));
            continue;
        }
        for problem in dns_label_1035(version) {
            errors.push(invalid(path.clone(), value.clone(), &problem));
        }
    }
    let before = old.and_then(|old| old.pointer("/spec/conversion")).map(read);
    let must = before.is_none_or(|before| before.is_empty() || is_known(&before));
    if must && !is_known(&versions) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(invalid(READ.to_owned(), versions.into(), &detail));
    }
    errors
}

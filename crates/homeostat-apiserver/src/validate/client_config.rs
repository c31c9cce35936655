//! The `clientConfig` of webhooks: a URL or a Service, and the authorities that vouch for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

use super::name::dns_subdomain;
use crate::field::{FieldError, Reason};

const FORM: &str = "; desired format: https://host[/path]";

fn invalid(path: &str, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Reason::Invalid, value.into(), detail)
}

/// What is wrong with the URL of a webhook.
pub(crate) fn url(text: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", ""));
    let authority = rest.split('/').next().unwrap_or("");
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let odd = |char: &char| !char.is_ascii_graphic() || "\"<>\\^`{|}".contains(*char);
    if let Some(odd) = host.chars().find(odd) {
        let odd = odd.to_string();
        let why = format!("parse {text:?}: invalid character {odd:?} in host name");
        let detail = format!("url must be a valid URL: {why}{FORM}");
        return vec![FieldError::required(path, detail)];
    }
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(invalid(path, scheme, detail));
    }
    if host.is_empty() {
        errors.push(invalid(path, "", format!("host must be specified{FORM}")));
    }
    let parts = [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ];
    for (part, detail) in parts.into_iter().filter(|(part, _)| !part.is_empty()) {
        errors.push(invalid(path, part, detail));
    }
    errors
}

/// What is wrong with the Service of a webhook.
pub(crate) fn service(service: &Value, path: &str) -> Vec<FieldError> {
    let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or("");
    let mut errors = Vec::new();
    for field in ["name", "namespace"].into_iter().filter(|field| text(field).is_empty()) {
        errors.push(FieldError::required(format!("{path}.{field}"), ""));
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(invalid(&format!("{path}.port"), port, detail));
    }
    let (url_path, path) = (text("path"), format!("{path}.path"));
    let mut refuse = |detail: String| errors.push(invalid(&path, url_path, detail));
    match url_path {
        "" | "/" => return errors,
        "//" => {
            refuse("segment[0] may not be empty".to_owned());
            return errors;
        }
        given if !given.starts_with('/') => refuse("must start with a '/'".to_owned()),
        _ => {}
    }
    // Whatever the first character is, it is taken for the slash.
    let steps = url_path.get(1..).unwrap_or("");
    for (at, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{at}] may not be empty"));
            continue;
        }
        for problem in dns_subdomain(step) {
            refuse(format!("segment[{at}]: {problem}"));
        }
    }
    errors
}

/// What is wrong with a bundle of certificates, which is PEM in base64.
pub(crate) fn ca_bundle(bundle: &str, path: &str) -> Vec<FieldError> {
    let pem = STANDARD.decode(bundle).unwrap_or_default();
    let mut certificates = CertificateDer::pem_slice_iter(&pem);
    if !pem.is_empty() && certificates.next().is_none_or(|first| first.is_err()) {
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        return vec![invalid(path, bundle, detail)];
    }
    Vec::new()
}

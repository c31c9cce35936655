//! CertificateSigningRequests: what may be asked for, who may be said to have approved it, and
//! what a certificate looks like.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::FromDer as _;

use super::report::{Report, at, list, text};
use crate::validate::name;

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const LEGACY: &str = "kubernetes.io/legacy-unknown";
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];
const SHORTEST_SECONDS: i64 = 600;

pub(super) fn request(value: &Value, old: Option<&Value>, report: &mut Report) {
    if old.is_none() {
        asked(value, report);
    }
    conditions(list(value, "/status/conditions"), report);
    let certificate = at(value, "/status/certificate");
    if old.is_none_or(|old| at(old, "/status/certificate") != certificate)
        && let Err(why) = check_certificate(certificate.as_str().unwrap_or_default())
    {
        report.invalid("status.certificate", "<certificate data>", why);
    }
}

/// What only a create brings.
fn asked(value: &Value, report: &mut Report) {
    let request = at(value, "/spec/request");
    if let Err(why) = check_request(request.as_str().unwrap_or_default()) {
        report.invalid("spec.request", request.clone(), why);
    }
    let usages = list(value, "/spec/usages");
    if usages.is_empty() {
        report.required("spec.usages", "");
    }
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(&usage.as_str().unwrap_or_default()) {
            report.unsupported(&format!("spec.usages[{index}]"), usage, USAGES);
        }
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages[..index].contains(usage) {
            report.duplicate(format!("spec.usages[{index}]"), usage.clone());
        }
    }
    signer_name(text(value, "/spec/signerName"), report);
    let seconds = at(value, "/spec/expirationSeconds").as_i64();
    if let Some(seconds) = seconds.filter(|seconds| *seconds < SHORTEST_SECONDS) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        report.invalid("spec.expirationSeconds", seconds, detail);
    }
}

fn signer_name(signer: &str, report: &mut Report) {
    const PATH: &str = "spec.signerName";
    if signer == LEGACY {
        let detail = "the legacy signerName is not allowed via this API version";
        report.invalid(PATH, signer, detail);
        return;
    }
    if signer.is_empty() {
        report.required(PATH, "");
        return;
    }
    let parts: Vec<&str> = signer.split('/').collect();
    let [domain, path] = parts[..] else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        report.invalid(PATH, signer, detail);
        return;
    };
    let labels: Vec<&str> = domain.split('.').collect();
    for label in &labels {
        for problem in name::dns_label(label) {
            report.invalid(PATH, domain, format!("validating label {label:?}: {problem}"));
        }
    }
    if labels.len() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        report.invalid(PATH, domain, detail);
    }
    for problem in name::dns_subdomain(path) {
        report.invalid(PATH, path, format!("validating label {path:?}: {problem}"));
    }
}

fn conditions(all: &[Value], report: &mut Report) {
    const PATH: &str = "status.conditions";
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in all.iter().enumerate() {
        let (ty, status) = (text(condition, "/type"), text(condition, "/status"));
        if ty.is_empty() {
            report.required(format!("{PATH}[{index}].type"), "");
        }
        let allowed: &[&str] =
            if FINAL.contains(&ty) { &["True"] } else { &["False", "True", "Unknown"] };
        report.one_of(&format!("{PATH}[{index}].status"), status, allowed);
        let other = match ty {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if seen.contains(&other) && !other.is_empty() {
            report.invalid(PATH, ty, "Approved and Denied conditions are mutually exclusive");
        }
        if seen.contains(&ty) {
            report.duplicate(format!("{PATH}[{index}].type"), ty);
        }
        seen.push(ty);
    }
}

/// What a write through `part` may not change. Verdicts are spoken through `approval`,
/// certificates are given through `status`, and none of them is taken back.
pub(super) fn change(part: &str, value: &Value, old: &Value, report: &mut Report) {
    const PATH: &str = "status.conditions";
    let of = |object: &Value, ty: &str| -> Vec<Value> {
        let all = list(object, "/status/conditions").iter();
        all.filter(|condition| condition["type"] == ty).cloned().collect()
    };
    for ty in FINAL {
        if of(value, ty).len() < of(old, ty).len() {
            report.forbidden(PATH, &format!("updates may not remove a condition of type {ty:?}"));
        }
    }
    for ty in FINAL.iter().take(2).filter(|_| part != "approval") {
        let (before, after) = (of(old, ty), of(value, ty));
        if after.len() > before.len() {
            report.forbidden(PATH, &format!("updates may not add a condition of type {ty:?}"));
        } else if after.len() == before.len() && after != before {
            report.forbidden(PATH, &format!("updates may not modify a condition of type {ty:?}"));
        }
    }
    let (before, after) = (text(old, "/status/certificate"), text(value, "/status/certificate"));
    if before == after {
        return;
    }
    if part != "status" {
        report.forbidden("status.certificate", "updates may not set certificate content");
    } else if !before.is_empty() {
        let detail = "updates may not modify existing certificate content";
        report.forbidden("status.certificate", detail);
    }
}

/// The request is one, and whoever wrote it has the key.
fn check_request(encoded: &str) -> Result<(), String> {
    let wrong = || "PEM block type must be CERTIFICATE REQUEST".to_owned();
    let pem = STANDARD.decode(encoded).map_err(|_| wrong())?;
    let (_, block) = parse_x509_pem(&pem).map_err(|_| wrong())?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err(wrong());
    }
    let (_, request) =
        X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    request.verify_signature().map_err(|error| error.to_string())
}

/// A chain of certificates, and nothing but that.
fn check_certificate(encoded: &str) -> Result<(), String> {
    if encoded.is_empty() {
        return Ok(());
    }
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(&pem) {
        let Ok(block) = block else { break };
        if block.label != "CERTIFICATE" {
            let label = block.label;
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {label:?}"));
        }
        block.parse_x509().map_err(|error| error.to_string())?;
        blocks += 1;
    }
    if blocks == 0 {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}

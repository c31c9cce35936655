//! Where volumes come from: disks, shares and drivers, each with what it cannot do without.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, entries, text};
use super::super::template_meta::template_meta;
use super::super::volume_claim;
use super::items;
use super::profiles::{no_backsteps, relative};
use crate::validate::name;

const PATHS: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
const LONGEST_DRIVER: usize = 63;
/// The longest `volume:portal` of an initiator that has a name.
const LONGEST_PORTAL: usize = 64;
const LONGEST_TENANT: usize = 64;

/// The names of initiators and targets: what they begin with, and what they look like.
static INITIATORS: LazyLock<Vec<(&str, Option<Regex>)>> = LazyLock::new(|| {
    let forms = [
        ("iqn", r"iqn\.\d{4}-\d{2}\.([[:alnum:]\-.]+)(:[^,;*&$|\s]+)$"),
        ("eui", r"^eui.[[:alnum:]]{16}$"),
        ("naa", r"^naa.[[:alnum:]]{32}$"),
    ];
    forms.map(|(prefix, form)| (prefix, Regex::new(form).ok())).to_vec()
});

/// These texts are there.
pub(super) fn required(source: &Value, fields: &[&str], place: &Place<'_>, report: &mut Report) {
    for field in fields {
        if source.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
            report.required(place.field(field), "");
        }
    }
}

pub(in super::super) fn host_path(source: &Value, place: &Place<'_>, report: &mut Report) {
    let path = text(source, "/path");
    if path.is_empty() {
        report.required(place.field("path"), "");
        return;
    }
    no_backsteps(path, &place.field("path"), report);
    report.known(&place.field("type"), at(source, "/type"), PATHS);
}

pub(super) fn git_repo(source: &Value, place: &Place<'_>, report: &mut Report) {
    required(source, &["repository"], place, report);
    relative(text(source, "/directory"), &place.field("directory"), report);
}

/// A disk of a cloud, by the field that names it.
pub(super) fn disk(source: &Value, field: &str, place: &Place<'_>, report: &mut Report) {
    required(source, &[field], place, report);
    let partition = at(source, "/partition").as_i64().unwrap_or_default();
    if !(0..=255).contains(&partition) {
        let why = "must be between 1 and 255, inclusive";
        report.invalid(place.field("partition"), partition, why);
    }
}

pub(in super::super) fn nfs(source: &Value, place: &Place<'_>, report: &mut Report) {
    required(source, &["server", "path"], place, report);
    let path = text(source, "/path");
    if !path.starts_with('/') {
        report.invalid(place.field("path"), path, "must be an absolute path");
    }
}

pub(super) fn iscsi(source: &Value, place: &Place<'_>, report: &mut Report) {
    required(source, &["targetPortal", "iqn"], place, report);
    let target = text(source, "/iqn");
    if !target.is_empty() {
        initiator(target, &place.field("iqn"), report);
    }
    let lun = at(source, "/lun").as_i64().unwrap_or_default();
    if !(0..=255).contains(&lun) {
        report.invalid(place.field("lun"), lun, "must be between 0 and 255, inclusive");
    }
    let chap = ["chapAuthDiscovery", "chapAuthSession"];
    let asks = chap.iter().any(|field| source.get(field) == Some(&Value::Bool(true)));
    if asks && source.get("secretRef").is_none() {
        report.required(place.field("secretRef"), "");
    }
    if let Some(given) = at(source, "/initiatorName").as_str() {
        initiator(given, &place.field("initiatorname"), report);
    }
}

fn initiator(given: &str, place: &Place<'_>, report: &mut Report) {
    match INITIATORS.iter().find(|(prefix, _)| given.starts_with(prefix)) {
        None => {
            report.invalid(place, given, "must be valid format starting with iqn, eui, or naa");
        }
        Some((_, form)) if form.as_ref().is_some_and(|form| !form.is_match(given)) => {
            report.invalid(place, given, "must be valid format");
        }
        Some(_) => {}
    }
}

/// Volume and portal together name a session.
pub(super) fn long_portal(volume: &str, source: &Value, place: &Place<'_>, report: &mut Report) {
    let length = volume.len() + 1 + text(source, "/targetPortal").len();
    if source.get("initiatorName").is_some() && length > LONGEST_PORTAL {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                   if iscsi.initiatorName is specified.";
        report.invalid(place.field("name"), volume, why);
    }
}

pub(in super::super) fn flocker(source: &Value, place: &Place<'_>, report: &mut Report) {
    let (name, uuid) = (text(source, "/datasetName"), text(source, "/datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => report.required(place, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            report.invalid(place, "resource", why);
        }
        _ => {}
    }
    if name.contains('/') {
        report.invalid(place.field("datasetName"), name, "must not contain '/'");
    }
}

pub(super) fn rbd(source: &Value, place: &Place<'_>, report: &mut Report) {
    ceph(source, place, report);
    required(source, &["image"], place, report);
}

pub(super) fn ceph(source: &Value, place: &Place<'_>, report: &mut Report) {
    if items(source, "monitors").is_empty() {
        report.required(place.field("monitors"), "");
    }
}

/// A secret that is named has a name.
fn secret(source: &Value, place: &Place<'_>, report: &mut Report) {
    if source.get("secretRef").is_some() && text(source, "/secretRef/name").is_empty() {
        report.required(place.field("secretRef.name"), "");
    }
}

pub(super) fn cinder(source: &Value, place: &Place<'_>, report: &mut Report) {
    required(source, &["volumeID"], place, report);
    secret(source, place, report);
}

pub(in super::super) fn quobyte(source: &Value, place: &Place<'_>, report: &mut Report) {
    let registry = text(source, "/registry");
    if registry.is_empty() {
        report.required(place.field("registry"), PAIRS);
    } else if text(source, "/tenant").len() > LONGEST_TENANT {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        report.required(place.field("tenant"), why);
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            report.invalid(place.field("registry"), registry, PAIRS);
        }
    }
    required(source, &["volume"], place, report);
}

/// `host:port` or `[host]:port`; either may be empty.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = |part: &str| !part.contains(['[', ']']);
    match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').is_some_and(bare) && bare(port),
        None => !host.contains(':') && bare(host) && bare(port),
    }
}

pub(in super::super) fn fibre_channel(source: &Value, place: &Place<'_>, report: &mut Report) {
    let (targets, ids) = (items(source, "targetWWNs"), items(source, "wwids"));
    if targets.is_empty() && ids.is_empty() {
        let why = "must specify either targetWWNs or wwids, but not both";
        report.required(place.field("targetWWNs"), why);
    }
    if targets.is_empty() {
        return;
    }
    if !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        report.invalid(place.field("targetWWNs"), targets.to_vec(), why);
    }
    match at(source, "/lun").as_i64() {
        None => report.required(place.field("lun"), "lun is required if targetWWNs is specified"),
        Some(lun) if !(0..=255).contains(&lun) => {
            report.invalid(place.field("lun"), lun, "must be between 0 and 255, inclusive");
        }
        Some(_) => {}
    }
}

pub(in super::super) fn flex(source: &Value, place: &Place<'_>, report: &mut Report) {
    required(source, &["driver"], place, report);
    for (key, _) in entries(source, "/options") {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            report.invalid(place.field("options").key(key), key.as_str(), why);
        }
    }
}

pub(in super::super) fn azure(source: &Value, place: &Place<'_>, report: &mut Report) {
    required(source, &["diskName", "diskURI"], place, report);
    let modes = ["None", "ReadOnly", "ReadWrite"];
    report.known(&place.field("cachingMode"), at(source, "/cachingMode"), &modes);
    let kind = at(source, "/kind");
    report.known(&place.field("kind"), kind, &["Dedicated", "Managed", "Shared"]);
    let uri = text(source, "/diskURI");
    let (prefix, form) = match kind.as_str() {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };
    if !uri.starts_with(prefix) {
        report.unsupported(&place.field("diskURI"), &uri.into(), &[form]);
    }
}

pub(super) fn storage_os(source: &Value, place: &Place<'_>, report: &mut Report) {
    report.dns_label(&place.field("volumeName"), text(source, "/volumeName"));
    let namespace = text(source, "/volumeNamespace");
    if !namespace.is_empty() {
        report.dns_label(&place.field("volumeNamespace"), namespace);
    }
    secret(source, place, report);
}

pub(super) fn csi(source: &Value, place: &Place<'_>, report: &mut Report) {
    let driver = text(source, "/driver");
    if driver.is_empty() {
        report.required(place.field("driver"), "");
    } else {
        if driver.len() > LONGEST_DRIVER {
            report.too_long(place.field("driver"), LONGEST_DRIVER);
        }
        for problem in name::dns_subdomain(&driver.to_lowercase()) {
            report.invalid(place.field("driver"), driver, problem);
        }
    }
    if source.get("nodePublishSecretRef").is_some() {
        match text(source, "/nodePublishSecretRef/name") {
            "" => report.required(place.field("nodePublishSecretRef.name"), ""),
            // The path is said to be that of the volume.
            name => report.problems(&place.field("name"), name, name::dns_subdomain),
        }
    }
}

pub(super) fn ephemeral(source: &Value, place: &Place<'_>, report: &mut Report) {
    let place = place.field("volumeClaimTemplate");
    let Some(template) = source.get("volumeClaimTemplate").filter(|found| found.is_object()) else {
        report.required(place, "");
        return;
    };
    template_meta(at(template, "/metadata"), &place.field("metadata"), report);
    volume_claim::spec(at(template, "/spec"), &place.field("spec").to_string(), report);
}

pub(super) fn image(source: &Value, place: &Place<'_>, report: &mut Report) {
    super::container::pull_policy(text(source, "/pullPolicy"), &place.field("pullPolicy"), report);
}

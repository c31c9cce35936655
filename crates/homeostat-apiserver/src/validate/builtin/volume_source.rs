//! Where the data of a PersistentVolume is: one row per sort of storage, with the fields it cannot do
//! without. What needs more than that has a function.

use serde_json::{Value, json};

use super::devices::driver;
use super::place::Place;
use super::pod::disks;
use super::report::{Report, at, text};
use crate::go::internal;
use crate::validate::name;

const TOO_MANY: &str = "may not specify more than 1 volume type";

/// One sort of storage.
struct Source {
    field: &'static str,
    /// What errors call it, where that is not the field: as one too many, and inside.
    called: Option<(&'static str, &'static str)>,
    /// Texts and lists that must not be empty.
    required: &'static [&'static str],
    more: Option<fn(&Value, &str, &mut Report)>,
    /// The same as of a volume of a Pod.
    of_pods: Option<fn(&Value, &Place<'_>, &mut Report)>,
}

const fn row(field: &'static str, required: &'static [&'static str]) -> Source {
    Source { field, called: None, required, more: None, of_pods: None }
}

const fn judged(
    field: &'static str,
    required: &'static [&'static str],
    more: fn(&Value, &str, &mut Report),
) -> Source {
    Source { field, called: None, required, more: Some(more), of_pods: None }
}

const fn like_pods(field: &'static str, judge: fn(&Value, &Place<'_>, &mut Report)) -> Source {
    Source { field, called: None, required: &[], more: None, of_pods: Some(judge) }
}

/// In the order in which a second one is found.
const SOURCES: &[Source] = &[
    like_pods("hostPath", disks::host_path),
    Source {
        called: Some(("gcePersistentDisk", "persistentDisk")),
        ..judged("gcePersistentDisk", &["pdName"], partition)
    },
    judged("awsElasticBlockStore", &["volumeID"], partition),
    judged("glusterfs", &["endpoints", "path"], gluster),
    like_pods("flocker", disks::flocker),
    like_pods("nfs", disks::nfs),
    row("rbd", &["monitors", "image"]),
    like_pods("quobyte", disks::quobyte),
    Source { called: Some(("cephFS", "cephfs")), ..row("cephfs", &["monitors"]) },
    judged("iscsi", &["targetPortal", "iqn"], iscsi),
    judged("cinder", &["volumeID"], secret),
    like_pods("fc", disks::fibre_channel),
    like_pods("flexVolume", disks::flex),
    judged("azureFile", &["secretName", "shareName"], azure_file),
    row("vsphereVolume", &["volumePath"]),
    row("photonPersistentDisk", &["pdID"]),
    row("portworxVolume", &["volumeID"]),
    like_pods("azureDisk", disks::azure),
    row("scaleIO", &["gateway", "system", "volumeName"]),
    judged("local", &["path"], no_way_back),
    judged("storageos", &["volumeName"], storage_os),
    judged("csi", &["volumeHandle"], csi),
];

/// The sources that a volume names, with the fields they are in.
pub(super) fn given(spec: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    SOURCES.iter().filter_map(|source| Some((source.field, spec.get(source.field)?)))
}

/// All of them, as kube-apiserver shows them.
pub(super) fn shown(spec: &Value) -> Value {
    let mut shown = internal::form("io.k8s.api.core.v1.PersistentVolumeSpec", spec);
    if let Some(fields) = shown.as_object_mut() {
        let is_source = |name: &str| SOURCES.iter().any(|of| of.field.eq_ignore_ascii_case(name));
        fields.retain(|name, _| is_source(name));
    }
    shown
}

/// The one that counts.
pub(super) fn first(spec: &Value) -> Option<&'static str> {
    given(spec).next().map(|(field, _)| field)
}

/// Exactly one source, and it is complete.
pub(super) fn check(spec: &Value, path: &str, report: &mut Report) {
    let mut known = false;
    for source in SOURCES {
        let Some(given) = spec.get(source.field) else { continue };
        let (one_too_many, inside) = source.called.unwrap_or((source.field, source.field));
        // Any number of drivers for flexible volumes may come on top.
        if known && source.field != "flexVolume" {
            report.forbidden(format!("{path}.{one_too_many}"), TOO_MANY);
            continue;
        }
        known = true;
        let path = format!("{path}.{inside}");
        for field in source.required {
            let value = at(given, &format!("/{field}"));
            if value.as_str().is_none_or(str::is_empty)
                && value.as_array().is_none_or(Vec::is_empty)
            {
                report.required(format!("{path}.{field}"), "");
            }
        }
        if let Some(more) = source.more {
            more(given, &path, report);
        }
        if let Some(judge) = source.of_pods {
            judge(given, &Place::Root(&path), report);
        }
    }
    if !known {
        report.required(path, "must specify a volume type");
    }
}

fn no_way_back(given: &Value, path: &str, report: &mut Report) {
    let given = text(given, "/path");
    if given.split('/').any(|part| part == "..") {
        report.invalid(format!("{path}.path"), given, "must not contain '..'");
    }
}

fn partition(given: &Value, path: &str, report: &mut Report) {
    within_a_byte(given, "partition", "must be between 1 and 255, inclusive", path, report);
}

const LUN: &str = "must be between 0 and 255, inclusive";

fn within_a_byte(given: &Value, field: &str, words: &str, path: &str, report: &mut Report) {
    let number = at(given, &format!("/{field}")).as_i64().unwrap_or_default();
    if !(0..=255).contains(&number) {
        report.invalid(format!("{path}.{field}"), number, words);
    }
}

fn gluster(given: &Value, path: &str, report: &mut Report) {
    let Some(space) = at(given, "/endpointsNamespace").as_str() else { return };
    let path = format!("{path}.endpointsNamespace");
    if space.is_empty() {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        report.invalid(path, space, detail);
    } else {
        report.dns_label(&path, space);
    }
}

fn iscsi(given: &Value, path: &str, report: &mut Report) {
    let iqn = text(given, "/iqn");
    if !iqn.is_empty() && !is_initiator(iqn) {
        report.invalid(format!("{path}.iqn"), iqn, "must be valid format");
    }
    within_a_byte(given, "lun", LUN, path, report);
    let asked = ["chapAuthDiscovery", "chapAuthSession"]
        .iter()
        .any(|field| given.get(*field) == Some(&Value::Bool(true)));
    match given.get("secretRef") {
        None if asked => report.required(format!("{path}.secretRef"), ""),
        Some(secret) if text(secret, "/name").is_empty() => {
            report.required(format!("{path}.secretRef.name"), "");
        }
        _ => {}
    }
    if let Some(initiator) = at(given, "/initiatorName").as_str()
        && !is_initiator(initiator)
    {
        report.invalid(format!("{path}.initiatorname"), initiator, "must be valid format");
    }
}

/// `iqn.2001-04.com.example:disk`, or `eui.` and `naa.` with so many letters and digits.
fn is_initiator(given: &str) -> bool {
    let Some((sort, rest)) = given.split_at_checked(3) else { return false };
    // Any letter will do in place of the dot.
    let plain = |count: usize| {
        let mut letters = rest.chars().skip(1);
        rest.chars().count() == count + 1 && letters.all(|letter| letter.is_ascii_alphanumeric())
    };
    match sort {
        "eui" => plain(16),
        "naa" => plain(32),
        "iqn" => is_qualified(rest),
        _ => false,
    }
}

fn is_qualified(rest: &str) -> bool {
    let Some((date, rest)) = rest.split_at_checked(9) else { return false };
    let dated = date.char_indices().all(|(at, letter)| match at {
        0 | 8 => letter == '.',
        5 => letter == '-',
        _ => letter.is_ascii_digit(),
    });
    let Some((host, disk)) = rest.split_once(':') else { return false };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let barred = |letter: char| {
        matches!(letter, ',' | ';' | '*' | '&' | '$' | '|') || letter.is_ascii_whitespace()
    };
    dated
        && !host.is_empty()
        && host.chars().all(plain)
        && !disk.is_empty()
        && !disk.contains(barred)
}

/// A secret, if there is one, is named with its namespace.
fn secret(given: &Value, path: &str, report: &mut Report) {
    let Some(secret) = given.get("secretRef") else { return };
    for field in ["name", "namespace"] {
        if text(secret, &format!("/{field}")).is_empty() {
            report.required(format!("{path}.secretRef.{field}"), "");
        }
    }
}

fn azure_file(given: &Value, path: &str, report: &mut Report) {
    if given.get("secretNamespace") == Some(&json!("")) {
        report.required(format!("{path}.secretNamespace"), "");
    }
}

fn storage_os(given: &Value, path: &str, report: &mut Report) {
    for field in ["volumeName", "volumeNamespace"] {
        let value = text(given, &format!("/{field}"));
        if !value.is_empty() {
            report.dns_label(&format!("{path}.{field}"), value);
        }
    }
    secret(given, path, report);
}

fn csi(given: &Value, path: &str, report: &mut Report) {
    driver(text(given, "/driver"), &format!("{path}.driver"), report);
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let Some(secret) = given.get(field) else { continue };
        let path = format!("{path}.{field}");
        report.name(&format!("{path}.name"), text(secret, "/name"), name::dns_subdomain);
        report.dns_label(&format!("{path}.namespace"), text(secret, "/namespace"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &Value) -> Vec<String> {
        let mut report = Report::default();
        check(spec, "spec", &mut report);
        report.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_volume_has_one_source_and_that_is_complete() {
        assert_eq!(refused(&json!({"hostPath": {"path": "/p"}})), [""; 0]);
        assert_eq!(refused(&json!({})), ["spec: Required value: must specify a volume type"]);
        assert_eq!(
            refused(&json!({"nfs": {"server": "s", "path": "/p"}, "cephfs": {}})),
            ["spec.cephFS: Forbidden: may not specify more than 1 volume type"]
        );
        assert_eq!(
            refused(&json!({"rbd": {"monitors": []}})),
            ["spec.rbd.monitors: Required value", "spec.rbd.image: Required value"]
        );
        assert_eq!(
            refused(&json!({"hostPath": {"path": "/p/../q"}})),
            ["spec.hostPath.path: Invalid value: \"/p/../q\": must not contain '..'"]
        );
    }

    #[test]
    fn initiators_have_the_forms_their_protocol_knows() {
        let zeros = "0".repeat(16);
        assert!(is_initiator("iqn.2001-04.com.example:disk"));
        assert!(is_initiator(&format!("eui.{zeros}")));
        assert!(is_initiator(&format!("naa.{zeros}{zeros}")));
        for bad in ["", "iqn", "iqn.2001-04.com.example", "iqn.2001-4.com.example:d", "eui.0"] {
            assert!(!is_initiator(bad), "{bad}");
        }
    }
}

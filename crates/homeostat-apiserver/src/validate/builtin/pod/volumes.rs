//! The volumes of a Pod: their names, and one source for each.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::{Around, disks, items, projected};
use crate::decode::Quantity;
use crate::validate::name;

const ONLY_ONE: &str = "may not specify more than 1 volume type";

/// What containers need to know of a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Volume<'a> {
    pub(super) name: &'a str,
    /// Whether it can be a device, too.
    pub(super) is_claim: bool,
}

/// One sort of source.
struct Source {
    field: &'static str,
    /// What it is called when it is one too many, and in errors about what is in it, where that is
    /// not the name of the field.
    extra: Option<&'static str>,
    inside: Option<&'static str>,
    check: fn(&Value, &Place<'_>, &mut Report),
}

const fn source(field: &'static str, check: fn(&Value, &Place<'_>, &mut Report)) -> Source {
    Source { field, extra: None, inside: None, check }
}

/// All sources, in the order in which they are looked at.
const SOURCES: &[Source] = &[
    source("emptyDir", empty_dir),
    source("hostPath", disks::host_path),
    source("gitRepo", disks::git_repo),
    Source {
        inside: Some("persistentDisk"),
        ..source("gcePersistentDisk", |disk, place, report| {
            disks::disk(disk, "pdName", place, report);
        })
    },
    source("awsElasticBlockStore", |disk, place, report| {
        disks::disk(disk, "volumeID", place, report);
    }),
    source("secret", |secret, place, report| projected::keys(secret, "secretName", place, report)),
    source("nfs", disks::nfs),
    source("iscsi", disks::iscsi),
    source("glusterfs", |disk, place, report| {
        disks::required(disk, &["endpoints", "path"], place, report);
    }),
    source("flocker", disks::flocker),
    source("persistentVolumeClaim", |claim, place, report| {
        disks::required(claim, &["claimName"], place, report);
    }),
    source("rbd", disks::rbd),
    source("cinder", disks::cinder),
    Source { extra: Some("cephFS"), ..source("cephfs", disks::ceph) },
    source("quobyte", disks::quobyte),
    Source { extra: Some("downwarAPI"), ..source("downwardAPI", projected::of_pod) },
    source("fc", disks::fibre_channel),
    source("flexVolume", disks::flex),
    source("configMap", |map, place, report| projected::keys(map, "name", place, report)),
    source("azureFile", |file, place, report| {
        disks::required(file, &["secretName", "shareName"], place, report);
    }),
    source("vsphereVolume", |disk, place, report| {
        disks::required(disk, &["volumePath"], place, report);
    }),
    source("photonPersistentDisk", |disk, place, report| {
        disks::required(disk, &["pdID"], place, report);
    }),
    source("portworxVolume", |disk, place, report| {
        disks::required(disk, &["volumeID"], place, report);
    }),
    source("azureDisk", disks::azure),
    source("storageos", disks::storage_os),
    source("projected", projected::projected),
    source("scaleIO", |disk, place, report| {
        disks::required(disk, &["gateway", "system", "volumeName"], place, report);
    }),
    source("csi", disks::csi),
    source("ephemeral", disks::ephemeral),
    source("image", disks::image),
];

/// Checks the volumes and gives those that can be mounted.
pub(super) fn volumes<'a>(
    spec: &'a Value,
    place: &Place<'_>,
    around: Around<'a>,
    report: &mut Report,
) -> Vec<Volume<'a>> {
    let mut known: Vec<Volume<'a>> = Vec::new();
    for (index, name) in around.claims.iter().enumerate() {
        let place = place.item(index);
        let before = report.errors.len();
        if name.is_empty() {
            report.required(place.field("persistentVolumeClaim.claimName"), "");
        }
        report.dns_label(&place.field("name"), name);
        if report.errors.len() == before {
            known.push(Volume { name, is_claim: true });
        }
    }
    let hidden = |volume: &&'a Value| !around.claims.contains(&text(volume, "/name"));
    let own = items(spec, "volumes");
    // Those that are added stand in front, and in place of their namesakes.
    for (index, volume) in own.iter().filter(hidden).enumerate() {
        let place = place.item(index + around.claims.len());
        let name = text(volume, "/name");
        let before = report.errors.len();
        self::source_of(volume, &place, around, report);
        report.dns_label(&place.field("name"), name);
        if known.iter().any(|volume| volume.name == name) {
            report.duplicate(place.field("name"), name);
        }
        // A volume with a mistake is not there for what follows.
        if report.errors.len() == before {
            let is_claim = ["persistentVolumeClaim", "ephemeral"]
                .iter()
                .any(|source| volume.get(source).is_some());
            known.push(Volume { name, is_claim });
        }
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        if !claim.is_empty() && is_made_for(claim, own, around) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            report.invalid(place.field("persistentVolumeClaim.claimName"), claim, why);
        }
    }
    known
}

/// Whether the claim is one that comes and goes with the Pod.
fn is_made_for(claim: &str, volumes: &[Value], around: Around<'_>) -> bool {
    let rest = claim.strip_prefix(around.name).and_then(|rest| rest.strip_prefix('-'));
    let Some(rest) = rest.filter(|_| !around.name.is_empty()) else { return false };
    volumes.iter().any(|volume| volume.get("ephemeral").is_some() && text(volume, "/name") == rest)
}

fn source_of(volume: &Value, place: &Place<'_>, around: Around<'_>, report: &mut Report) {
    let name = text(volume, "/name");
    let mut count = 0;
    for source in SOURCES {
        let Some(found) = volume.get(source.field) else { continue };
        count += 1;
        // A template may be completed later.
        if source.field == "image" && count == 1 && around.is_pod {
            disks::required(found, &["reference"], &place.field("image"), report);
        }
        if count > 1 {
            report.forbidden(place.field(source.extra.unwrap_or(source.field)), ONLY_ONE);
        } else {
            (source.check)(found, &place.field(source.inside.unwrap_or(source.field)), report);
        }
        match source.field {
            "iscsi" => disks::long_portal(name, found, place, report),
            "ephemeral" if count == 1 => claim_name(name, place, around, report),
            _ => {}
        }
    }
    if count == 0 {
        report.required(place, "must specify a volume type");
    }
}

/// The claim of an ephemeral volume is named after the Pod and the volume.
fn claim_name(volume: &str, place: &Place<'_>, around: Around<'_>, report: &mut Report) {
    if around.name.is_empty() || volume.is_empty() {
        return;
    }
    let claim = format!("{}-{volume}", around.name);
    for problem in name::dns_subdomain(&claim) {
        report.invalid(place.field("name"), volume, format!("PVC name {claim:?}: {problem}"));
    }
}

fn empty_dir(volume: &Value, place: &Place<'_>, report: &mut Report) {
    let limit = text(volume, "/sizeLimit").parse::<Quantity>();
    if limit.is_ok_and(|limit| limit.is_negative()) {
        let why = "SizeLimit field must be a valid resource quantity";
        report.forbidden(place.field("sizeLimit"), why);
    }
}

/// Nobody gives tokens to a Pod that has no account.
pub(super) fn without_account(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let place = place.field("volumes");
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let place = place.item(index);
        let place = place.field("projected.sources");
        for (index, source) in items(at(volume, "/projected"), "sources").iter().enumerate() {
            if source.get("serviceAccountToken").is_some() {
                let why = "must not be specified when serviceAccountName is not set";
                report.forbidden(place.item(index).field("serviceAccountToken"), why);
            }
        }
    }
}

//! The security contexts of Pods and containers.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::container::is_false;
use super::{is_true, items, profiles, windows};
use crate::go::internal::form;

const CONTEXT: &str = "io.k8s.api.core.v1.SecurityContext";

/// The longest name of a kernel parameter.
const LONGEST: usize = 253;
const FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const IDENTITY: &str = "must be between 0 and 2147483647, inclusive";

static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FORM).ok());

/// A number of a user or group.
pub(super) fn identity(id: &Value, place: Place<'_>, report: &mut Report) {
    if let Some(id) = id.as_i64().filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
        report.invalid(place, id, IDENTITY);
    }
}

/// The context of a whole Pod.
pub(super) fn pod(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(context) = spec.get("securityContext") else {
        shared_processes(spec, &place.field("securityContext"), report);
        return;
    };
    let place = place.field("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        if let Some(id) = context.get(field) {
            identity(id, place.field(field), report);
        }
    }
    let groups = place.field("supplementalGroups");
    for (index, id) in items(context, "supplementalGroups").iter().enumerate() {
        identity(id, groups.item(index), report);
    }
    shared_processes(spec, &place, report);
    kernel_parameters(spec, context, &place.field("sysctls"), report);
    let policies = ["Always", "OnRootMismatch"];
    let policy = at(context, "/fsGroupChangePolicy");
    report.known(&place.field("fsGroupChangePolicy"), policy, &policies);
    profiles::seccomp(context, &place, report);
    windows::options(context, &place.field("windowsOptions"), report);
    profiles::app_armor(context, &place, report);
    let policy = at(context, "/supplementalGroupsPolicy");
    report.known(&place.field("supplementalGroupsPolicy"), policy, &["Merge", "Strict"]);
    let policy = at(context, "/seLinuxChangePolicy");
    report.known(&place.field("seLinuxChangePolicy"), policy, &["Recursive"]);
}

fn shared_processes(spec: &Value, place: &Place<'_>, report: &mut Report) {
    if is_true(spec, "/shareProcessNamespace") && is_true(spec, "/hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        report.invalid(place.field("shareProcessNamespace"), true, why);
    }
}

/// Kernel parameters have well-formed names, each given once, and are not those of the node.
fn kernel_parameters(spec: &Value, context: &Value, place: &Place<'_>, report: &mut Report) {
    let parameters = items(context, "sysctls");
    for (index, parameter) in parameters.iter().enumerate() {
        let place = place.item(index);
        let place = place.field("name");
        let name = text(parameter, "/name");
        let fits = || NAME.as_ref().is_none_or(|form| form.is_match(name));
        if name.is_empty() {
            report.required(place, "");
        } else if name.len() > LONGEST || !fits() {
            let detail = format!("must have at most {LONGEST} characters and match regex {FORM}");
            report.invalid(place, name, detail);
        } else if parameters[..index].iter().any(|other| text(other, "/name") == name) {
            report.duplicate(place, name);
        }
        let plain = name.replace('/', ".");
        let is_net = plain.starts_with("net.");
        let is_ipc = plain.starts_with("fs.mqueue.")
            || plain.starts_with("kernel.shm")
            || plain.starts_with("kernel.msg")
            || plain == "kernel.sem";
        if is_net && is_true(spec, "/hostNetwork") {
            report.invalid(place, name, "may not be specified when 'hostNetwork' is true");
        } else if is_ipc && is_true(spec, "/hostIPC") {
            report.invalid(place, name, "may not be specified when 'hostIPC' is true");
        }
    }
}

/// The context of one container.
pub(super) fn container(
    container: &Value,
    shares_users: bool,
    place: &Place<'_>,
    report: &mut Report,
) {
    let Some(context) = container.get("securityContext") else { return };
    for field in ["runAsUser", "runAsGroup"] {
        if let Some(id) = context.get(field) {
            identity(id, place.field(field), report);
        }
    }
    let mount = at(context, "/procMount");
    report.known(&place.field("procMount"), mount, &["Default", "Unmasked"]);
    if mount == "Unmasked" && shares_users {
        let why = "`hostUsers` must be false to use `Unmasked`";
        report.invalid(place.field("procMount"), mount.clone(), why);
    }
    profiles::seccomp(context, place, report);
    if is_false(context, "allowPrivilegeEscalation") {
        if is_true(context, "/privileged") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            report.invalid(place, form(CONTEXT, context), why);
        }
        let added = items(at(context, "/capabilities"), "add");
        for _ in added.iter().filter(|added| **added == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                       CAP_SYS_ADMIN";
            report.invalid(place, form(CONTEXT, context), why);
        }
    }
    windows::options(context, &place.field("windowsOptions"), report);
    profiles::app_armor(context, place, report);
}

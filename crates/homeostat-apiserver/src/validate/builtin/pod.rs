//! Pods and what they are made of, alone or as the template of a workload.

use serde_json::Value;

use super::report::{Report, at, list, text};
use super::{ephemeral, names, profiles, projected, resources, security};
use crate::field::{FieldError, Reason};
use crate::validate::name;

/// What an update of a Pod may touch, in the API's words.
const UPDATABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn pod(value: &Value, old: Option<&Value>, report: &mut Report) {
    pod_spec(at(value, "/spec"), "spec", &[], report);
    names::addresses(value, old, report);
    profiles::annotations(value, "metadata.annotations", report);
    match old {
        Some(old) => profiles::kept_annotations(value, old, report),
        None => profiles::agreement(value, "spec", report),
    }
    if old.is_none() && !list(value, "/spec/ephemeralContainers").is_empty() {
        report.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
}

pub(super) fn pod_template(value: &Value, _: Option<&Value>, report: &mut Report) {
    template(at(value, "/template"), "template", &[], report);
}

/// A template: labels and a spec. `claims` are volumes that somebody else will add.
pub(super) fn template(value: &Value, path: &str, claims: &[&str], report: &mut Report) {
    report.labels(at(value, "/metadata/labels"), &format!("{path}.labels"));
    pod_spec(at(value, "/spec"), &format!("{path}.spec"), claims, report);
    profiles::annotations(value, &format!("{path}.annotations"), report);
    profiles::agreement(value, &format!("{path}.spec"), report);
}

/// What an update through the Pod itself may change.
pub(super) fn update(value: &Value, old: &Value, report: &mut Report) {
    let (spec, old) = (at(value, "/spec"), at(old, "/spec"));
    for field in ["containers", "initContainers"] {
        if list(spec, &format!("/{field}")).len() != list(old, &format!("/{field}")).len() {
            report
                .forbidden(format!("spec.{field}"), "pod updates may not add or remove containers");
            return;
        }
    }
    for (index, toleration) in list(old, "/tolerations").iter().enumerate() {
        if !list(spec, "/tolerations").contains(toleration) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            report.forbidden(format!("spec.tolerations[{index}]"), detail);
        }
    }
    for gate in list(spec, "/schedulingGates") {
        if !list(old, "/schedulingGates").contains(gate) {
            report.forbidden(
                "spec.schedulingGates",
                "only deletion is allowed, but found new scheduling gate",
            );
        }
    }
    let grace = |spec: &Value| at(spec, "/terminationGracePeriodSeconds").as_i64();
    let (mut before, mut after) = (masked(old), masked(spec));
    if grace(old).is_some_and(|old| old < 0) && grace(spec) == Some(1) {
        for spec in [&mut before, &mut after] {
            spec.as_object_mut().map(|spec| spec.shift_remove("terminationGracePeriodSeconds"));
        }
    }
    if before != after {
        report.forbidden("spec", UPDATABLE);
    }
}

/// The spec without what may change.
fn masked(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for field in ["containers", "initContainers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.shift_remove("image");
            }
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        let fields = ["activeDeadlineSeconds", "tolerations", "schedulingGates"];
        for field in fields {
            spec.shift_remove(field);
        }
    }
    spec
}

fn pod_spec(spec: &Value, path: &str, claims: &[&str], report: &mut Report) {
    let volumes = volumes(spec, path, claims, report);
    let mut names: Vec<&str> = Vec::new();
    let containers = list(spec, "/containers");
    if containers.is_empty() {
        report.required(format!("{path}.containers"), "");
    }
    for field in ["initContainers", "containers"] {
        for (index, found) in list(spec, &format!("/{field}")).iter().enumerate() {
            let path = format!("{path}.{field}[{index}]");
            container(found, &path, &volumes, report);
            let name = text(found, "/name");
            if names.contains(&name) && !name.is_empty() {
                report.duplicate(format!("{path}.name"), name);
            }
            names.push(name);
        }
    }
    ephemeral::containers(spec, path, &names, &volumes, report);
    resources::resize_policies(spec, path, report);
    resources::pod(spec, path, report);
    let policy = text(spec, "/restartPolicy");
    report.one_of(&format!("{path}.restartPolicy"), policy, &["Always", "OnFailure", "Never"]);
    names::resolution(spec, path, report);
    names::aliases(spec, path, report);
    tolerations(spec, path, report);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    report.one_of(&format!("{path}.dnsPolicy"), text(spec, "/dnsPolicy"), &dns);
    if let Some(seconds) = at(spec, "/activeDeadlineSeconds").as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let path = format!("{path}.activeDeadlineSeconds");
        report.invalid(path, seconds, "must be between 1 and 2147483647, inclusive");
    }
    security::kernel_parameters(spec, path, report);
    profiles::fields(spec, path, report);
    for (field, form) in [
        ("serviceAccountName", name::dns_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", name::dns_subdomain),
        ("hostname", name::dns_label),
        ("subdomain", name::dns_label),
    ] {
        let value = text(spec, &format!("/{field}"));
        if !value.is_empty() {
            report.name(&format!("{path}.{field}"), value, form);
        }
    }
}

/// Checks the volumes and gives their names.
fn volumes<'a>(
    spec: &'a Value,
    path: &str,
    claims: &[&'a str],
    report: &mut Report,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = claims.to_vec();
    let own = names.len();
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}]");
        let name = text(volume, "/name");
        let before = report.errors.len();
        report.dns_label(&format!("{path}.name"), name);
        if names[own..].contains(&name) && !name.is_empty() {
            report.duplicate(format!("{path}.name"), name);
        }
        let sources: Vec<&String> = volume
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .filter(|key| *key != "name")
            .collect();
        for extra in sources.iter().skip(1) {
            report.forbidden(format!("{path}.{extra}"), "may not specify more than 1 volume type");
        }
        for (source, field) in [
            ("secret", "secretName"),
            ("configMap", "name"),
            ("persistentVolumeClaim", "claimName"),
            ("hostPath", "path"),
        ] {
            if let Some(found) = volume.get(source)
                && text(found, &format!("/{field}")).is_empty()
            {
                report.required(format!("{path}.{source}.{field}"), "");
            }
        }
        for source in ["secret", "configMap"] {
            projected::items(
                at(volume, &format!("/{source}")),
                &format!("{path}.{source}"),
                report,
            );
        }
        projected::sources(at(volume, "/projected"), &format!("{path}.projected"), report);
        // a volume with a mistake is not there for what follows
        if report.errors.len() == before {
            names.push(name);
        }
    }
    names
}

pub(super) fn container(container: &Value, path: &str, volumes: &[&str], report: &mut Report) {
    report.dns_label(&format!("{path}.name"), text(container, "/name"));
    let image = text(container, "/image");
    if image.is_empty() {
        report.required(format!("{path}.image"), "");
    } else if image.trim() != image {
        report.invalid(
            format!("{path}.image"),
            image,
            "must not have leading or trailing whitespace",
        );
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    report.one_of(
        &format!("{path}.imagePullPolicy"),
        text(container, "/imagePullPolicy"),
        &policies,
    );
    let message = text(container, "/terminationMessagePolicy");
    let sources = ["File", "FallbackToLogsOnError"];
    report.one_of(&format!("{path}.terminationMessagePolicy"), message, &sources);
    ports(container, path, report);
    environment(container, path, report);
    mounts(container, path, volumes, report);
    resources::container(at(container, "/resources"), &format!("{path}.resources"), report);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = container.get(probe) {
            check_probe(found, &format!("{path}.{probe}"), probe != "readinessProbe", report);
        }
    }
}

fn ports(container: &Value, path: &str, report: &mut Report) {
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let name = text(port, "/name");
        if !name.is_empty() {
            for problem in name::port_name(name) {
                report.invalid(format!("{path}.name"), name, problem);
            }
            if names.contains(&name) {
                report.duplicate(format!("{path}.name"), name);
            }
            names.push(name);
        }
        match at(port, "/containerPort").as_i64() {
            None | Some(0) => report.required(format!("{path}.containerPort"), ""),
            Some(number) => report.port(format!("{path}.containerPort"), number),
        }
        if let Some(number) = at(port, "/hostPort").as_i64().filter(|number| *number != 0) {
            report.port(format!("{path}.hostPort"), number);
        }
        report.one_of(
            &format!("{path}.protocol"),
            text(port, "/protocol"),
            &["SCTP", "TCP", "UDP"],
        );
    }
}

fn environment(container: &Value, path: &str, report: &mut Report) {
    for (index, variable) in list(container, "/env").iter().enumerate() {
        let path = format!("{path}.env[{index}]");
        let name = text(variable, "/name");
        if name.is_empty() {
            report.required(format!("{path}.name"), "");
        } else if name.contains('=') || name.chars().any(|c| !(' '..='~').contains(&c)) {
            let detail = "a valid environment variable name must consist only of printable ASCII \
                          characters other than '='";
            report.invalid(format!("{path}.name"), name, detail);
        }
        if variable.get("valueFrom").is_some() && !text(variable, "/value").is_empty() {
            report.invalid(
                format!("{path}.valueFrom"),
                "",
                "may not be specified when `value` is not empty",
            );
        }
    }
}

fn mounts(container: &Value, path: &str, volumes: &[&str], report: &mut Report) {
    let mut paths: Vec<&str> = Vec::new();
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let name = text(mount, "/name");
        if name.is_empty() {
            report.required(format!("{path}.name"), "");
        } else if !volumes.contains(&name) {
            report.errors.push(FieldError::new(
                format!("{path}.name"),
                Reason::NotFound,
                Value::from(name),
                "",
            ));
        }
        let mount_path = text(mount, "/mountPath");
        if mount_path.is_empty() {
            report.required(format!("{path}.mountPath"), "");
        } else if paths.contains(&mount_path) {
            report.invalid(format!("{path}.mountPath"), mount_path, "must be unique");
        }
        paths.push(mount_path);
    }
}

fn check_probe(probe: &Value, path: &str, success_is_one: bool, report: &mut Report) {
    let handlers = ["exec", "httpGet", "tcpSocket", "grpc"];
    match handlers.iter().filter(|handler| probe.get(**handler).is_some()).count() {
        0 => report.required(path, "must specify a handler type"),
        1 => {}
        _ => report.forbidden(path, "may not specify more than 1 handler type"),
    }
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        if let Some(number) = probe.get(field).and_then(Value::as_i64).filter(|number| *number < 0)
        {
            report.invalid(format!("{path}.{field}"), number, "must be greater than or equal to 0");
        }
    }
    let successes = at(probe, "/successThreshold").as_i64().unwrap_or(1);
    if success_is_one && successes != 1 {
        report.invalid(format!("{path}.successThreshold"), successes, "must be 1");
    }
}

/// The tolerations of a Pod, or of what gives some to Pods.
pub(super) fn tolerations(spec: &Value, path: &str, report: &mut Report) {
    for (index, toleration) in list(spec, "/tolerations").iter().enumerate() {
        let path = format!("{path}.tolerations[{index}]");
        let field = |name: &str| text(toleration, &format!("/{name}"));
        let (key, operator, value, effect) =
            (field("key"), field("operator"), field("value"), field("effect"));
        if !key.is_empty() {
            for problem in name::qualified(key) {
                report.invalid(format!("{path}.key"), key, problem);
            }
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            report.invalid(format!("{path}.operator"), operator, detail);
        }
        if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            report.invalid(format!("{path}.effect"), effect, detail);
        }
        match operator {
            "" | "Equal" => {
                let problems = name::label_value(value);
                if !problems.is_empty() {
                    report.invalid(format!("{path}.operator"), value, problems.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                report.invalid(format!("{path}.operator"), value, detail);
            }
            "Exists" => {}
            _ => {
                let path = format!("{path}.operator");
                report.unsupported(&path, &operator.into(), &["Equal", "Exists"]);
            }
        }
        if !effect.is_empty() {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            report.one_of(&format!("{path}.effect"), effect, &effects);
        }
    }
}

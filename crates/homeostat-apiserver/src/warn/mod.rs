//! What a client is told about an object that is stored all the same: deprecated fields and
//! labels, and what will not do what it seems to. It refuses nothing and changes nothing.

mod addresses;
mod definition;
mod finalizers;
mod pod;
mod secret;
mod service;
mod storage;
mod volumes;

pub(crate) use definition::is_known as is_known_format;

use homeostat_quota::Quantity;
use serde_json::Value;

use crate::kinds::Kind;
use crate::validate;

/// Labels of nodes that have other names by now.
const OLD_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// The warnings about an object that is made, or changed from `old`.
pub(crate) fn about(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if kind.custom.is_some() {
        finalizers::of_custom(object, old, &mut warnings);
        return warnings;
    }
    let generation = |object: &Value| object["metadata"].get("generation").cloned();
    let changed = old.is_none_or(|old| generation(old) != generation(object));
    match kind.resource().as_str() {
        "pods" => {
            warn_of_name(object, old, "the Pod's hostname", &mut warnings);
            if old.is_none() {
                pod::of_pod(object, &mut warnings);
            }
        }
        "podtemplates" if changed => {
            pod::of_template(&object["template"], "template", &mut warnings);
        }
        "replicationcontrollers" | "deployments.apps" | "replicasets.apps" => {
            warn_of_name(object, old, "Pod names and hostnames", &mut warnings);
            of_workload(object, changed, &mut warnings);
        }
        "daemonsets.apps" => of_workload(object, old.is_none(), &mut warnings),
        "statefulsets.apps" => {
            of_workload(object, changed, &mut warnings);
            storage::of_stateful_set(object, old.is_some(), &mut warnings);
        }
        "jobs.batch" => {
            warn_of_name(object, old, "Pod names and hostnames", &mut warnings);
            if changed {
                of_job(&object["spec"], "spec", &mut warnings);
            }
        }
        "cronjobs.batch" => {
            warn_of_name(object, old, "Pod names and hostnames", &mut warnings);
            if changed {
                let spec = &object["spec"]["jobTemplate"]["spec"];
                of_job(spec, "spec.jobTemplate.spec", &mut warnings);
            }
            if old.is_some() && text(object, "/spec/schedule").contains("TZ") {
                warnings.push(
                    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                     https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for \
                     more details"
                        .to_owned(),
                );
            }
        }
        "services" => service::of_service(object, &mut warnings),
        "customresourcedefinitions.apiextensions.k8s.io" => {
            definition::of_definition(object, old, &mut warnings);
        }
        "secrets" => secret::of_secret(object, &mut warnings),
        "endpoints" => addresses::of_endpoints(object, &mut warnings),
        "endpointslices.discovery.k8s.io" => {
            if old.is_none() && object["addressType"] == "FQDN" {
                warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
            }
            addresses::of_slice(object, &mut warnings);
        }
        "networkpolicies.networking.k8s.io" => addresses::of_policy(object, &mut warnings),
        "ingresses.networking.k8s.io" if old.is_none() => {
            service::of_ingress(object, &mut warnings);
        }
        "nodes" => of_node(object, &mut warnings),
        "serviceaccounts" => of_account(object, old, &mut warnings),
        "resourcequotas" if old.is_none() => storage::of_quota(object, &mut warnings),
        "persistentvolumes" => storage::of_volume(object, &mut warnings),
        "persistentvolumeclaims" => storage::of_claim(object, &mut warnings),
        "storageclasses.storage.k8s.io" => storage::of_class(object, &mut warnings),
        "csistoragecapacities.storage.k8s.io" => storage::of_capacity(object, &mut warnings),
        "resourceslices.resource.k8s.io" => of_slice_of_devices(object, &mut warnings),
        "csidrivers.storage.k8s.io" => storage::of_driver(object, old, &mut warnings),
        "runtimeclasses.node.k8s.io" => {
            for key in keys(&object["scheduling"]["nodeSelector"]) {
                if let Some(why) = old_label(key) {
                    warnings.push(format!("scheduling.nodeSelector: {why}"));
                }
            }
        }
        _ if kind.group == "admissionregistration.k8s.io" => of_static_name(object, &mut warnings),
        _ => {}
    }
    warnings
}

/// The warnings about what was asked for and is about to be brought into another form. The client
/// gets them even if the object is refused.
pub(crate) fn about_request(kind: &Kind, object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if kind.custom.is_none() && kind.resource() == "pods" {
        pod::of_old_profiles(object, &mut warnings);
    }
    warnings
}

/// The warnings about an object whose status was changed.
pub(crate) fn about_status(kind: &Kind, object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    match kind.resource().as_str() {
        _ if kind.custom.is_some() => {}
        "pods" => addresses::of_status_of_pod(object, &mut warnings),
        "services" | "ingresses.networking.k8s.io" => {
            addresses::of_balancer(object, &mut warnings);
        }
        _ => {}
    }
    warnings
}

fn of_static_name(object: &Value, warnings: &mut Vec<String>) {
    let suffix = ".static.k8s.io";
    if text(object, "/metadata/name").ends_with(suffix) {
        warnings.push(format!(
            "metadata.name: names ending with {suffix:?} are reserved for static manifest-based \
             configurations and cannot be managed via the API"
        ));
    }
}

fn of_slice_of_devices(slice: &Value, warnings: &mut Vec<String>) {
    let driver = text(slice, "/spec/driver");
    if driver.to_lowercase() != driver {
        warnings.push(format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
        ));
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn keys(map: &Value) -> impl Iterator<Item = &str> {
    map.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

fn has_annotation(object: &Value, key: &str) -> bool {
    object["metadata"]["annotations"].get(key).is_some()
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

/// Terms that select nodes; `values` says whether their values are looked at, too.
fn of_node_term(term: &Value, values: bool, path: &str, warnings: &mut Vec<String>) {
    for (index, expression) in list(term, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let key = text(expression, "/key");
        if let Some(why) = old_label(key) {
            warnings.push(format!("{path}.key: {key} is {why}"));
        }
        for (index, value) in list(expression, "/values").iter().enumerate().filter(|_| values) {
            let value = value.as_str().unwrap_or_default();
            for why in validate::label_value_problems(value) {
                warnings.push(format!("{path}.values[{index}]: {value} is invalid, {why}"));
            }
        }
    }
}

/// An amount of bytes that no memory has.
fn of_fraction(amounts: &Value, name: &str, path: &str, warnings: &mut Vec<String>) {
    let Some(shown) = amounts.get(name).and_then(Value::as_str) else { return };
    if shown.parse::<Quantity>().is_ok_and(|amount| amount.rounded_up() != amount) {
        let why = "is invalid, must be an integer";
        warnings.push(format!("{path}[{name}]: fractional byte value {shown:?} {why}"));
    }
}

fn warn_of_name(object: &Value, old: Option<&Value>, used: &str, warnings: &mut Vec<String>) {
    let problems = validate::dns_label(text(object, "/metadata/name"));
    if old.is_none() && !problems.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a \
             DNS label is recommended: [{}]",
            problems.join(" ")
        ));
    }
}

fn of_workload(object: &Value, changed: bool, warnings: &mut Vec<String>) {
    if changed {
        pod::of_template(&object["spec"]["template"], "spec.template", warnings);
    }
}

fn of_job(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let many = |field: &str, limit: i64| spec[field].as_i64().unwrap_or(0) > limit;
    let indexed = spec["completionMode"] == "Indexed";
    if indexed && many("completions", 100_000) && many("parallelism", 10_000) {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a \
             parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes \
             when a big number of indexes fail"
        ));
    }
    pod::of_template(&spec["template"], &format!("{path}.template"), warnings);
}

fn of_node(node: &Value, warnings: &mut Vec<String>) {
    if !text(node, "/spec/externalID").is_empty() {
        let why = "this field is deprecated, and is unused by Kubernetes";
        warnings.push(format!("spec.externalID: {why}"));
    }
    addresses::of_ranges(list(node, "/spec/podCIDRs"), "spec.podCIDRs", warnings);
}

fn of_account(account: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let key = "kubernetes.io/enforce-mountable-secrets";
    let had = old.is_some_and(|old| has_annotation(old, key));
    if has_annotation(account, key) && !had {
        let why = "prefer separate namespaces to isolate access to mounted secrets";
        warnings.push(format!("metadata.annotations[{key}]: deprecated in v1.32+; {why}"));
    }
}

//! The downward API: what a container may know about its own Pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector};

use super::Problem;
use super::environment::Place;

/// The text of a field of the Pod.
pub(super) fn field(
    pod: &Pod,
    selector: &ObjectFieldSelector,
    place: &Place,
) -> Result<String, Problem> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |part: Option<&String>| part.cloned().unwrap_or_default();
    let path = selector.field_path.as_str();
    if let Some(name) = subscript(path, "metadata.labels") {
        return Ok(text(meta.labels.as_ref().and_then(|all| all.get(name))));
    }
    if let Some(name) = subscript(path, "metadata.annotations") {
        return Ok(text(meta.annotations.as_ref().and_then(|all| all.get(name))));
    }
    Ok(match path {
        "metadata.name" => text(meta.name.as_ref()),
        "metadata.namespace" => text(meta.namespace.as_ref()),
        "metadata.uid" => text(meta.uid.as_ref()),
        "metadata.labels" => listed(meta.labels.as_ref()),
        "metadata.annotations" => listed(meta.annotations.as_ref()),
        "spec.nodeName" => text(spec.and_then(|spec| spec.node_name.as_ref())),
        "spec.serviceAccountName" => text(spec.and_then(|spec| spec.service_account_name.as_ref())),
        "status.podIP" | "status.podIPs" => place.pod_ip.clone(),
        "status.hostIP" | "status.hostIPs" => place.host_ip.clone(),
        other => return Err(Problem(format!("unsupported fieldPath: {other}"))),
    })
}

/// `name` of `map['name']`.
fn subscript<'a>(path: &'a str, map: &str) -> Option<&'a str> {
    path.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']")
}

fn listed(all: Option<&BTreeMap<String, String>>) -> String {
    let lines = all.into_iter().flatten().map(|(name, value)| format!("{name}={value:?}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text of a container's request or limit, in units of the divisor.
pub(super) fn resource(
    pod: &Pod,
    container: Option<&Container>,
    selector: &ResourceFieldSelector,
    place: &Place,
) -> Result<String, Problem> {
    let named = selector.container_name.as_deref().and_then(|name| {
        let all = pod.spec.as_ref()?;
        all.containers.iter().find(|container| container.name == name)
    });
    let resources = named.or(container).and_then(|container| container.resources.clone());
    let resources = resources.unwrap_or_default();
    let (which, name) = selector
        .resource
        .split_once('.')
        .ok_or_else(|| Problem(format!("unsupported resource: {}", selector.resource)))?;
    let found = match which {
        "limits" => resources.limits.as_ref().and_then(|all| all.get(name)),
        "requests" => resources.requests.as_ref().and_then(|all| all.get(name)),
        _ => return Err(Problem(format!("unsupported resource: {}", selector.resource))),
    };
    let amount = match (found, which, name) {
        (Some(quantity), _, _) => amount(&quantity.0)
            .ok_or_else(|| Problem(format!("{:?} is not a quantity", quantity.0)))?,
        // A container without a limit may use what the node has.
        (None, "limits", "cpu") => place.cpus,
        (None, "limits", "memory") => place.memory,
        _ => 0.0,
    };
    let divisor = selector.divisor.as_ref().and_then(|one| amount_of(&one.0)).unwrap_or(1.0);
    Ok(format!("{:.0}", (amount / divisor).ceil()))
}

fn amount_of(text: &str) -> Option<f64> {
    amount(text).filter(|amount| *amount > 0.0)
}

/// The value of a Kubernetes quantity: `250m`, `64Mi`, `1e3`.
fn amount(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 14] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("", 1.0),
    ];
    SUFFIXES.iter().find_map(|(suffix, unit)| {
        let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
        Some(number * unit)
    })
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(amount("250m"), Some(0.25));
        assert_eq!(amount("64Mi"), Some(67_108_864.0));
        assert_eq!(amount("1e3"), Some(1000.0));
        assert_eq!(amount("lots"), None);
    }
}

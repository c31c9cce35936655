//! What Pods have when nobody says, but templates of Pods do not.

use homeostat_quota::{Amounts, Overhead, pod_limits, pod_requests};
use serde_json::{Map, Value, json};

use super::derived;

const HUGE: &str = "hugepages-";

/// What holds for Pods but not for the templates of Pods.
pub(super) fn pod(value: &mut Value) {
    let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) else { return };
    derived::set(spec, "enableServiceLinks", json!(true));
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            requests_from_limits(container);
            if !host_network {
                continue;
            }
            for port in
                container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten()
            {
                let number = port["containerPort"].clone();
                if let Some(port) = port.as_object_mut()
                    && super::is_zero(port.get("hostPort"))
                {
                    port.insert("hostPort".to_owned(), number);
                }
            }
        }
    }
    whole(spec);
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = container.pointer("/resources/limits").and_then(Value::as_object).cloned()
    else {
        return;
    };
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else {
        return;
    };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    if let Some(requests) = requests.as_object_mut() {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

/// What a Pod asks for as a whole follows from its parts, once it is limited as a whole.
fn whole(spec: &mut Map<String, Value>) {
    let Some(resources) = spec.get("resources") else { return };
    let read = |field: &str| Amounts::read(resources.get(field));
    let (mut limits, mut requests) = (read("limits"), read("requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let list = |field: &str| spec.get(field).cloned().unwrap_or_default();
    let parts = json!({"spec": {
        "containers": list("containers"),
        "initContainers": list("initContainers"),
    }});
    let of_parts = pod_limits(&parts, Overhead::Ignored);
    let huge = |name: &str| name.starts_with(HUGE) && requests.get(name).is_none();
    add(&mut limits, &of_parts.filtered(|name, _| huge(name)));
    if !limits.is_empty() {
        let is_shared = |name: &str| matches!(name, "cpu" | "memory");
        let of_parts = pod_requests(&parts, Overhead::Ignored);
        add(&mut requests, &of_parts.filtered(|name, _| is_shared(name)));
        add(&mut requests, &limits.filtered(|name, _| is_shared(name) || name.starts_with(HUGE)));
    }
    let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) else { return };
    for (field, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            resources.insert(field.to_owned(), amounts.to_value());
        }
    }
}

/// Adds the amounts of what has none.
fn add(amounts: &mut Amounts, others: &Amounts) {
    for (name, amount) in others.iter() {
        if amounts.get(name).is_none() {
            amounts.set(name, amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_is_limited_as_a_whole_asks_for_what_its_parts_ask_for_or_for_all_it_may_have() {
        let asks = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut value = json!({"spec": {
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "containers": [asks("1"), asks("500m")],
        }});
        pod(&mut value);
        let requests = json!({"cpu": "1500m", "memory": "1Gi"});
        assert_eq!(value["spec"]["resources"]["requests"], requests);
    }
}

//! What one Pod asks for, over all its containers.

use serde_json::Value;

use crate::Amounts;

/// Whether what the runtime itself needs for a Pod counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// Quotas charge it.
    Counted,
    /// Limit ranges look at containers only.
    Ignored,
}

/// What the Pod requests: its containers together, or one init container if that needs more.
#[must_use]
pub fn pod_requests(pod: &Value, overhead: Overhead) -> Amounts {
    let mut total = together(pod, "requests");
    if overhead == Overhead::Counted {
        total.add(&Amounts::read(pod.pointer("/spec/overhead")));
    }
    total
}

/// What the Pod is limited to, by the same rule.
#[must_use]
pub fn pod_limits(pod: &Value, overhead: Overhead) -> Amounts {
    let mut total = together(pod, "limits");
    if overhead == Overhead::Counted {
        // Only a resource that is limited at all has its limit raised.
        let extra = Amounts::read(pod.pointer("/spec/overhead"));
        let limited = extra.filtered(|name, _| total.get(name).is_some_and(|own| !own.is_zero()));
        total.add(&limited);
    }
    total
}

fn together(pod: &Value, which: &str) -> Amounts {
    let list = |field: &str| {
        pod.pointer("/spec").and_then(|spec| spec.get(field)).and_then(Value::as_array)
    };
    let of = |container: &Value| {
        Amounts::read(container.get("resources").and_then(|resources| resources.get(which)))
    };
    let mut total = Amounts::default();
    for container in list("containers").into_iter().flatten() {
        total.add(&of(container));
    }
    // Sidecars run beside everything after them; other init containers run alone with those
    // before them.
    let (mut sidecars, mut start) = (Amounts::default(), Amounts::default());
    for container in list("initContainers").into_iter().flatten() {
        let own = of(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            total.add(&own);
            sidecars.add(&own);
            start.raise(&sidecars);
        } else {
            let mut needed = own;
            needed.add(&sidecars);
            start.raise(&needed);
        }
    }
    total.raise(&start);
    for (name, amount) in Amounts::read(pod.pointer(&format!("/spec/resources/{which}"))).iter() {
        if matches!(name, "cpu" | "memory") || name.starts_with("hugepages-") {
            total.set(name, amount);
        }
    }
    total
}

/// Whether no container asks for or is limited to any cpu or memory.
#[must_use]
pub fn is_best_effort(pod: &Value) -> bool {
    let list = |field: &str| {
        pod.pointer("/spec").and_then(|spec| spec.get(field)).and_then(Value::as_array)
    };
    let bound = |resources: Option<&Value>| {
        ["requests", "limits"].into_iter().any(|which| {
            let amounts = Amounts::read(resources.and_then(|resources| resources.get(which)));
            ["cpu", "memory"]
                .into_iter()
                .any(|name| amounts.get(name).is_some_and(|amount| !amount.is_zero()))
        })
    };
    let containers = ["containers", "initContainers"].into_iter().filter_map(list).flatten();
    !bound(pod.pointer("/spec/resources"))
        && !containers.into_iter().any(|container| bound(container.get("resources")))
}

/// Whether the Pod has a deadline, which is what the scope `Terminating` means.
#[must_use]
pub fn is_terminating(pod: &Value) -> bool {
    pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|s| s >= 0)
}

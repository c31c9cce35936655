//! The quality of service that a Pod gets, from what it asks for.
//!
//! Pure: the registry writes it into a new Pod, validation refuses a resize that would change it.

use homeostat_quota::{Amounts, Quantity};
use serde_json::Value;

const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// Guaranteed when the requests for both resources are the limits; best effort when nothing is
/// asked for; burstable otherwise. What the Pod asks for as a whole counts instead of what its
/// containers do.
pub(crate) fn of_pod(spec: &Value) -> &'static str {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let whole = spec.get("resources").filter(|resources| resources.is_object());
    let wishes: Vec<&Value> = match whole {
        Some(whole) => vec![whole],
        None => list("containers")
            .chain(list("initContainers"))
            .map(|container| container.get("resources").unwrap_or(&Value::Null))
            .collect(),
    };
    let (mut requests, mut limits, mut limited) = (Amounts::default(), Amounts::default(), true);
    for wish in wishes {
        let limit = compute(wish.get("limits"));
        limited &= COMPUTE.iter().all(|name| limit.get(name).is_some());
        limits.add(&limit);
        requests.add(&compute(wish.get("requests")));
    }
    let asked = !requests.is_empty() || !limits.is_empty();
    let equal = requests.iter().all(|(name, amount)| limits.get(name) == Some(amount));
    match (asked, limited && equal && COMPUTE.iter().all(|name| requests.get(name).is_some())) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn compute(amounts: Option<&Value>) -> Amounts {
    Amounts::read(amounts)
        .filtered(|name, amount| COMPUTE.contains(&name) && amount > Quantity::ZERO)
}

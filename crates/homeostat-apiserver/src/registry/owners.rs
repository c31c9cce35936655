//! `metadata.ownerReferences`: the same owner counts once, and whoever names it twice is told.

use serde_json::Value;

use super::metadata;
use crate::admission::Inquiry;

/// When owners are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// As the client wrote them.
    Written,
    /// As admission left them.
    Admitted,
}

/// Drops owners that are named twice, and warns of them.
pub(super) fn name_once(object: &mut Value, inquiry: &Inquiry, moment: Moment) {
    let owners = metadata::field(object, "ownerReferences").and_then(Value::as_array);
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else { return };
    let (mut kept, mut twice): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
    for owner in owners {
        if kept.contains(owner) {
            twice.push(owner["uid"].as_str().unwrap_or(""));
        } else {
            kept.push(owner.clone());
        }
    }
    if twice.is_empty() {
        return;
    }
    let when = match moment {
        Moment::Written => "",
        Moment::Admitted => " after mutating admission happens",
    };
    inquiry.warn(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
         references in 1.20+, and may reject such requests as early as 1.24; please fix your \
         requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    ));
    metadata::set(object, "ownerReferences", kept.into());
}

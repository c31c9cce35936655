//! What each manager has applied to an object, as a number: enough to tell whether somebody took a
//! field away, without keeping managed fields.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::Value;

use super::scan::Fields;

/// The share of one manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    manager: Box<str>,
    digest: u64,
}

/// The shares of all who applied (to the object itself, not to a subresource).
pub(super) fn parse(metadata: &Fields<'_>) -> Result<Box<[Share]>, serde_json::Error> {
    static APPLY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"Apply\""));
    match metadata.get("managedFields") {
        // Most objects of a cluster are written by updates alone; they need no second look.
        Some(json) if APPLY.find(json.as_bytes()).is_some() => {
            Ok(shares(&serde_json::from_str(json)?))
        }
        _ => Ok(Box::default()),
    }
}

/// The share of `manager` in an object that is plain JSON; `None` when it has none.
pub(crate) fn of(manager: &str, object: &Value) -> Option<u64> {
    find(manager, &shares(&object["metadata"]["managedFields"]))
}

pub(super) fn find(manager: &str, shares: &[Share]) -> Option<u64> {
    shares.iter().find(|share| *share.manager == *manager).map(|share| share.digest)
}

fn shares(managed_fields: &Value) -> Box<[Share]> {
    let mut shares: Vec<Share> = Vec::new();
    let entries = managed_fields.as_array().into_iter().flatten();
    for entry in entries.filter(|e| e["operation"] == "Apply" && e["subresource"].is_null()) {
        let (manager, digest) = (entry["manager"].as_str().unwrap_or_default(), digest(entry));
        match shares.iter_mut().find(|share| *share.manager == *manager) {
            // One entry for each version of the API that it applied through.
            Some(share) => share.digest = share.digest.rotate_left(1) ^ digest,
            None => shares.push(Share { manager: Box::from(manager), digest }),
        }
    }
    shares.into()
}

fn digest(entry: &Value) -> u64 {
    let mut entry = entry.clone();
    entry.sort_all_objects();
    let mut hasher = DefaultHasher::new();
    entry.to_string().hash(&mut hasher);
    hasher.finish()
}

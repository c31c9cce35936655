//! Charges what a write costs to the quotas that count it, in the same turn as the write.

use serde_json::Value;

use super::update::Area;
use super::{Target, Writer, metadata, rules};
use crate::admission::Charge;
use crate::store::Expect;

/// Who owns the usage that admission writes.
const MANAGER: &str = "kube-apiserver";

impl Writer<'_> {
    /// Writes what the quotas of the namespace have in use now.
    pub(crate) fn charge(&self, namespace: &str, charges: Vec<Charge>) {
        if charges.is_empty() {
            return;
        }
        let catalogue = self.registry.catalogue();
        let Some(kind) = catalogue.find("", "v1", "resourcequotas") else { return };
        for Charge { quota, used } in charges {
            let target =
                Target { kind: kind.clone(), namespace: namespace.to_owned(), name: quota };
            let Ok((stored, live)) = self.live(&target) else { continue };
            let mut object = live.clone();
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.insert("used".to_owned(), used);
            }
            let tracked = rules::track(self, kind, Some(&live), &mut object, MANAGER, Area::Status);
            if tracked.is_err() {
                continue;
            }
            metadata::copy(&mut object, &live, "resourceVersion");
            let expect = Expect::Revision(stored.revision);
            if let Err(status) = self.commit(kind, &stored.key, expect, object, false) {
                tracing::error!(%status, quota = target.name, "a quota could not be charged");
            }
        }
    }
}

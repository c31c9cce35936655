//! ComponentStatuses: which parts a cluster has and whether they work. They are made up when somebody
//! asks, from what the server knows of itself; nothing is probed, kept or watched.

use std::sync::Arc;

use serde_json::json;

use super::{Registry, Target, transient};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::{Key, Stored};

/// The parts that kube-apiserver looks at. Here the first two run in the server's process, or nobody
/// knows of them; what etcd is there, the store is here.
const PARTS: [&str; 3] = ["controller-manager", "scheduler", "etcd-0"];

/// Whether the objects of the kind are these.
pub(super) fn are_asked_for(kind: &Kind) -> bool {
    kind.is("componentstatuses")
}

impl Registry {
    /// All parts.
    pub(super) fn components(&self) -> Vec<Arc<Stored>> {
        PARTS.iter().map(|name| Arc::new(self.component(name))).collect()
    }

    /// The part that is asked for.
    ///
    /// # Errors
    /// 404 for a name that no part has.
    pub(super) fn component_of(&self, target: &Target) -> Result<Arc<Stored>, Status> {
        if PARTS.contains(&target.name.as_str()) {
            return Ok(Arc::new(self.component(&target.name)));
        }
        let mut status = Status::not_found(&target.kind, &target.name);
        // This one resource is called by its singular.
        status.message = format!("componentstatus {:?} not found", target.name);
        if let Some(details) = &mut status.details {
            details["kind"] = "componentstatus".into();
        }
        Err(status)
    }

    fn component(&self, name: &str) -> Stored {
        let (works, message) = match name {
            "etcd-0" if !self.store.works() => ("False", "the store has failed"),
            "controller-manager" | "scheduler" if !self.config.with_controllers => {
                ("False", "it does not run in the process of this server")
            }
            _ => ("True", "ok"),
        };
        let condition = json!({"type": "Healthy", "status": works, "message": message});
        let object = json!({
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [condition],
        });
        transient(&Key::new("", name), &object)
    }
}

//! Volumes and claims: a phase from the start.

use serde_json::json;

use super::{Hooks, NONE};
use crate::registry::metadata;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, _, object| {
        let status = json!({"phase": "Pending", "lastPhaseTransitionTime": writer.now()});
        metadata::set_top(object, "status", Some(status));
        Ok(())
    },
    ..NONE
};

pub(super) const CLAIM_HOOKS: Hooks = Hooks {
    create: |_, _, object| {
        metadata::set_top(object, "status", Some(json!({"phase": "Pending"})));
        Ok(())
    },
    ..NONE
};

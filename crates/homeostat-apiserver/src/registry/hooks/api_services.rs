//! APIServices: what the server serves itself is available at once.

use super::{Hooks, NONE};
use crate::bootstrap::local_status;
use crate::registry::metadata;

pub(super) const HOOKS: Hooks = Hooks {
    create: |writer, _, object| {
        if object.pointer("/spec/service").is_none() {
            metadata::set_top(object, "status", Some(local_status(&writer.now())));
        }
        Ok(())
    },
    ..NONE
};

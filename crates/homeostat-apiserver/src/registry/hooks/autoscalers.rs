//! HorizontalPodAutoscalers: what their first version writes into annotations belongs to `spec` or to
//! `status`, and is written with it only.

use super::{Hooks, NONE};
use crate::autoscaling;

pub(super) const HOOKS: Hooks = Hooks {
    complete: autoscaling::normalise,
    update: |_, _, live, object| {
        autoscaling::keep_status(live, object);
        Ok(())
    },
    part: |_, part, live, object| {
        if part == "status" {
            autoscaling::keep_spec(live, object);
        }
    },
    ..NONE
};

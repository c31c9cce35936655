//! IPAddresses: one that belongs to a Service comes back when somebody deletes it.

use super::{Hooks, NONE};

pub(super) const HOOKS: Hooks =
    Hooks { removed: |writer, _, address| writer.restore_address(address), ..NONE };

//! FlowSchemas and PriorityLevelConfigurations: the server has a word of its own to say after every
//! change (`bootstrap::flow_upkeep`).

use super::{Hooks, NONE};

pub(super) const HOOKS: Hooks = Hooks {
    committed: Some(|writer, _, _, _| writer.registry.disturb()),
    removed: |writer, _, _| writer.registry.disturb(),
    ..NONE
};

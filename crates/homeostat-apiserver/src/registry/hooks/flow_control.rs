//! FlowSchemas and PriorityLevelConfigurations: the server has a word of its own to say after every
//! change (`bootstrap::flow_upkeep`).

use super::{Hooks, NONE};
use crate::registry::Writer;

pub(super) const HOOKS: Hooks = Hooks {
    committed: Some(|writer, _, _, _| changed(writer)),
    removed: |writer, _, _| changed(writer),
    ..NONE
};

fn changed(writer: &Writer<'_>) {
    writer.registry.forget_flows();
    writer.registry.disturb();
}

//! What a cluster owes its users, written on the runtime: controllers and the node agent.

pub mod node;

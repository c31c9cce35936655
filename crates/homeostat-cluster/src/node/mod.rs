//! The node agent: runs the Pods bound to its node as real processes and reports how they are.
//!
//! ```text
//! Pods ──watch──▶ agent ──▶ one worker per Pod ──▶ machine (pure) ──actions──▶ containers, probes
//!                                                         └──status──▶ API
//! ```
//!
//! The [`machine`] decides, everything else acts. Processes are made by [`process`] and
//! [`sandbox`] from the catalogue in [`image`]; [`configuration`] gives them environment and
//! volumes. Nothing here schedules Pods or makes them.

pub mod address;
mod agent;
mod capacity;
pub mod configuration;
mod container;
mod descriptor;
mod directory;
mod follower;
mod host;
pub mod image;
mod input;
pub mod logs;
pub mod machine;
pub mod network;
mod prober;
pub mod process;
mod proxy;
mod registration;
mod remains;
pub mod sandbox;
mod serve;
mod volumes;
mod worker;

pub use agent::{Agent, AgentConfig, AgentError, RunningAgent};
pub use serve::{Body, NodeService};

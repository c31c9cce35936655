//! The node agent: runs the Pods bound to its node as real processes and reports how they are.
//!
//! Processes are made by [`process`] and [`sandbox`], from the catalogue in [`image`].

pub mod image;
pub mod logs;
pub mod process;
pub mod sandbox;

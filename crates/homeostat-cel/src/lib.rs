//! CEL: reading, type checks, the cost of expressions before they run and while they do, in the
//! words of cel-go.
//!
//! The server judges objects with it, and a controller policies before anything is judged; neither
//! may depend on the other. The parser and the functions are `kube-cel`'s, which checks no types and counts no costs; the
//! walk is ours.

pub mod admission;
mod amount;
mod authorization;
mod check;
mod complaints;
mod cost;
mod decl;
mod declarations;
mod device;
mod exists_one;
mod expand;
mod functions;
mod lists;
mod literals;
mod memory;
mod operators;
mod policy;
mod price;
mod program;
mod run;
mod source;
mod spent;
mod texts;
mod types;
mod unify;
mod values;

pub use authorization::{Decision, Question, about_resource, authorizer};
pub use check::{Checked, Variables, check};
pub use cost::most as most_cost;
pub use decl::{Decl, is_word};
pub use device::device;
pub use kube_cel::cel::Value;
pub use lists::{Listing, Lists};
pub use policy::{Warning, warnings};
pub use program::{Fault, Program, Run, Scope};
pub use source::Source;
pub use types::{Object, Type};
pub use values::{maybe, typed, untyped};

#[cfg(test)]
mod tests;

//! CEL: reading, type checks, the cost of expressions before they run and while they do, in the
//! words of cel-go.
//!
//! The parser and the functions are `kube-cel`'s, which checks no types and counts no costs; the
//! walk is ours.

pub(crate) mod admission;
mod amount;
mod check;
mod cost;
mod decl;
mod declarations;
mod expand;
mod functions;
mod literals;
mod operators;
mod price;
mod program;
mod run;
mod source;
mod spent;
mod texts;
mod types;
mod unify;
mod values;

pub(crate) use check::check;
pub(crate) use cost::most as most_cost;
pub(crate) use decl::{Decl, is_word};
pub(crate) use program::{Fault, Program, Scope};
pub(crate) use source::Source;
pub(crate) use types::Type;
pub(crate) use values::{maybe, typed, untyped};

#[cfg(test)]
mod tests;

//! CEL before it runs: reading, type checks and the cost of expressions, in the words of cel-go.
//!
//! Evaluation is the business of `kube-cel`; nothing here evaluates anything.

mod amount;
mod check;
mod cost;
mod decl;
mod declarations;
mod literals;
mod price;
mod source;
mod types;
mod unify;

pub(crate) use check::check;
pub(crate) use cost::most as most_cost;
pub(crate) use decl::Decl;
pub(crate) use source::Source;
pub(crate) use types::{Object, Type};

//! `--demo`: one object for each operator, and a view of how they converge.

mod samples;
mod tree;
mod view;

pub(crate) use samples::apply;
pub(crate) use view::{farewell, hint, watch};

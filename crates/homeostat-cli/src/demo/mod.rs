//! `--demo`: one object for each operator, and a view of how they converge.

mod calls;
mod health;
mod picture;
mod samples;
mod screen;
mod tree;
mod view;

pub(crate) use samples::apply;
pub(crate) use view::{farewell, watch};

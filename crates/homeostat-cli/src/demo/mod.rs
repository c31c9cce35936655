//! `--demo`: one object for each operator, and a view of how they converge and are put right.

mod calls;
mod choice;
mod family;
mod feed;
mod heading;
mod health;
mod picture;
mod plain;
mod samples;
mod screen;
mod tree;
mod view;

pub(crate) use view::{farewell, watch};

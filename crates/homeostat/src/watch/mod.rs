//! Following a collection of objects: list it, watch it, and say exactly what changes.
//!
//! [`Machine`] decides, [`driver`] does the IO. One source that fails never touches another:
//! each has its own machine, its own backoff and its own task.

pub(crate) mod driver;
mod machine;
mod request;
#[cfg(test)]
mod tests;

pub use machine::{Change, Input, Machine, Next, Step};
pub use request::{Refusal, Request};

//! Following a collection of objects: list it, watch it, and say exactly what changes.
//!
//! [`Machine`] decides, the driver does the IO. One source that fails never touches another:
//! each has its own machine, its own backoff and its own task.

mod decode;
pub(crate) mod driver;
mod lines;
mod machine;
#[cfg(test)]
mod model;
mod protocol;
mod request;
#[cfg(test)]
pub(crate) mod script;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreadable;

pub use machine::Machine;
pub use protocol::{Change, Input, Next, Step, Unreadable};
pub use request::{Details, Refusal, Request};

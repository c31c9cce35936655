//! Functions of the user's that run in the runtime's own tasks: a panic in one becomes words, and
//! never ends the task.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the function gave, or what its panic said.
pub(crate) fn contained<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words(&*panic))
}

/// What a panic said.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

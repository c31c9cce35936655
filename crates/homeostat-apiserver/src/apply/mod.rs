//! Server-side apply and `managedFields`: who owns which field of an object, and what happens when
//! several write to it.
//!
//! ```text
//! check ─▶ merge ─▶ prune (remove) ─▶ compare ─▶ conflicts? ─▶ ownership ─▶ managed (the list)
//! ```
//!
//! Pure functions over JSON and a [`Schema`](crate::schema::Schema); the semantics are those of
//! structured-merge-diff as kube-apiserver uses it. Nothing here reads a clock, touches storage,
//! applies defaults or validates.

mod check;
mod collect;
mod compare;
mod entries;
mod error;
mod fields_v1;
mod forms;
mod last_applied;
mod managed;
mod merge;
mod object_meta;
mod ownership;
mod path;
mod prune;
mod remove;
pub(crate) mod scale;
mod server_side;
mod set;
mod shape;
mod track;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::check::{fits, go_words, is_typed};
pub use self::error::{ApplyError, Conflict};
pub use self::forms::{Forms, Others};
pub(crate) use self::managed::check_owners;
pub use self::path::{Atom, PathElement};
pub use self::server_side::apply;
pub(crate) use self::server_side::merged;
pub use self::set::FieldSet;
pub use self::track::{keep_times, track_create, track_update};

use jiff::Timestamp;

use self::managed::{Operation, Owner};

/// Who writes, and when.
#[derive(Debug, Clone, Copy)]
pub struct Manager<'a> {
    /// `fieldManager` of the request; `unknown` when empty.
    pub name: &'a str,
    /// `group/version` the request speaks.
    pub api_version: &'a str,
    /// `status`, `scale`; empty for the object itself.
    pub subresource: &'a str,
    /// The time written where ownership changes, in whole seconds.
    pub now: Timestamp,
}

impl Manager<'_> {
    fn owner(&self, name: &str, operation: Operation) -> Owner {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => self.api_version,
        };
        Owner {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }
}

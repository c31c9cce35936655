//! The controller runtime: you write the reconcile function, it runs the loop.
//!
//! ```text
//! apiserver ──watch──▶ cache ──changed keys──▶ queue ──▶ controller ──reconcile──▶ writes ──▶ apiserver
//! ```
//!
//! This crate speaks HTTP through [`kube::Client`] and knows nothing of the server behind it, so
//! what passes against the embedded cluster passes against a real one. It never prints, never
//! reads the clock or randomness except through [`Env`], and never polls.

pub mod cache;
pub mod condition;
pub mod context;
pub mod controller;
pub mod crd;
pub mod error;
pub mod event;
pub mod journal;
pub mod key;
pub mod kind;
pub mod manager;
pub mod outcome;
pub mod queue;
pub mod trigger;
pub mod watch;

pub use homeostat_env::Env;
pub use {k8s_openapi, kube};

pub use context::{Applied, Change, Context};
pub use controller::{Controller, Predicate};
pub use error::{Error, Result};
pub use event::EventType;
pub use journal::Journal;
pub use key::Key;
pub use kind::{Kind, Object};
pub use manager::{Manager, Running};
pub use outcome::Outcome;
pub use queue::Backoff;
pub use trigger::Trigger;

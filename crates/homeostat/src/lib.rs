//! The controller runtime: you write the reconcile function, it runs the loop.
//!
//! ```text
//! apiserver ──watch──▶ cache ──changed keys──▶ queue ──▶ controller ──reconcile──▶ writes ──▶ apiserver
//! ```
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use homeostat::{Context, Controller, Manager, Outcome, Result};
//!
//! /// Keeps an empty secret beside every config map.
//! async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
//!     let mut secret = Secret::default();
//!     secret.metadata.name.clone_from(&config.metadata.name);
//!     ctx.apply(secret).await?; // owned, and left alone when nothing would change
//!     Ok(Outcome::Done) // the secret's events wake us
//! }
//!
//! # async fn example() -> Result<()> {
//! Manager::from_env().await?.with(Controller::new(reconcile).owns::<Secret>()).run().await
//! # }
//! ```
//!
//! This crate speaks HTTP through [`kube::Client`] and knows nothing of the server behind it, so
//! what passes against the embedded cluster passes against a real one. It never prints, never
//! reads the clock or randomness except through [`Env`], and never polls.

pub mod cache;
pub mod client;
pub mod condition;
pub mod context;
pub mod controller;
pub mod crd;
mod difference;
pub mod error;
pub mod event;
pub mod external;
pub mod hotloop;
pub mod journal;
pub mod key;
pub mod kind;
pub mod labels;
pub mod lease;
pub mod manager;
pub mod metrics;
pub mod outcome;
pub mod pod;
pub mod queue;
pub mod trigger;
pub mod watch;
pub mod webhook;

pub use homeostat_env::Env;
pub use {k8s_openapi, kube, prometheus_client};

pub use context::{Applied, Change, Context};
pub use controller::{Controller, Predicate, Reconciler};
pub use error::{Error, Result};
pub use event::EventType;
pub use hotloop::HotLoop;
pub use journal::Journal;
pub use key::Key;
pub use kind::{Kind, Object, View};
pub use lease::Lease;
pub use manager::{Manager, Running};
pub use metrics::Metrics;
pub use outcome::Outcome;
pub use queue::Backoff;
pub use trigger::Trigger;

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
//! The same controller on a cluster within the process, which is how tests and examples run:
//!
//! ```
//! # use std::sync::Arc;
//! # use homeostat::k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! # use homeostat::{Context, Controller, Manager, Outcome, Result};
//! # use serde_json::json;
//! # async fn reconcile(config: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
//! #     let mut secret = Secret::default();
//! #     secret.metadata.name.clone_from(&config.metadata.name);
//! #     ctx.apply(secret).await?;
//! #     Ok(Outcome::Done)
//! # }
//! homeostat_testing::on_cluster(async |cluster| {
//!     let controller = Controller::new(reconcile).owns::<Secret>();
//!     let running = cluster.start(controller).await;
//!     cluster.create::<ConfigMap>(json!({ "metadata": { "name": "web" } })).await;
//!     cluster.until_one::<Secret>("web", "a secret", |_| true).await;
//!     running.stop().await.unwrap();
//! });
//! ```
//!
//! | to | see |
//! |---|---|
//! | say what wakes a reconcile, and how it is run | [`Controller`], [`controller::Related`], [`Predicate`], [`controller::Source`] |
//! | read and write from a reconcile | [`Context`], [`condition`], [`external`] |
//! | say what comes next | [`Outcome`], [`Error`] |
//! | run controllers, lead, be asked how it goes | [`Manager`], [`Running`], [`Lease`], [`Metrics`] |
//! | answer the API's questions | [`webhook`] |
//! | see what happened and why | [`Journal`], [`HotLoop`], [`log`] |
//! | be a program with a `--help` | [`take_no_arguments!`] |
//! | write a loop by hand | [`cache`], [`queue`] |
//!
//! This crate speaks HTTP through [`kube::Client`] and knows nothing of the server behind it, so
//! what passes against the embedded cluster passes against a real one. It never prints
//! but what a `main` asks of it, never reads the clock or randomness except through [`Env`], and
//! never polls, but for the moment until a new definition is served, of which no event tells.
//!
//! Whoever builds a program chooses the version of Kubernetes whose types it knows, by a feature of
//! [`k8s_openapi`], whose build fails without one; libraries leave the choice to the program:
//!
//! ```toml
//! [dependencies]
//! k8s-openapi = { version = "0.29", features = ["v1_36"] }
//! ```

pub mod arguments;
pub mod cache;
pub mod client;
pub mod condition;
mod contained;
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
#[cfg(feature = "log")]
pub mod log;
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

pub use cache::Namespaces;
pub use context::{Applied, Change, Context};
pub use controller::{Controller, Predicate, Reconciler};
pub use error::{Error, Result};
pub use event::{EventDraft, EventType};
pub use hotloop::HotLoop;
pub use journal::Journal;
pub use key::{Key, NameOrKey};
pub use kind::{AnyObject, Kind, Object, View};
pub use lease::Lease;
pub use manager::{Manager, Running};
pub use metrics::Metrics;
pub use outcome::Outcome;
pub use queue::Backoff;
pub use trigger::{Trigger, Triggers};

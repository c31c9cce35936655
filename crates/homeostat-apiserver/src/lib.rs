//! The Kubernetes API as a `tower::Service` over a revisioned store.
//!
//! ```text
//! http ──▶ registry ──▶ (schema: default, prune, validate · apply · patch) ──▶ store ──▶ watch
//! ```

pub mod admission;
mod advertise;
mod alike;
pub mod apply;
mod aside;
pub mod auth;
mod autoscaling;
mod bootstrap;
pub mod custom;
pub mod decode;
pub mod default;
mod dial;
mod directory;
pub mod discovery;
mod disk;
pub mod field;
mod go;
mod greeting;
pub mod http;
pub mod kinds;
mod metrics;
pub mod openapi;
pub mod patch;
mod patience;
pub mod print;
pub mod proto;
mod quality;
pub mod registry;
pub mod schema;
mod server;
mod status;
pub mod store;
mod tls;
pub mod validate;
mod warn;
mod webhook_client;

pub use auth::{Access, Identity, IdentityError, SigningKey, User};
pub use directory::DataDirectory;
pub use http::{Body, NodeConnector};
pub use server::{AddressRange, Server, ServerConfig};
pub use status::Status;
pub use tls::ServeError;
pub use webhook_client::{WebhookAddress, WebhookAnswer, WebhookConnector, WebhookReply};

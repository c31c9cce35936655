//! The Kubernetes API as a `tower::Service` over a revisioned store.
//!
//! ```text
//! http ──▶ registry ──▶ (schema: default, prune, validate · apply · patch) ──▶ store ──▶ watch
//! ```

pub mod apply;
mod bootstrap;
pub mod custom;
pub mod decode;
pub mod default;
pub mod discovery;
pub mod field;
pub mod http;
pub mod kinds;
pub mod openapi;
pub mod patch;
pub mod print;
pub mod proto;
pub mod registry;
pub mod schema;
mod server;
mod status;
pub mod store;
pub mod validate;

pub use http::Body;
pub use server::{AddressRange, Server, ServerConfig};
pub use status::Status;

//! The Kubernetes API as a `tower::Service` over a revisioned store.
//!
//! ```text
//! http ──▶ registry ──▶ (schema: default, prune, validate · apply · patch) ──▶ store ──▶ watch
//! ```

pub mod apply;
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
pub mod registry;
pub mod schema;
pub mod store;
pub mod validate;
mod bootstrap;
mod server;
mod status;

pub use http::Body;
pub use server::{Server, ServerConfig};
pub use status::Status;

//! The Kubernetes API as a `tower::Service` over a revisioned store.
//!
//! ```text
//! http ──▶ registry ──▶ (schema: default, prune, validate · apply · patch) ──▶ store ──▶ watch
//! ```

pub mod apply;
pub mod decode;
pub mod default;
pub mod discovery;
pub mod field;
pub mod kinds;
pub mod patch;
pub mod schema;
pub mod validate;

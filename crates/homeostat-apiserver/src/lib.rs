//! The Kubernetes API as a `tower::Service` over a revisioned store.

pub mod field;
pub mod schema;

//! The two database operators with a real PostgreSQL, driven through kubectl and psql only.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod postgresql;
#[path = "../running/mod.rs"]
mod running;

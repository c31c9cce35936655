//! What objects cost: amounts of resources, and the one measure by which the server's admission
//! charges a quota and the quota controller counts what is there.
//!
//! Everything is a function of JSON objects. It knows neither the server nor a client, reads no
//! clock and never does IO.

mod amounts;
mod measure;
mod pod;
mod quantity;
mod scope;

pub use amounts::Amounts;
pub use measure::{Measure, missing_requirements};
pub use pod::{Overhead, is_best_effort, is_terminating, pod_limits, pod_requests};
pub use quantity::{NotAQuantity, Quantity};
pub use scope::matches_scopes;

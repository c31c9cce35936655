//! How a change of a Pod is recognised where it is reconciled.

/// When the change of a Pod was sent, in nanoseconds since 1970: tells changes apart.
pub(crate) const SENT: &str = "bench.homeostat.dev/sent";

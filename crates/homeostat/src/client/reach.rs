//! Whether the server can be reached, told when that changes: once, and not by every watch, the lease
//! and every reconcile, all of which find out by themselves and try again.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{BoxError, chain};

/// How HTTP/2 calls the end of a connection whose server ends: no words for people.
const IN_GOOD_ORDER: &str = "not a result of an error";

/// The server of a client; clones share what is known of it.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    server: Arc<str>,
    is_lost: Arc<AtomicBool>,
}

/// That it cannot be reached, which the log has already.
#[derive(Debug, thiserror::Error)]
#[error("the API at {server} cannot be reached")]
struct Unreachable {
    server: Arc<str>,
    #[source]
    source: BoxError,
}

impl Reach {
    pub(super) fn of(server: &http::Uri) -> Self {
        let server = server.to_string();
        Self { server: server.trim_end_matches('/').into(), is_lost: Arc::default() }
    }

    /// It has answered.
    pub(super) fn answered(&self) {
        // Nearly always there is nothing to write.
        if self.is_lost.load(Ordering::Relaxed) && self.is_lost.swap(false, Ordering::Relaxed) {
            tracing::info!("the API at {} is reached again", self.server);
        }
    }

    /// It has not; the error to hand on.
    pub(super) fn failed(&self, error: impl Into<BoxError>) -> BoxError {
        let (server, source) = (Arc::clone(&self.server), error.into());
        if !self.is_lost.swap(true, Ordering::Relaxed) {
            let why = Some(chain(&*source)).filter(|why| !why.ends_with(IN_GOOD_ORDER));
            let why = why.unwrap_or_else(|| "it has ended the connection".to_owned());
            tracing::warn!("the API at {server} cannot be reached and is tried again: {why}");
        }
        Unreachable { server, source }.into()
    }
}

/// Whether the log has it already why this failed.
pub(crate) fn is_told(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source())
        .any(|error| error.is::<Unreachable>())
}

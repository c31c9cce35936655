//! Every request of a test's client that may change something, in order.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request};

/// The writes sent so far, as `PATCH /api/v1/…`. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    sent: Arc<Mutex<Vec<String>>>,
}

impl Writes {
    /// Takes the list and begins a new one.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many there are since the list was last taken.
    pub(crate) fn count(&self) -> usize {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Notes a request on its way out.
    pub(crate) fn note<B>(&self, request: &Request<B>) {
        if *request.method() != Method::GET {
            let line = format!("{} {}", request.method(), request.uri().path());
            self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

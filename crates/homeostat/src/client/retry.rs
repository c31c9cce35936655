//! Which requests may be sent again, and when. Pure.
//!
//! A write whose answer was lost may have been carried out: it is never sent again blindly. What
//! the server turned away unread, and what never reached it, may be repeated whatever it is.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use crate::queue::Backoff;

/// How often one request is sent at most.
const MOST: u32 = 5;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The server answered, perhaps with a time after which to ask again.
    Answered(StatusCode, Option<Duration>),
    /// No connection could be made.
    Unreached,
    /// It was sent, or may have been, and no answer came.
    Lost,
}

impl Fate {
    pub(super) fn of<B>(answer: &Result<http::Response<B>, kube::Error>) -> Self {
        match answer {
            Ok(answer) => Self::Answered(answer.status(), retry_after(answer.headers())),
            Err(error) if never_left(error) => Self::Unreached,
            Err(_) => Self::Lost,
        }
    }
}

/// Whether a request changes nothing.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// How long to wait before a request is sent again; `None` when it shall not be. It was sent
/// `sent` times; `dice` in `[0, 1)` decides the jitter.
pub(super) fn again(method: &Method, sent: u32, fate: Fate, dice: f64) -> Option<Duration> {
    if sent >= MOST {
        return None;
    }
    let backoff = Backoff {
        first: Duration::from_millis(100),
        factor: 2.0,
        max: Duration::from_secs(5),
        jitter: 0.5,
    };
    let backoff = backoff.delay(sent.saturating_sub(1), dice);
    match fate {
        // It was turned away before anything was done.
        Fate::Answered(StatusCode::TOO_MANY_REQUESTS, Some(after)) => Some(after.max(backoff)),
        Fate::Answered(
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT,
            after,
        ) if is_read(method) => Some(after.unwrap_or_default().max(backoff)),
        Fate::Unreached => Some(backoff),
        Fate::Lost if is_read(method) => Some(backoff),
        Fate::Answered(..) | Fate::Lost => None,
    }
}

/// No server is left alone for longer than this, whatever it says: a mistake in one answer must not
/// put anything to sleep for a day.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// How long the server wants to be left alone; `None` when it does not say, or names a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

fn never_left(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return error.is_connect();
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_repeated_only_when_it_cannot_have_been_done() {
        let busy = |after| Fate::Answered(StatusCode::TOO_MANY_REQUESTS, after);
        let down = Fate::Answered(StatusCode::SERVICE_UNAVAILABLE, Some(Duration::from_secs(1)));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let again = |fate| again(&method, 1, fate, 0.5).is_some();
            assert!(again(Fate::Unreached) && again(busy(Some(Duration::from_secs(1)))));
            assert!(!again(Fate::Lost) && !again(down) && !again(busy(None)), "{method}");
        }
        for fate in [Fate::Unreached, Fate::Lost, down, busy(None)] {
            assert!(again(&Method::GET, 1, fate, 0.5).is_some());
            assert_eq!(again(&Method::GET, MOST, fate, 0.5), None, "at some point it is enough");
        }
        for code in [StatusCode::OK, StatusCode::CONFLICT, StatusCode::INTERNAL_SERVER_ERROR] {
            assert_eq!(again(&Method::GET, 1, Fate::Answered(code, None), 0.5), None);
        }
    }

    #[test]
    fn the_servers_word_on_when_to_come_back_counts() {
        let after = Duration::from_secs(7);
        let fate = Fate::Answered(StatusCode::TOO_MANY_REQUESTS, Some(after));
        assert_eq!(again(&Method::POST, 1, fate, 0.0), Some(after));
    }
}

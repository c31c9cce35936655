//! What a watch asks the server, and the answers that are no.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::client::LONGEST_WAIT;

/// A request of a watch for its collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A watch that begins with every object (`sendInitialEvents`).
    StreamingList {
        /// Not older than this; `None` for a consistent read.
        since: Option<String>,
        /// The server's time limit.
        limit: Duration,
    },
    /// A page of a list.
    Page {
        /// Not older than this; `None` for a consistent read, or when a token says where to go on.
        since: Option<String>,
        /// How many objects at most; `None` for all.
        limit: Option<u32>,
        /// Where to go on.
        token: Option<String>,
    },
    /// A watch of everything after a revision.
    Watch {
        /// That revision.
        from: String,
        /// The server's time limit.
        limit: Duration,
    },
}

impl Request {
    /// The query string, with the label and field selectors of the source.
    #[must_use]
    pub fn query(&self, labels: Option<&str>, fields: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(labels) = labels {
            query.append_pair("labelSelector", labels);
        }
        if let Some(fields) = fields {
            query.append_pair("fieldSelector", fields);
        }
        match self {
            Self::StreamingList { since, limit } => {
                watch(&mut query, *limit);
                query.append_pair("sendInitialEvents", "true");
                query.append_pair("resourceVersionMatch", "NotOlderThan");
                if let Some(since) = since {
                    query.append_pair("resourceVersion", since);
                }
            }
            Self::Page { since, limit, token } => {
                if let Some(limit) = limit {
                    query.append_pair("limit", &limit.to_string());
                }
                if let Some(token) = token {
                    query.append_pair("continue", token);
                }
                if let Some(since) = since {
                    query.append_pair("resourceVersion", since);
                    query.append_pair("resourceVersionMatch", "NotOlderThan");
                }
            }
            Self::Watch { from, limit } => {
                watch(&mut query, *limit);
                query.append_pair("resourceVersion", from);
            }
        }
        query.finish()
    }
}

fn watch(query: &mut form_urlencoded::Serializer<'_, String>, limit: Duration) {
    query.append_pair("watch", "true");
    query.append_pair("allowWatchBookmarks", "true");
    query.append_pair("timeoutSeconds", &limit.as_secs().to_string());
}

/// The server's no: a `Status` object, or what is left of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// The reason in one word.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
    /// More about it.
    pub details: Details,
}

/// The details of a refusal that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    /// How many seconds to wait before asking again; 0 when the server does not say.
    pub retry_after_seconds: u32,
}

impl Refusal {
    /// The history asked for is no longer there.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// The request makes no sense to this server.
    #[must_use]
    pub fn is_not_understood(&self) -> bool {
        matches!(self.code, 400 | 405 | 406 | 415 | 422)
    }

    /// How long the server is to be left alone; zero when it does not say, and five minutes at most.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        Duration::from_secs(self.details.retry_after_seconds.into()).min(LONGEST_WAIT)
    }

    /// The same, with the time that the header of the answer names where the body names none.
    pub(super) fn or_told_to_wait(mut self, after: Option<Duration>) -> Self {
        let seconds = after.map_or(0, |after| u32::try_from(after.as_secs()).unwrap_or(u32::MAX));
        let told = &mut self.details.retry_after_seconds;
        *told = (*told).max(seconds);
        self
    }

    /// The server is busy.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.code == 429
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, message) = (self.code, self.message.trim_end());
        match code {
            401 => write!(f, "not authenticated: {message}"),
            403 => write!(f, "not allowed: {message} (it takes the verbs list and watch)"),
            404 => write!(f, "not served: {message} (is its CustomResourceDefinition installed?)"),
            _ => write!(f, "{message} ({code})"),
        }
    }
}

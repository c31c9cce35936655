//! What the operators did, each deed once: also what came and went between two looks, such as a
//! correction. Pure: the events that there are in, those that are news out.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::health::one_line;

/// Something that an operator did, or came across.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deed {
    /// When, the last time.
    pub(crate) at: Timestamp,
    /// `WebApp hello: Corrected: Deployment hello is as declared again`.
    pub(crate) words: String,
}

/// Knows which deeds were told.
#[derive(Debug)]
pub(crate) struct Feed {
    begin: Timestamp,
    /// By the event's name: how often it had happened.
    told: BTreeMap<String, i64>,
}

impl Feed {
    /// What was over before then is no news.
    pub(crate) fn since(begin: Timestamp) -> Self {
        Self { begin, told: BTreeMap::new() }
    }

    /// What was not told yet of these Events (`events.k8s.io/v1`), in the order of time.
    pub(crate) fn news(&mut self, events: &[Value]) -> Vec<Deed> {
        let mut news: Vec<Deed> = events.iter().filter_map(|event| self.heard(event)).collect();
        news.sort();
        news
    }

    fn heard(&mut self, event: &Value) -> Option<Deed> {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let at = text("/series/lastObservedTime").or_else(|| text("/eventTime"))?;
        let at: Timestamp = at.parse().ok()?;
        let count = event.pointer("/series/count").and_then(Value::as_i64).unwrap_or(1);
        let before = self.told.insert(text("/metadata/name")?.to_owned(), count).unwrap_or(0);
        if at < self.begin || count <= before {
            return None;
        }
        let part = |pointer| one_line(text(pointer).unwrap_or_default());
        let mut words = format!(
            "{} {}: {}: {}",
            part("/regarding/kind"),
            part("/regarding/name"),
            part("/reason"),
            part("/note")
        );
        // The API was told of several at once.
        if count - before > 1 {
            words.push_str(&format!(" ({} times)", count - before));
        }
        Some(Deed { at, words })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEGIN: &str = "2026-01-01T00:01:00.000000Z";

    fn feed() -> Feed {
        Feed::since(BEGIN.parse().unwrap())
    }

    fn event(name: &str, at: &str, note: &str) -> Value {
        json!({ "metadata": { "name": name }, "eventTime": at, "reason": "Corrected", "note": note,
            "regarding": { "kind": "WebApp", "name": "hello" } })
    }

    fn repeated(name: &str, count: i64, last: &str) -> Value {
        let mut event = event(name, BEGIN, "it is so again");
        event["series"] = json!({ "count": count, "lastObservedTime": last });
        event
    }

    fn words(news: Vec<Deed>) -> Vec<String> {
        news.into_iter().map(|deed| deed.words).collect()
    }

    #[test]
    fn every_deed_is_told_once_in_the_order_of_time() {
        let mut feed = feed();
        let later = event("a", "2026-01-01T00:01:02.000000Z", "second\n\u{1b}[31mline");
        let sooner = event("b", "2026-01-01T00:01:01.000000Z", "first");
        assert_eq!(
            words(feed.news(&[later.clone(), sooner.clone()])),
            ["WebApp hello: Corrected: first", "WebApp hello: Corrected: second [31mline"]
        );
        assert_eq!(feed.news(&[later, sooner]), []);
    }

    #[test]
    fn what_happens_again_is_told_again_and_counted_when_the_api_heard_of_it_late() {
        let mut feed = feed();
        let once = "WebApp hello: Corrected: it is so again";
        assert_eq!(words(feed.news(&[event("a", BEGIN, "it is so again")])), [once]);
        assert_eq!(words(feed.news(&[repeated("a", 2, BEGIN)])), [once]);
        assert_eq!(words(feed.news(&[])), [""; 0]);
        assert_eq!(words(feed.news(&[repeated("a", 5, BEGIN)])), [format!("{once} (3 times)")]);
    }

    #[test]
    fn what_was_over_before_the_watch_began_is_no_news_until_it_happens_again() {
        let mut feed = feed();
        let before = "2026-01-01T00:00:59.000000Z";
        assert_eq!(feed.news(&[repeated("a", 7, before)]), []);
        assert_eq!(words(feed.news(&[repeated("a", 8, BEGIN)])).len(), 1);
    }
}

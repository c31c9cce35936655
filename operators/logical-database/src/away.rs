//! How soon a server that is away is looked for again. Pure.
//!
//! Most are on their way: a Database makes its Secret before its server runs. So the next look comes
//! after a small part of the time that it has been away for: whoever starts after five seconds is found
//! within one, and a server that is gone for good is asked as seldom as one that is well.

use std::time::Duration;

use homeostat::condition;
use homeostat::k8s_openapi::api::core::v1::Secret;
use jiff::Timestamp;

use crate::LogicalDatabase;
use crate::reconcile::CHECK_EVERY;

/// Not sooner than this.
const SOONEST: Duration = Duration::from_millis(250);

/// The part of the time that passed which may pass again.
const PART: u32 = 8;

/// After how long to look again. It is away since it was last there, or since somebody named it.
pub(crate) fn look_again(object: &LogicalDatabase, secret: &Secret, now: Timestamp) -> Duration {
    let conditions = object.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let not_ready = condition::get(conditions, condition::READY)
        .filter(|_| !condition::is_true(conditions, condition::READY));
    let since = not_ready.map_or(now, |one| one.last_transition_time.0);
    let named = secret.metadata.creation_timestamp.as_ref().map_or(since, |time| time.0);
    let passed = Duration::try_from(now.duration_since(since.max(named))).unwrap_or_default();
    (passed / PART).clamp(SOONEST, CHECK_EVERY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(ready: &str, seconds: i64, secret: i64) -> Duration {
        let time = |seconds: i64| Timestamp::from_second(1_000_000 + seconds).unwrap().to_string();
        let condition = json!({ "type": "Ready", "status": ready, "reason": "X", "message": "",
            "lastTransitionTime": time(0) });
        let object = json!({
            "metadata": { "name": "orders" },
            "spec": { "serverSecret": "s", "databaseName": "a", "owner": "b" },
            "status": { "conditions": [condition] },
        });
        let secret = json!({ "metadata": { "creationTimestamp": time(secret) } });
        let now = Timestamp::from_second(1_000_000 + seconds).unwrap();
        let object = serde_json::from_value(object).unwrap();
        look_again(&object, &serde_json::from_value(secret).unwrap(), now)
    }

    #[test]
    fn a_server_is_looked_for_after_a_part_of_the_time_it_has_been_away() {
        assert_eq!(after("False", 0, -9), SOONEST);
        assert_eq!(after("False", 8, -9), Duration::from_secs(1));
        assert_eq!(after("False", 3600, -9), CHECK_EVERY);
    }

    #[test]
    fn it_is_away_since_it_was_last_there_or_since_it_was_named() {
        assert_eq!(after("True", 3600, -9), SOONEST, "it was well a moment ago");
        assert_eq!(after("False", 3600, 3599), SOONEST, "its Secret has just come");
    }
}

//! Conditions: what a status says about one aspect of an object, and when that last flipped.
//!
//! These are plain functions over the list that a status holds. They never read the clock: a new
//! condition carries no time of transition, and [`crate::Context::status`] fills it in, keeping
//! the old one while the condition's status stays the same.
//!
//! ```
//! use homeostat::condition;
//!
//! let mut conditions = vec![condition::not_ready("Starting", "one of three is there")];
//! let now = "2026-01-01T00:00:00Z".parse().unwrap();
//! assert!(condition::set(&mut conditions, condition::ready("Started", "all are there"), now));
//! assert!(condition::is_true(&conditions, condition::READY));
//! ```

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The object does what its spec asks for. The runtime says `False` after a terminal error, in a message
/// that ends with the controller's name ([`crate::Controller::marks_status`]), unless that reconcile
/// said itself how ready the object is; it takes that back after the next success.
pub const READY: &str = "Ready";

/// The object cannot get there by itself; the runtime sets it after a terminal error, in a message that
/// ends with the controller's name ([`crate::Controller::marks_status`]), and removes it after the next
/// success, unless the reconcile reports it itself.
pub const DEGRADED: &str = "Degraded";

/// The three answers a condition can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody can tell at the moment.
    Unknown,
}

impl Status {
    /// The word the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// A condition. `reason` is one CamelCase word for programs, `message` a sentence for people.
///
/// The time of transition is a placeholder until [`set`] or [`crate::Context::status`] fills it.
#[must_use]
pub fn new(
    type_: &str,
    status: impl Into<Status>,
    reason: impl Into<String>,
    message: impl Into<String>,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.into().as_str().to_owned(),
        reason: reason.into(),
        message: message.into(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// `Ready` is `True`.
#[must_use]
pub fn ready(reason: impl Into<String>, message: impl Into<String>) -> Condition {
    new(READY, Status::True, reason, message)
}

/// `Ready` is `False`.
#[must_use]
pub fn not_ready(reason: impl Into<String>, message: impl Into<String>) -> Condition {
    new(READY, Status::False, reason, message)
}

/// `Degraded` is `True`.
#[must_use]
pub fn degraded(reason: impl Into<String>, message: impl Into<String>) -> Condition {
    new(DEGRADED, Status::True, reason, message)
}

/// The condition of that type.
#[must_use]
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type is there and `True`.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == Status::True.as_str())
}

/// The condition of that type in `new`, if it is `True` there and was not in `old`: news worth an
/// event.
#[must_use]
pub fn turned_true<'a>(
    old: &[Condition],
    new: &'a [Condition],
    type_: &str,
) -> Option<&'a Condition> {
    get(new, type_).filter(|_| is_true(new, type_) && !is_true(old, type_))
}

/// Puts `condition` in the list in place of the one of its type, at the end if there is none.
///
/// The time of transition becomes `now` when the status flips and stays as it was otherwise.
/// Returns whether the list is different now.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition, now: Timestamp) -> bool {
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == condition.type_) else {
        condition.last_transition_time = Time(now);
        conditions.push(condition);
        return true;
    };
    condition.last_transition_time =
        if old.status == condition.status { old.last_transition_time.clone() } else { Time(now) };
    let changed = *old != condition;
    *old = condition;
    changed
}

/// Takes the condition of that type out of the list; returns whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_of_transition_moves_only_when_the_status_flips() {
        let mut list = Vec::new();
        assert!(set(&mut list, not_ready("Starting", "0 of 1"), at(10)));
        assert!(set(&mut list, not_ready("Starting", "0 of 2"), at(20)), "the message changed");
        assert_eq!(list[0].last_transition_time.0, at(10));
        assert!(!set(&mut list, not_ready("Starting", "0 of 2"), at(30)), "nothing changed");
        assert!(set(&mut list, ready("Up", "2 of 2"), at(40)));
        assert_eq!(list[0].last_transition_time.0, at(40));
        assert!(is_true(&list, READY) && !is_true(&list, DEGRADED));
    }

    #[test]
    fn only_what_was_not_so_before_is_news() {
        let (none, broken) = (vec![], vec![degraded("Broken", "no")]);
        assert_eq!(turned_true(&none, &broken, DEGRADED), broken.first());
        assert_eq!(turned_true(&broken, &broken, DEGRADED), None);
        assert_eq!(turned_true(&none, &[not_ready("Broken", "no")], READY), None);
    }

    #[test]
    fn removing_says_whether_there_was_one() {
        let mut list = vec![degraded("Broken", "no")];
        assert!(remove(&mut list, DEGRADED));
        assert!(!remove(&mut list, DEGRADED));
    }
}

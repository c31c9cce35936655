//! How long to wait before a Pod that failed on a node is replaced. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The last replacements, by the uid of the set and the node.
#[derive(Debug, Default)]
pub(super) struct Retry(BTreeMap<(String, String), Last>);

#[derive(Debug, Clone, Copy)]
struct Last {
    at: Timestamp,
    pause: Duration,
}

impl Retry {
    /// Counts a replacement if one may happen now; otherwise says when it may.
    pub(super) fn replace(
        &mut self,
        set: &str,
        node: &str,
        now: Timestamp,
    ) -> Result<(), Timestamp> {
        // What has held for twice the longest pause is forgotten.
        self.0.retain(|_, last| Self::after(last.at, 2 * LONGEST) > now);
        let key = (set.to_owned(), node.to_owned());
        let pause = match self.0.get(&key) {
            Some(last) if Self::after(last.at, last.pause) > now => {
                return Err(Self::after(last.at, last.pause));
            }
            Some(last) => (2 * last.pause).min(LONGEST),
            None => FIRST,
        };
        self.0.insert(key, Last { at: now, pause });
        Ok(())
    }

    fn after(at: Timestamp, pause: Duration) -> Timestamp {
        at.checked_add(pause).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_replacement_waits_twice_as_long_as_the_one_before() {
        let mut retry = Retry::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(retry.replace("set", "node", at(100)), Ok(()));
        assert_eq!(retry.replace("set", "node", at(100)), Err(at(101)));
        assert_eq!(retry.replace("set", "other", at(100)), Ok(()));
        assert_eq!(retry.replace("set", "node", at(101)), Ok(()));
        assert_eq!(retry.replace("set", "node", at(102)), Err(at(103)));
        assert_eq!(retry.replace("set", "node", at(5000)), Ok(()));
        assert_eq!(retry.replace("set", "node", at(5000)), Err(at(5001)), "forgotten by then");
    }
}

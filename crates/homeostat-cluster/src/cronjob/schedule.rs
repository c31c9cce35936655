//! When a CronJob is due. Pure.

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions, parse_crontab_with};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// More missed times than this are not counted.
const MOST_MISSED: usize = 100;

/// How far back to look for the last time that was due, a little at first: schedules with many
/// times have one not long ago.
const WINDOWS: [SignedDuration; 5] = [
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(24),
    SignedDuration::from_hours(24 * 31),
    SignedDuration::from_hours(24 * 366),
    SignedDuration::from_hours(24 * 366 * 9),
];

/// The times named by `schedule`.
#[derive(Debug)]
pub(super) enum Schedule {
    Crontab(Box<Crontab>),
    /// `@every 1h30m`.
    Every(SignedDuration),
}

/// The last time that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    /// Whether more than a hundred were missed.
    pub(super) too_many: bool,
}

/// A zone by name; UTC by default.
pub(super) fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    let name = name.filter(|name| !name.is_empty());
    name.map_or(Ok(TimeZone::UTC), |name| TimeZone::get(name).map_err(|error| error.to_string()))
}

impl Schedule {
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Result<Self, String> {
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(period) = fields.strip_prefix("@every ") {
            let period: SignedDuration =
                period.trim().parse().map_err(|error: jiff::Error| error.to_string())?;
            let whole = SignedDuration::from_secs(period.as_secs());
            return Ok(Self::Every(whole.max(SignedDuration::from_secs(1))));
        }
        if fields.split_whitespace().count() != 5 {
            return Err(format!("expected exactly 5 fields, found {fields:?}"));
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let zone = zone.filter(|name| !name.is_empty()).unwrap_or("UTC");
        let text = format!("{} {zone}", fields.replace('?', "*"));
        let crontab = parse_crontab_with(&text, options).map_err(|error| error.to_string())?;
        Ok(Self::Crontab(Box::new(crontab)))
    }

    /// The first time after this one; `None` when there is none, as with February 30.
    pub(super) fn after(&self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Crontab(crontab) => crontab.find_next(time).ok().map(|next| next.timestamp()),
            Self::Every(period) => {
                let next = time.checked_add(*period).ok()?;
                Timestamp::from_second(next.as_second()).ok()
            }
        }
    }

    /// The last time after `earliest` that is not after `now`.
    pub(super) fn due(&self, earliest: Timestamp, now: Timestamp) -> Option<Due> {
        let first = self.after(earliest).filter(|first| *first <= now)?;
        let times = |from| std::iter::successors(self.after(from), |time| self.after(*time));
        let too_many = times(earliest).take_while(|time| *time <= now).nth(MOST_MISSED).is_some();
        let start = match self {
            // Its times are counted from the earliest, so all of them must be.
            Self::Every(period) => {
                let passed = now.duration_since(first).as_secs() / period.as_secs();
                let skipped = i32::try_from(passed).unwrap_or(i32::MAX);
                return Some(Due { at: first.checked_add(*period * skipped).ok()?, too_many });
            }
            Self::Crontab(_) => WINDOWS.iter().find_map(|window| {
                let from = now.checked_sub(*window).unwrap_or(Timestamp::MIN).max(earliest);
                (self.after(from)? <= now).then_some(from)
            }),
        };
        let at = times(start?).take_while(|time| *time <= now).last()?;
        Some(Due { at, too_many })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn schedules_are_read_as_cron_does() {
        for (schedule, zone, next) in [
            ("*/15 * * * *", None, "2026-01-01T00:15:00Z"),
            ("0 12 * * 1-5", None, "2026-01-01T12:00:00Z"),
            ("30 3 1 * ?", None, "2026-01-01T03:30:00Z"),
            ("@daily", None, "2026-01-02T00:00:00Z"),
            ("@weekly", None, "2026-01-04T00:00:00Z"),
            ("@every 90s", None, "2026-01-01T00:01:30Z"),
            ("0 2 * * *", Some("Europe/Berlin"), "2026-01-01T01:00:00Z"),
            ("0 0 13 * 5", None, "2026-01-02T00:00:00Z"),
        ] {
            let parsed = Schedule::parse(schedule, zone).unwrap();
            let next_after = parsed.after(at("2026-01-01T00:00:00Z")).unwrap();
            assert_eq!(next_after, at(next), "{schedule}");
        }
        for wrong in ["* * * *", "61 * * * *", "* * * * * *", "@every soon", "often"] {
            assert!(Schedule::parse(wrong, None).is_err(), "{wrong}");
        }
        assert!(zone(Some("Mars/Olympus")).is_err());
    }

    #[test]
    fn of_many_missed_times_only_the_last_is_due() {
        let minutes = Schedule::parse("* * * * *", None).unwrap();
        let due = minutes.due(at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:30Z")).unwrap();
        assert_eq!(due, Due { at: at("2026-01-01T00:00:00Z"), too_many: true });
        let yearly = Schedule::parse("@yearly", None).unwrap();
        let due = yearly.due(at("2020-06-01T00:00:00Z"), at("2026-06-01T00:00:00Z")).unwrap();
        assert_eq!(due, Due { at: at("2026-01-01T00:00:00Z"), too_many: false });
        assert_eq!(yearly.due(at("2026-02-01T00:00:00Z"), at("2026-06-01T00:00:00Z")), None);
        let every = Schedule::parse("@every 7s", None).unwrap();
        let due = every.due(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:20Z")).unwrap();
        assert_eq!(due.at, at("2026-01-01T00:00:14Z"));
    }
}

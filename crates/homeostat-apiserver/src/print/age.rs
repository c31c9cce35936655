//! Ages for people: two units at most, fewer as they grow.

use jiff::Timestamp;

/// Seconds as `42s`, `3m20s`, `5h`, `2d3h`, `1y10d`; times in the future beyond a second are
/// `<invalid>`.
#[must_use]
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let years = days / 365;
    let pair = |big: i64, unit: &str, small: i64, below: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{below}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

/// The age of a timestamp; `<unknown>` where there is none, `<invalid>` where it is not one.
pub(super) fn since(text: &str, now: Timestamp) -> String {
    if text.is_empty() {
        return "<unknown>".to_owned();
    }
    match text.parse::<Timestamp>() {
        Ok(time) => human_duration(now.as_second() - time.as_second()),
        Err(_) => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::human_duration;

    #[test]
    fn ages_are_as_short_as_kubectl_users_expect() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (3600, "60m"),
            (4 * 3600, "4h"),
            (4 * 3600 + 300, "4h5m"),
            (40 * 3600, "40h"),
            (51 * 3600, "2d3h"),
            (86_400 * 100, "100d"),
            (86_400 * 740, "2y10d"),
        ] {
            assert_eq!(human_duration(seconds), text);
        }
    }
}

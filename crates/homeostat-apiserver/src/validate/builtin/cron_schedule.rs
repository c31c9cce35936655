//! Whether a text is a schedule, and what is wrong with it, in the words of the program that reads
//! schedules there. When it is due is nobody's business here.

use jiff::tz::TimeZone;

/// The fields of a schedule: the least and the most, and names of numbers from the least on.
const FIELDS: [(u64, u64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const NAMED: &[&str] =
    &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The units of a duration.
const UNITS: &[&str] = &["ns", "us", "µs", "μs", "ms", "s", "m", "h"];

/// Whether a time zone has this name, to the letter.
pub(super) fn is_zone(name: &str) -> bool {
    let zone = TimeZone::get(name);
    name == "UTC" || zone.is_ok_and(|zone| zone.iana_name() == Some(name))
}

/// Reads a schedule, which is not empty.
pub(super) fn read(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let Some((zone, times)) = schedule.split_once(' ') else {
            let why = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
            return Err(why.to_owned());
        };
        let (_, zone) = zone.split_once('=').unwrap_or_default();
        if !matches!(zone, "" | "Local") && !is_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        rest = times.trim();
    }
    if rest.starts_with('@') {
        return named(rest);
    }
    let given: Vec<&str> = rest.split_whitespace().collect();
    if given.len() != FIELDS.len() {
        let (count, wanted) = (given.len(), FIELDS.len());
        return Err(format!(
            "expected exactly {wanted} fields, found {count}: [{}]",
            given.join(" ")
        ));
    }
    for (field, bounds) in given.into_iter().zip(FIELDS) {
        field
            .split(',')
            .filter(|part| !part.is_empty())
            .try_for_each(|part| range(part, bounds))?;
    }
    Ok(())
}

fn named(word: &str) -> Result<(), String> {
    match word.strip_prefix("@every ") {
        Some(period) => {
            duration(period).map_err(|why| format!("failed to parse duration {word}: time: {why}"))
        }
        None if NAMED.contains(&word) => Ok(()),
        None => Err(format!("unrecognized descriptor: {word}")),
    }
}

/// One part of a field: a number, or several with a step.
fn range(part: &str, (least, most, names): (u64, u64, &[&str])) -> Result<(), String> {
    let named = |text: &str| {
        let position = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        position.map_or_else(|| number(text), |position| Ok(least + position as u64))
    };
    let mut steps = part.split('/');
    let (ends, step) = (steps.next().unwrap_or_default(), steps.next());
    let (first, last) = match ends.split('-').collect::<Vec<_>>()[..] {
        ["*" | "?", ..] => (least, most),
        [single] => (named(single)?, named(single)?),
        [first, last] => (named(first)?, named(last)?),
        [first, ..] => {
            named(first)?;
            return Err(format!("too many hyphens: {part}"));
        }
        [] => return Ok(()),
    };
    let many = ends.contains('-');
    let (last, step) = match (step, steps.next()) {
        (_, Some(_)) => return Err(format!("too many slashes: {part}")),
        (None, None) => (last, 1),
        (Some(step), None) => (if many { last } else { most }, number(step)?),
    };
    if first < least {
        Err(format!("beginning of range ({first}) below minimum ({least}): {part}"))
    } else if last > most {
        Err(format!("end of range ({last}) above maximum ({most}): {part}"))
    } else if first > last {
        Err(format!("beginning of range ({first}) beyond end of range ({last}): {part}"))
    } else if step == 0 {
        Err(format!("step of range should be a positive number: {part}"))
    } else {
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let why = if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        "value out of range"
    } else {
        "invalid syntax"
    };
    let failed =
        |_| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}");
    let number: i64 = text.parse().map_err(failed)?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// Reads `1h30m`.
fn duration(text: &str) -> Result<(), String> {
    let invalid = || format!("invalid duration {text:?}");
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit();
        let after = rest.trim_start_matches(is_digit);
        let fraction =
            after.strip_prefix('.').map_or(after, |more| more.trim_start_matches(is_digit));
        let amount = &rest[..rest.len() - fraction.len()];
        if !amount.contains(is_digit) {
            return Err(invalid());
        }
        let end = fraction.find(|c: char| c == '.' || is_digit(c)).unwrap_or(fraction.len());
        let (unit, next) = fraction.split_at(end);
        if unit.is_empty() {
            return Err(format!("missing unit in duration {text:?}"));
        }
        if !UNITS.contains(&unit) {
            return Err(format!("unknown unit {unit:?} in duration {text:?}"));
        }
        rest = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_schedule_is_told_in_the_words_of_its_reader() {
        for right in [
            "* * * * *",
            "*/5 1-3,7 ? JAN sun-Sat",
            "@every 1h30m",
            "@daily",
            "5/15 * * * *",
            "TZ=UTC 0 0 1 1 *",
        ] {
            assert_eq!(read(right), Ok(()), "{right}");
        }
        for (wrong, why) in [
            ("X y/", "expected exactly 5 fields, found 2: [X y/]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("9-3 * * * *", "beginning of range (9) beyond end of range (3): 9-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("*/1/2 * * * *", "too many slashes: */1/2"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@often", "unrecognized descriptor: @often"),
            ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
            (
                "@every soon",
                "failed to parse duration @every soon: time: invalid duration \"soon\"",
            ),
            ("TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where"),
        ] {
            assert_eq!(read(wrong), Err(why.to_owned()), "{wrong}");
        }
    }
}

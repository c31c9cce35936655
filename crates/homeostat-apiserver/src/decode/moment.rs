//! Times as objects and queries write them (RFC 3339): what is taken, and what is said of the rest,
//! as Go's library has it.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};

/// A time as it is kept: in UTC, to the second, or with six digits below it (`micro`), which then
/// must be there.
pub(crate) fn read(text: &str, micro: bool) -> Result<String, String> {
    let fraction = if micro { ".000000" } else { "" };
    let mut reader = Reader { rest: text.as_bytes(), micro };
    let time = reader.read().map_err(|problem| {
        let whole = quoted(text.as_bytes());
        match problem {
            Problem::Part { found, wanted } => format!(
                "parsing time {whole} as \"2006-01-02T15:04:05{fraction}Z07:00\": cannot parse {} as \
                 \"{wanted}\"",
                quoted(found)
            ),
            Problem::Range(what) => format!("parsing time {whole}: {what} out of range"),
            Problem::More(rest) => format!("parsing time {whole}: extra text: {}", quoted(rest)),
        }
    })?;
    let form = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(time.strftime(form).to_string())
}

/// A time in whole seconds, as `metav1.Time`. Every write has some: jiff's own form costs a fraction of
/// `strftime`.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

enum Problem<'a> {
    Part { found: &'a [u8], wanted: &'static str },
    Range(&'static str),
    More(&'a [u8]),
}

struct Reader<'a> {
    rest: &'a [u8],
    micro: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<Timestamp, Problem<'a>> {
        let year = self.year()?;
        self.mark("-")?;
        let month = self.number("01", true)?;
        if !(1..=12).contains(&month) {
            return Err(Problem::Range("month"));
        }
        self.mark("-")?;
        let day = self.number("02", true)?;
        self.mark("T")?;
        let hour = self.below("15", 24, "hour")?;
        self.mark(":")?;
        let minute = self.below("04", 60, "minute")?;
        self.mark(":")?;
        let second = self.below("05", 60, "second")?;
        let micros = self.fraction()?;
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(Problem::More(self.rest));
        }
        let small = |number: i64| i8::try_from(number).unwrap_or_default();
        let day =
            civil::Date::new(i16::try_from(year).unwrap_or_default(), small(month), small(day));
        let time = civil::Time::new(small(hour), small(minute), small(second), micros * 1000);
        let (Ok(day), Ok(time)) = (day, time) else { return Err(Problem::Range("day")) };
        let here = day.to_datetime(time).to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
        let there = here.and_then(|here| here.checked_sub(SignedDuration::from_secs(offset)));
        there.map_err(|_| Problem::Range("day"))
    }

    /// A number of two digits below a bound; an hour may have one.
    fn below(
        &mut self,
        wanted: &'static str,
        bound: i64,
        what: &'static str,
    ) -> Result<i64, Problem<'a>> {
        let number = self.number(wanted, bound != 24)?;
        if number < bound { Ok(number) } else { Err(Problem::Range(what)) }
    }

    fn bad(&self, wanted: &'static str) -> Problem<'a> {
        Problem::Part { found: self.rest, wanted }
    }

    fn digits(&self, from: usize) -> usize {
        self.rest.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn take(&mut self, count: usize) -> i64 {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken.iter().fold(0, |number, byte| number * 10 + i64::from(byte - b'0'))
    }

    fn year(&mut self) -> Result<i64, Problem<'a>> {
        if self.digits(0) < 4 {
            return Err(self.bad("2006"));
        }
        Ok(self.take(4))
    }

    fn mark(&mut self, mark: &'static str) -> Result<(), Problem<'a>> {
        self.rest = self.rest.strip_prefix(mark.as_bytes()).ok_or_else(|| self.bad(mark))?;
        Ok(())
    }

    /// Two digits, or one where that will do.
    fn number(&mut self, wanted: &'static str, two: bool) -> Result<i64, Problem<'a>> {
        match self.digits(0) {
            0 => Err(self.bad(wanted)),
            1 if two => Err(self.bad(wanted)),
            1 => Ok(self.take(1)),
            _ => Ok(self.take(2)),
        }
    }

    /// Parts of a second may always be there; some times must have them.
    fn fraction(&mut self) -> Result<i32, Problem<'a>> {
        let begins = matches!(self.rest.first(), Some(b'.' | b','));
        let digits = if begins { self.digits(1) } else { 0 };
        if self.micro && digits < 6 {
            return Err(self.bad(".000000"));
        }
        let taken = if self.micro { 6 } else { digits };
        if taken == 0 {
            return Ok(0);
        }
        let part = &self.rest[1..=taken];
        self.rest = &self.rest[1 + taken..];
        // What is not asked for is not kept.
        let kept = if self.micro { part } else { &[] };
        Ok(kept.iter().fold(0, |number, byte| number * 10 + i32::from(byte - b'0')))
    }

    /// How many seconds the clock is ahead.
    fn zone(&mut self) -> Result<i64, Problem<'a>> {
        if let Some(rest) = self.rest.strip_prefix(b"Z") {
            self.rest = rest;
            return Ok(0);
        }
        let [sign, a, b, b':', c, d, rest @ ..] = self.rest else { return Err(self.bad("Z07:00")) };
        let pair = |a: &u8, b: &u8| {
            let both = a.is_ascii_digit() && b.is_ascii_digit();
            both.then(|| i64::from(a - b'0') * 10 + i64::from(b - b'0'))
        };
        let (hours, minutes) = (pair(a, b), pair(c, d));
        if hours.is_some_and(|hours| hours > 24) {
            return Err(Problem::Range("time zone offset hour"));
        }
        if hours.is_some() && minutes.is_some_and(|minutes| minutes > 60) {
            return Err(Problem::Range("time zone offset minute"));
        }
        let (Some(hours), Some(minutes), b'+' | b'-') = (hours, minutes, sign) else {
            return Err(self.bad("Z07:00"));
        };
        self.rest = rest;
        let seconds = (hours * 60 + minutes) * 60;
        Ok(if *sign == b'-' { -seconds } else { seconds })
    }
}

/// In quotes, with bytes in place of letters that are not ASCII.
fn quoted(text: &[u8]) -> String {
    let mut out = String::from('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{read, seconds};

    #[test]
    fn what_is_below_a_second_is_not_written() {
        let time = "2020-02-29T23:59:59.999Z".parse().unwrap();
        assert_eq!(seconds(time), "2020-02-29T23:59:59Z");
    }

    #[test]
    fn times_are_read_and_refused_as_go_does() {
        for good in ["2020-02-29T23:59:59Z", "2020-01-01T1:00:00.5+24:00", "0000-01-01T00:00:00,1Z"]
        {
            assert!(read(good, false).is_ok(), "{good}");
        }
        let kept = |text: &str, micro| read(text, micro).unwrap();
        assert_eq!(kept("2020-01-01T00:00:00.123456+01:00", true), "2019-12-31T23:00:00.123456Z");
        assert_eq!(kept("2020-01-01T1:00:00.5-01:00", false), "2020-01-01T02:00:00Z");
        let form = "\"2006-01-02T15:04:05Z07:00\"";
        for (bad, why) in [
            ("yesterday", format!(" as {form}: cannot parse \"yesterday\" as \"2006\"")),
            ("2020-01-01", format!(" as {form}: cannot parse \"\" as \"T\"")),
            (
                "2020-1-01T00:00:00Z",
                format!(" as {form}: cannot parse \"1-01T00:00:00Z\" as \"01\""),
            ),
            ("2020-01-01T00:00:00", format!(" as {form}: cannot parse \"\" as \"Z07:00\"")),
            ("2020-13-01T00:00:00Z", ": month out of range".to_owned()),
            ("2021-02-29T00:00:00Z", ": day out of range".to_owned()),
            ("2020-01-01T00:00:00Zé", ": extra text: \"\\xc3\\xa9\"".to_owned()),
        ] {
            let whole = bad.replace('é', "\\xc3\\xa9");
            assert_eq!(read(bad, false), Err(format!("parsing time \"{whole}\"{why}")));
        }
    }
}

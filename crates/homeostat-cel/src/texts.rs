//! Numbers, durations and moments as texts, and moments in time zones: in Go's forms, which
//! `kube-cel` does not have.

use std::sync::Arc;

use jiff::tz::{Offset, TimeZone};
use kube_cel::cel::Value;
use kube_cel::cel::objects::Map;

use super::values::string;

/// The text of a value whose text is not `kube-cel`'s.
pub(super) fn of(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) => of_float(*number),
        Value::Duration(duration) => {
            let nanos = duration.subsec_nanos();
            let seconds = duration.num_seconds();
            if nanos == 0 {
                return Some(format!("{seconds}s"));
            }
            let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
            let fraction = format!("{:09}", nanos.abs());
            format!("{sign}{}.{}s", seconds.abs(), fraction.trim_end_matches('0'))
        }
        Value::Timestamp(moment) => {
            let text = moment.to_rfc3339();
            text.strip_suffix("+00:00").map_or(text.clone(), |text| format!("{text}Z"))
        }
        _ => return None,
    })
}

/// The shortest text that is read as the same number; very large and very small ones with an
/// exponent.
fn of_float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) =
            exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    number.to_string()
}

/// A value whose durations and moments are texts.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Duration(_) | Value::Timestamp(_) => {
            of(value).map_or_else(|| value.clone(), |text| string(&text))
        }
        Value::List(items) => Value::List(Arc::new(items.iter().map(plain).collect())),
        Value::Map(map) => {
            let entries = map.map.iter().map(|(key, value)| (key.clone(), plain(value)));
            Value::Map(Map { map: Arc::new(entries.collect()) })
        }
        other => other.clone(),
    }
}

/// A part of a moment in a time zone: `getHours` and its like.
pub(super) fn in_zone(name: &str, moment: &Value, zone: &str) -> Result<Value, String> {
    let Value::Timestamp(moment) = moment else {
        return Err(super::operators::NO_OVERLOAD.to_owned());
    };
    let nanos = i128::from(moment.timestamp()) * 1_000_000_000
        + i128::from(moment.timestamp_subsec_nanos());
    let moment = jiff::Timestamp::from_nanosecond(nanos).map_err(|error| error.to_string())?;
    let local = moment.to_zoned(read_zone(zone)?);
    let number = match name {
        "getFullYear" => i64::from(local.year()),
        "getMonth" => i64::from(local.month()) - 1,
        "getDayOfYear" => i64::from(local.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(local.day()) - 1,
        "getDate" => i64::from(local.day()),
        "getDayOfWeek" => i64::from(local.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(local.hour()),
        "getMinutes" => i64::from(local.minute()),
        "getSeconds" => i64::from(local.second()),
        "getMilliseconds" => i64::from(local.millisecond()),
        _ => return Err(super::operators::NO_OVERLOAD.to_owned()),
    };
    Ok(Value::Int(number))
}

/// A zone by its name, or by how far it is from UTC: `-02:00`.
fn read_zone(zone: &str) -> Result<TimeZone, String> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return TimeZone::get(zone).map_err(|_| format!("unknown time zone {zone}"));
    };
    let unknown = |_| format!("unknown time zone {zone}");
    let hours: i32 = hours.parse().map_err(unknown)?;
    let minutes: i32 = minutes.parse().map_err(unknown)?;
    let minutes = if zone.starts_with('-') { -minutes } else { minutes };
    let offset = Offset::from_seconds(hours * 3600 + minutes * 60);
    offset.map(TimeZone::fixed).map_err(|error| error.to_string())
}

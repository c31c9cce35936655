//! The options of a log, as its query gives them: read and judged before anybody is asked.

use serde_json::json;

use crate::decode::moment;
use crate::field::{FieldError, Reason};
use crate::status::Status;

/// Refuses a query that asks for no log there could be. `pod` is whose log it is.
pub(super) fn check(pod: &str, query: &str) -> Result<(), Status> {
    let given = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let since_seconds = number(given("sinceSeconds"))?;
    let since_time = time(given("sinceTime"))?;
    let (tail, limit) = (number(given("tailLines"))?, number(given("limitBytes"))?);
    let mut errors = Vec::new();
    let mut at_least = |field: &str, number: Option<i64>, least: i64, why: &str| {
        if let Some(number) = number.filter(|number| *number < least) {
            errors.push(FieldError::new(field, Reason::Invalid, json!(number), why));
        }
    };
    at_least("tailLines", tail, 0, "must be greater than or equal to 0");
    at_least("limitBytes", limit, 1, "must be greater than 0");
    if !since_time {
        at_least("sinceSeconds", since_seconds, 1, "must be greater than 0");
    } else if since_seconds.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden("[]", why));
    }
    if given("stream").is_some() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid_kind("", "PodLogOptions", pod, &errors))
}

fn number(given: Option<String>) -> Result<Option<i64>, Status> {
    let Some(text) = given else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let digits = text.trim_start_matches(['+', '-']);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}

/// Whether there is a time, which older clients may leave empty.
fn time(given: Option<String>) -> Result<bool, Status> {
    let Some(text) = given.filter(|text| !text.is_empty() && text != "null") else {
        return Ok(false);
    };
    moment::read(&text, false).map(|_| true).map_err(Status::bad_request)
}

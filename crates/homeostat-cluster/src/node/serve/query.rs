//! The query of a request.

use std::fmt::Display;
use std::str::FromStr;

use http::StatusCode;

use super::Refusal;

#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        // Kubelets and API servers spell a switch as `1`, `true`, or the bare name.
        self.all(name).any(|value| matches!(value, "" | "1" | "true"))
    }

    pub(super) fn number<T: FromStr<Err: Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.all(name).next().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error| {
            (StatusCode::BAD_REQUEST, format!("{name}={text:?} cannot be read: {error}"))
        })
    }
}

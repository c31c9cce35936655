//! What a webhook sent back, read as client-go reads it: whichever media type it claims to have, it is
//! JSON if it begins like that, and YAML otherwise.

use serde_json::{Value, json};

use super::WebhookAnswer;
use crate::registry::named::not_an_object;
use crate::{decode, go};

/// The object in a reply.
///
/// # Errors
/// Why there is none, in the words of client-go.
pub(super) fn read(reply: &WebhookAnswer) -> Result<Value, String> {
    let WebhookAnswer { code, media_type, body } = reply;
    if !(200..=206).contains(code) {
        return Err(refusal(reply));
    }
    if body.is_empty() {
        return Err(format!(
            "0-length response with status code: {code} and content type: {media_type}"
        ));
    }
    object(body).map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))
}

fn object(body: &[u8]) -> Result<Value, String> {
    let value = if body.trim_ascii_start().starts_with(b"{") {
        serde_json::from_slice(body)
            .map_err(|error| go::syntax::complaint(body).unwrap_or_else(|| error.to_string()))?
    } else {
        decode::yaml(body).map_err(|error| error.to_string())?.value
    };
    match value {
        Value::Null => Ok(json!({})),
        value if !value.is_object() => Err(not_an_object(&value)),
        value => {
            let odd = ["apiVersion", "kind"].into_iter().find_map(|field| {
                let found = value.get(field)?;
                (!found.is_string() && !found.is_null()).then(|| (field, go::json_type(found)))
            });
            match odd {
                None => Ok(value),
                Some((field, found)) => Err(format!(
                    "json: cannot unmarshal {found} into Go struct field .{field} of type string"
                )),
            }
        }
    }
}

/// What is said of a code that is no success: a `Status` says it itself, and only texts are quoted.
fn refusal(reply: &WebhookAnswer) -> String {
    let status = object(&reply.body).unwrap_or_default();
    let text = |field: &str| status.get(field).and_then(Value::as_str).unwrap_or("");
    let is_status = matches!((text("apiVersion"), text("kind")), ("v1" | "", "Status" | ""));
    if is_status && text("status") == "Failure" {
        return text("message").to_owned();
    }
    let said = if reply.media_type.starts_with("text/") {
        String::from_utf8_lossy(&reply.body).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    match reply.code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if matches!(said.as_str(), "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        403 | 406 | 415 => return said,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => {
            let said = go::quoted(&said);
            return format!(
                "an error on the server ({said}) has prevented the request from succeeding"
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{WebhookAnswer, read};

    #[test]
    fn whatever_a_webhook_sends_is_an_object_or_told() {
        for body in [r#"{"kind": "A"}"#, "kind: A", "\n {\"kind\": \"A\"}"] {
            assert_eq!(read(&WebhookAnswer::json(200, body)).unwrap()["kind"], "A");
        }
        for (body, why) in [
            ("[1]", "cannot unmarshal array into Go value"),
            ("\"yes\"", "cannot unmarshal string into Go value"),
            ("nothing", "cannot unmarshal string into Go value"),
            ("{", "unexpected end of JSON input"),
            ("{\"kind\": 7}", "cannot unmarshal number into Go struct field .kind of type string"),
            ("", "0-length response with status code: 200 and content type: application/json"),
        ] {
            let error = read(&WebhookAnswer::json(200, body)).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_a_status_or_of_its_code() {
        let words = |media_type: &str, body: &'static str| WebhookAnswer {
            code: 500,
            media_type: media_type.to_owned(),
            body: body.into(),
        };
        let status =
            r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "own"}"#;
        for (answer, said) in [
            (words("application/json", status), "own"),
            (
                words("text/plain", " broken \n"),
                "an error on the server (\"broken\") has prevented the request from succeeding",
            ),
            (
                words("application/json", "broken"),
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (WebhookAnswer::json(409, ""), "the server reported a conflict"),
        ] {
            assert_eq!(read(&answer).unwrap_err(), said);
        }
    }
}

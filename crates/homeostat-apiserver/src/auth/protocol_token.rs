//! Bearer tokens among the protocols of a WebSocket: a browser can send no other header with it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Request;
use http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};

use crate::http::websocket;

const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// What a request brings among its protocols: a token, or something that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtocolToken(pub(crate) Option<String>);

/// Takes the token from among the protocols, where nobody else shall see it, and keeps it with the
/// request.
pub(crate) fn take<B>(request: &mut Request<B>) {
    if !request.headers().contains_key(SEC_WEBSOCKET_PROTOCOL)
        || !websocket::is_wanted(request.headers())
    {
        return;
    }
    let (tokens, others): (Vec<String>, Vec<String>) = websocket::protocols(request.headers())
        .into_iter()
        .partition(|protocol| protocol.starts_with(PREFIX));
    if tokens.is_empty() {
        return;
    }
    // There must be another protocol, for the answer to name.
    let token = match &tokens[..] {
        [token] if !others.is_empty() => decoded(&token[PREFIX.len()..]),
        _ => None,
    };
    request.extensions_mut().insert(ProtocolToken(token));
    match HeaderValue::from_str(&others.join(",")) {
        Ok(left) if !others.is_empty() => {
            request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, left);
        }
        _ => drop(request.headers_mut().remove(SEC_WEBSOCKET_PROTOCOL)),
    }
}

fn decoded(text: &str) -> Option<String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    String::from_utf8(bytes).ok().filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(protocols: &[&str]) -> (Option<ProtocolToken>, Option<String>) {
        let mut request = Request::builder().header("upgrade", "WebSocket");
        request = request.header("connection", "keep-alive, Upgrade");
        for protocol in protocols {
            request = request.header(SEC_WEBSOCKET_PROTOCOL, *protocol);
        }
        let mut request = request.body(()).unwrap();
        take(&mut request);
        let left = request.headers().get(SEC_WEBSOCKET_PROTOCOL);
        let left = left.map(|value| value.to_str().unwrap().to_owned());
        (request.extensions().get::<ProtocolToken>().cloned(), left)
    }

    #[test]
    fn a_token_among_the_protocols_is_taken_and_the_others_are_left() {
        let token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
        let secret = Some(ProtocolToken(Some("secret".to_owned())));
        assert_eq!(taken(&[token, "a, b"]), (secret, Some("a,b".to_owned())));
        assert_eq!(taken(&["a"]), (None, Some("a".to_owned())));
        let none = Some(ProtocolToken(None));
        assert_eq!(taken(&[token]).0, none, "no other protocol");
        assert_eq!(taken(&[token, token, "a"]).0, none, "two of them");
        assert_eq!(taken(&["base64url.bearer.authorization.k8s.io.!", "a"]).0, none);
    }
}

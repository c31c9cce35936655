//! From what a request shows to the user it is of.
//!
//! Every request has a user; a proof that does not hold is refused even where nobody asked for it.

use std::sync::Arc;

use http::header::{AUTHORIZATION, UPGRADE};
use http::{HeaderMap, Request};

use super::client_certificate::Shown;
use super::impersonate::impersonate;
use super::protocol_token::ProtocolToken;
use super::{Attributes, ISSUER, User};
use crate::http::Marks;
use crate::server::Shared;
use crate::status::Status;

/// Marks a request that came over the wire. Without it the caller is in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outside {
    /// The certificate of the connection.
    pub(crate) certificate: Option<Arc<Shown>>,
}

/// The user of a request.
fn authenticate<B>(shared: &Shared, request: &Request<B>) -> Result<Arc<User>, Status> {
    let outside = request.extensions().get::<Outside>();
    let shown = outside.and_then(|outside| outside.certificate.as_ref());
    let certified = shown.map_or(Ok(None), |shown| shown.user(shared.registry.env.now()));
    if let Ok(Some(user)) = certified {
        return Ok(user);
    }
    let among_protocols = request.extensions().get::<ProtocolToken>();
    match (bearer(request.headers()), outside) {
        (Some(token), _) => bearer_user(shared, token).ok_or_else(Status::unauthorized),
        (None, _) if among_protocols.is_some() => among_protocols
            .and_then(|token| bearer_user(shared, token.0.as_deref()?))
            .ok_or_else(Status::unauthorized),
        (None, None) => Ok(User::admin()),
        (None, Some(_)) => match certified {
            Ok(_) => Ok(User::anonymous()),
            Err(refused) => {
                tracing::debug!(refused, "a client certificate was refused");
                Err(Status::unauthorized())
            }
        },
    }
}

/// The user as whom a request is made, if that user may make it.
pub(crate) fn caller<B>(
    shared: &Shared,
    request: &Request<B>,
    marks: &mut Marks,
) -> Result<Arc<User>, Status> {
    let user = authenticate(shared, request)?;
    let allowed = authorize(shared, user, request, marks);
    marks.refused = allowed.is_err();
    allowed
}

fn authorize<B>(
    shared: &Shared,
    user: Arc<User>,
    request: &Request<B>,
    marks: &mut Marks,
) -> Result<Arc<User>, Status> {
    let rbac = &shared.registry.rbac;
    let user = impersonate(rbac, user, request.headers(), || Attributes::of(request))?;
    if !lasts(request) {
        marks.flow = shared.registry.flow(&user, || Attributes::of(request));
    }
    if user.is_master() {
        return Ok(user);
    }
    let wanted = Attributes::of(request);
    let mut all = vec![wanted];
    if opens_stream(&all[0]) && request.headers().contains_key(UPGRADE) {
        // A WebSocket begins with a GET, whatever is done through it.
        all.push(all[0].with_verb("create"));
    }
    for wanted in &all {
        let decision = rbac.authorize(&user, wanted);
        if !decision.allowed {
            return Err(wanted.forbidden(&user, &decision.reason));
        }
    }
    Ok(user)
}

/// Whether a request may last without being a watch: it belongs to no flow.
fn lasts<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    ["/attach", "/exec", "/log", "/portforward", "/proxy"].iter().any(|part| path.contains(part))
        && {
            let wanted = Attributes::of(request);
            wanted.verb == "proxy"
                || wanted.verb != "watch"
                    && wanted.path.is_empty()
                    && matches!(
                        wanted.subresource.as_str(),
                        "attach" | "exec" | "log" | "portforward" | "proxy"
                    )
        }
}

fn opens_stream(wanted: &Attributes) -> bool {
    wanted.verb == "get"
        && wanted.resource == "pods"
        && matches!(wanted.subresource.as_str(), "exec" | "attach" | "portforward")
}

fn bearer_user(shared: &Shared, token: &str) -> Option<Arc<User>> {
    if shared.identity().is_some_and(|identity| identity.is_admin(token)) {
        return Some(User::admin());
    }
    let registry = &shared.registry;
    match registry.tokens.user(registry, token, &[ISSUER.to_owned()]) {
        Ok((user, _)) => Some(Arc::new(user)),
        Err(refused) => {
            tracing::debug!(?refused, "a token was refused");
            None
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

//! Acting as somebody else, by headers, for those who may.
//!
//! The ways are tried in the order of kube-apiserver: those that also limit what may be done as
//! the other one, then the old verb `impersonate`, which limits nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::attributes::Attributes;
use super::rbac::Rbac;
use super::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, service_account_groups,
    split_service_account,
};
use crate::status::Status;

const AUTHENTICATION: &str = "authentication.k8s.io";
const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
const EXTRA: &str = "impersonate-extra-";

/// A way to act as somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One that also asks whether the request may be made in this way.
    Constrained(&'static str),
    /// The verb `impersonate` alone.
    Unconstrained,
}

/// The user that the headers of a request name: `user` unless it asks to be somebody else.
pub(crate) fn impersonate(
    rbac: &Rbac,
    user: Arc<User>,
    headers: &HeaderMap,
    wanted: impl FnOnce() -> Attributes,
) -> Result<Arc<User>, Status> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(user);
    }
    let Some(other) = named(headers)? else { return Ok(user) };
    let wanted = wanted();
    let mut first = None;
    for way in ways(&user, &other) {
        match check(rbac, &user, &other, way, &wanted) {
            Ok(()) => return Ok(Arc::new(complete(&other, way))),
            Err(status) => first = first.or(Some(status)),
        }
    }
    Err(first.unwrap_or_else(Status::unauthorized))
}

/// The user that the headers name.
fn named(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let groups = headers.get_all("impersonate-group").iter();
    let groups: Vec<String> =
        groups.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
        let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
        extra.entry(key).or_default().push(value.to_str().unwrap_or_default().to_owned());
    }
    let user = User { name: text("impersonate-user"), uid: text("impersonate-uid"), groups, extra };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups =
        if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs = user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values)));
        format!("map[string][]string{{{}}}", pairs.collect::<Vec<_>>().join(", "))
    };
    Err(Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}} without impersonating a user name",
        user.uid
    )))
}

/// The ways that fit, in order.
fn ways(user: &User, other: &User) -> Vec<Way> {
    let only_name = other.uid.is_empty() && other.groups.is_empty() && other.extra.is_empty();
    let mut ways = Vec::new();
    match (node_name(&other.name), split_service_account(&other.name)) {
        (Some(node), _) if only_name => {
            let own = user.extra.get("authentication.kubernetes.io/node-name");
            let is_account = split_service_account(&user.name).is_some();
            if is_account && own.is_some_and(|names| names[..] == [node.to_owned()]) {
                ways.push(Way::Constrained("associated-node"));
            }
            ways.push(Way::Constrained("arbitrary-node"));
        }
        (_, Some(_)) if only_name => ways.push(Way::Constrained("serviceaccount")),
        (None, None) => ways.push(Way::Constrained("user-info")),
        _ => {}
    }
    ways.push(Way::Unconstrained);
    ways
}

fn node_name(user: &str) -> Option<&str> {
    let name = user.strip_prefix(NODE)?;
    crate::validate::name::dns_subdomain(name).is_empty().then_some(name)
}

/// Whether `user` may be `other` in that way, for what is wanted.
fn check(
    rbac: &Rbac,
    user: &User,
    other: &User,
    way: Way,
    wanted: &Attributes,
) -> Result<(), Status> {
    let allow = |asked: &Attributes| match rbac.authorize(user, asked) {
        decision if decision.allowed => Ok(()),
        decision => Err(asked.forbidden(user, &decision.reason)),
    };
    let (verb, group) = match way {
        Way::Constrained(mode) => {
            allow(&wanted.with_verb(format!("impersonate-on:{mode}:{}", wanted.verb)))?;
            (format!("impersonate:{mode}"), AUTHENTICATION)
        }
        Way::Unconstrained => ("impersonate".to_owned(), ""),
    };
    let asked = |group: &str, resource: &str, name: &str| Attributes {
        verb: verb.clone(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let mut who = asked(group, "users", &other.name);
    if let (Way::Constrained(mode), Some(node)) = (way, node_name(&other.name)) {
        let name = if mode == "associated-node" { "*" } else { node };
        who = asked(group, "nodes", name);
    } else if let Some((namespace, name)) = split_service_account(&other.name) {
        who = asked(group, "serviceaccounts", name);
        who.namespace = namespace.to_owned();
    }
    allow(&who)?;
    if !other.uid.is_empty() {
        allow(&asked(AUTHENTICATION, "uids", &other.uid))?;
    }
    for member in &other.groups {
        let asked = asked(group, "groups", member);
        if way != Way::Unconstrained && member == MASTERS {
            let why = "impersonating the system:masters group is not allowed";
            return Err(asked.forbidden(user, why));
        }
        allow(&asked)?;
    }
    for (key, values) in &other.extra {
        for value in values {
            let mut asked = asked(AUTHENTICATION, "userextras", value);
            asked.subresource.clone_from(key);
            allow(&asked)?;
        }
    }
    Ok(())
}

/// The user with the groups that everybody of that sort is in.
fn complete(other: &User, way: Way) -> User {
    let mut user = other.clone();
    if user.groups.is_empty() {
        if let Some((namespace, _)) = split_service_account(&user.name) {
            user.groups = service_account_groups(namespace).into();
        } else if way != Way::Unconstrained && node_name(&user.name).is_some() {
            user.join(NODES);
        }
    }
    if user.name == ANONYMOUS {
        user.join(UNAUTHENTICATED);
    } else if !user.groups.iter().any(|group| group == UNAUTHENTICATED) {
        user.join(AUTHENTICATED);
    }
    user
}

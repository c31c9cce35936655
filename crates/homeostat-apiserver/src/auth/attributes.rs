//! What a request wants to do, in the terms that rules speak of: a verb, and a resource or a path.
//!
//! It is read from the URL alone, before anybody knows whether such a resource exists.

use std::borrow::Cow;

use http::{Method, Request};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::User;
use crate::registry::options;
use crate::status::Status;

/// A verb and what it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Empty for the cluster.
    pub(crate) namespace: String,
    /// Empty for collections.
    pub(crate) name: String,
    /// Empty when the request is about a resource.
    pub(crate) path: String,
}

impl Attributes {
    /// What the request wants.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or("");
        Self::resource(request.method(), path, query).unwrap_or_else(|| Self {
            verb: request.method().as_str().to_lowercase(),
            path: percent_decode_str(path).decode_utf8_lossy().into_owned(),
            ..Self::default()
        })
    }

    /// The resource a path is about, by the one grammar that all of them follow.
    fn resource(method: &Method, path: &str, query: &str) -> Option<Self> {
        let parts: Vec<Cow<'_, str>> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy())
            .collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        let (group, mut parts) = match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => return None,
        };
        let mut verb = match *method {
            Method::POST => "create",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        };
        if let [special @ ("watch" | "proxy"), rest @ ..] = parts
            && !rest.is_empty()
        {
            verb = special;
            parts = rest;
        }
        let mut namespace = "";
        if let ["namespaces", name, rest @ ..] = parts {
            namespace = name;
            if !rest.is_empty() && !matches!(rest[0], "status" | "finalize") {
                parts = rest;
            }
        }
        let part = |index: usize| parts.get(index).copied().unwrap_or("");
        let mut name = part(1).to_owned();
        if name.is_empty() && verb == "get" {
            let (watch, chosen) = read_query(query);
            verb = if watch { "watch" } else { "list" };
            name = chosen;
        } else if name.is_empty() && verb == "delete" {
            verb = "deletecollection";
        }
        Some(Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: part(0).to_owned(),
            subresource: part(2).to_owned(),
            namespace: namespace.to_owned(),
            name,
            path: String::new(),
        })
    }

    /// The resource with its subresource, as rules name it.
    pub(crate) fn whole_resource(&self) -> Cow<'_, str> {
        if self.subresource.is_empty() {
            Cow::Borrowed(&self.resource)
        } else {
            Cow::Owned(format!("{}/{}", self.resource, self.subresource))
        }
    }

    /// The same with another verb.
    pub(crate) fn with_verb(&self, verb: impl Into<String>) -> Self {
        Self { verb: verb.into(), ..self.clone() }
    }

    /// The refusal for a user who may not; `reason` is the authorizer's, often empty.
    pub(crate) fn forbidden(&self, user: &User, reason: &str) -> Status {
        let more = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let Self { verb, group, resource, namespace, name, path, .. } = self;
        let user = &user.name;
        if !path.is_empty() {
            let words = format!("forbidden: User {user:?} cannot {verb} path {path:?}{more}");
            let mut status = Status::new(403, "Forbidden", words);
            status.details = Some(Box::new(json!({})));
            return status;
        }
        let scope = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {namespace:?}")
        };
        let dot = if group.is_empty() { "" } else { "." };
        let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let words = format!(
            "{resource}{dot}{group}{named} is forbidden: User {user:?} cannot {verb} resource \
             {:?} in API group {group:?} {scope}{more}",
            self.whole_resource()
        );
        let mut details = serde_json::Map::new();
        for (field, value) in [("name", name), ("group", group), ("kind", resource)] {
            if !value.is_empty() {
                details.insert(field.to_owned(), value.clone().into());
            }
        }
        let mut status = Status::new(403, "Forbidden", words);
        status.details = Some(Box::new(details.into()));
        status
    }
}

/// Whether the query asks for a watch, and the one name that its field selector leaves. It is read as
/// the verb reads it, by the same code: what is judged here is what is done there. A query that cannot
/// be read leaves every name.
fn read_query(query: &str) -> (bool, String) {
    let query = options::read(query);
    let chosen = options::chosen_name(&query).filter(|name| is_segment(name));
    (options::flag(&query, "watch"), chosen.unwrap_or_default())
}

/// Whether a path can hold the name.
fn is_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str) -> String {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let a = Attributes::of(&request);
        if !a.path.is_empty() {
            return format!("{} {}", a.verb, a.path);
        }
        format!("{} {}.{} {}/{}", a.verb, a.whole_resource(), a.group, a.namespace, a.name)
    }

    #[test]
    fn a_url_says_what_a_request_wants() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/namespaces/a/pods", "list pods. a/"),
            ("GET", "/api/v1/pods?watch=1", "watch pods. /"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch pods. a/b"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Db", "list pods. /b"),
            ("GET", "/api/v1/pods?fieldSelector=&fieldSelector=metadata.name%3Db", "list pods. /"),
            ("GET", "/api/v1/pods?watch=0&watch=1", "list pods. /"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3D%3Db", "list pods. /b"),
            ("GET", r"/api/v1/pods?fieldSelector=metadata.name%3Db%5C%2Cc", "list pods. /b,c"),
            ("GET", "/api/v1/pods?fieldSelector=%20metadata.name%3Db", "list pods. /"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Db%3Dc", "list pods. /"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3D..", "list pods. /"),
            ("GET", "/api/v1/pods?limit=x&fieldSelector=metadata.name%3Db", "list pods. /"),
            ("GET", "/api/v1/watch/pods?fieldSelector=metadata.name%3Db", "watch pods. /"),
            ("HEAD", "/api/v1/namespaces/a/pods/b", "get pods. a/b"),
            ("POST", "/api/v1/namespaces/a/pods/b/eviction", "create pods/eviction. a/b"),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection deployments.apps a/",
            ),
            ("GET", "/api/v1/namespaces/a", "get namespaces. a/a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize. a/a"),
            ("PATCH", "/apis/x.io/v1/ys/z", "patch ys.x.io /z"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("GET", "/healthz/ping", "get /healthz/ping"),
        ] {
            assert_eq!(of(method, uri), expected, "{method} {uri}");
        }
    }
}

//! Requests that a node answers: logs, exec, attach and port-forward; proxies begin here, too.
//!
//! They are passed on unread, upgrades included; only the path changes into a kubelet's, and nobody
//! hears who asks.

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::body::Body;
use super::connect::Options;
use super::route::ResourcePath;
use super::{answer, log_options, proxy};
use crate::auth::User;
use crate::registry::Target;
use crate::server::Shared;
use crate::status::Status;

/// The way to a node's agent.
pub trait NodeConnector: Send + Sync {
    /// Passes a request to the agent of `node`. The path is a kubelet's
    /// (`/containerLogs/{namespace}/{pod}/{container}`, `/exec/…`, `/attach/…`,
    /// `/portForward/{namespace}/{pod}`); hyper's `OnUpgrade` travels in the extensions.
    fn call(&self, node: &str, request: Request<Body>) -> BoxFuture<'static, Response<Body>>;
}

/// Whether the path is a node's business.
pub(crate) fn is_for_node(path: &ResourcePath) -> bool {
    path.group.is_empty()
        && matches!(
            (path.plural.as_str(), path.subresource.as_str()),
            ("pods", "log" | "exec" | "attach" | "portforward")
                | ("pods" | "nodes" | "services", "proxy")
        )
}

/// Passes the request on.
pub(crate) async fn forward(
    shared: &Arc<Shared>,
    user: &Arc<User>,
    target: &Target,
    path: &ResourcePath,
    mut request: Request<Body>,
) -> Result<Response<Body>, Status> {
    if path.subresource == "log" {
        log_options::check(&target.name, request.uri().query().unwrap_or(""))?;
    }
    let query = admit(shared, user, target, path, request.uri().query().unwrap_or("")).await?;
    proxy::hide_the_caller(request.headers_mut());
    if path.subresource == "proxy" {
        return proxy::forward(shared, target, path, &query, request).await;
    }
    let pod = shared.registry.get(target)?.value();
    let node = text(&pod, "/spec/nodeName").to_owned();
    let (container, rest) = take_container(&query);
    if node.is_empty() && path.subresource == "log" {
        // A Pod that never ran has said nothing yet.
        choose_container(&pod, container.as_deref())?;
        let mut nothing = answer::plain(204, "");
        nothing.headers_mut().remove(http::header::CONTENT_TYPE);
        return Ok(nothing);
    }
    if node.is_empty() {
        let words = format!("pod {} does not have a host assigned", target.name);
        return Err(Status::bad_request(words));
    }
    let verb = match path.subresource.as_str() {
        "log" => "containerLogs",
        "portforward" => "portForward",
        other => other,
    };
    let place = format!("/{verb}/{}/{}", target.namespace, target.name);
    let place = if verb == "portForward" {
        place
    } else {
        format!("{place}/{}", choose_container(&pod, container.as_deref())?)
    };
    rewrite(&mut request, &place, &rest)?;
    let connector = shared.node_connector().ok_or_else(|| unanswered(&node))?;
    Ok(connector.call(&node, request).await)
}

/// The refusal for a node that nobody answers for.
pub(super) fn unanswered(node: &str) -> Status {
    Status::unavailable(format!("no agent answers for node {node:?}"))
}

/// The query of the request as admission lets it pass; logs are read, which is not its business.
async fn admit(
    shared: &Arc<Shared>,
    user: &Arc<User>,
    target: &Target,
    path: &ResourcePath,
    query: &str,
) -> Result<String, Status> {
    let part = path.subresource.as_str();
    let rest = percent_decode_str(&path.rest).decode_utf8_lossy();
    let Some(options) = Options::read(target, part, query, &rest) else {
        return Ok(query.to_owned());
    };
    let is_dry = |(name, _): (Cow<'_, str>, Cow<'_, str>)| name == "dryRun";
    if form_urlencoded::parse(query.as_bytes()).any(is_dry) {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    let admitted = options.admitted(&shared.registry, user, target, part).await?;
    Ok(admitted.query(query))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn rewrite(request: &mut Request<Body>, path: &str, query: &str) -> Result<(), Status> {
    let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    *request.uri_mut() =
        uri.parse::<Uri>().map_err(|error| Status::bad_request(error.to_string()))?;
    Ok(())
}

/// The `container` parameter, and the query without it.
fn take_container(query: &str) -> (Option<String>, String) {
    let mut container = None;
    let mut rest = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name == "container" {
            container = Some(value.into_owned());
        } else {
            rest.append_pair(&name, &value);
        }
    }
    (container.filter(|name| !name.is_empty()), rest.finish())
}

/// The container meant: the one named, or the only one.
fn choose_container(pod: &Value, named: Option<&str>) -> Result<String, Status> {
    let names = |field: &str| -> Vec<&str> {
        let list = pod.pointer(&format!("/spec/{field}")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|item| item.get("name")?.as_str()).collect()
    };
    let (containers, init) = (names("containers"), names("initContainers"));
    let pod_name = text(pod, "/metadata/name");
    match (named, containers.as_slice()) {
        (Some(name), _) => {
            if containers.contains(&name)
                || init.contains(&name)
                || names("ephemeralContainers").contains(&name)
            {
                return Ok(name.to_owned());
            }
            Err(Status::bad_request(format!("container {name} is not valid for pod {pod_name}")))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, many) => {
            let mut words = format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                many.join(" ")
            );
            if !init.is_empty() {
                words += &format!(" or one of the init containers: [{}]", init.join(" "));
            }
            Err(Status::bad_request(words))
        }
    }
}

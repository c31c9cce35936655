//! The environment and the command line of a container.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, Pod};

use super::{Problem, Sources, downward};
use crate::node::image::Image;

/// What of the node a container may know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// The Pod's own address.
    pub pod_ip: String,
    /// The node's address.
    pub host_ip: String,
    /// Processors of the node.
    pub cpus: f64,
    /// Bytes of memory of the node.
    pub memory: f64,
}

/// Every variable of a container, later ones replacing earlier ones; `links` lead to Services.
///
/// # Errors
/// When a key or an object that is not optional is missing.
pub fn environment(
    pod: &Pod,
    container: &Container,
    image: &Image,
    sources: &Sources,
    place: &Place,
    links: &[(String, String)],
) -> Result<Vec<(String, String)>, Problem> {
    let mut all = Variables::default();
    all.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    all.set("HOME", "/root");
    all.set("HOSTNAME", &hostname(pod));
    all.set("POD_IP", &place.pod_ip);
    all.set("HOST", &place.pod_ip);
    for (name, value) in image.env.iter().chain(links) {
        all.set(name, value);
    }
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        if let Some(reference) = &from.config_map_ref
            && let Some(map) =
                sources.config_map(&reference.name, reference.optional.unwrap_or(false))?
        {
            for (key, value) in map.data.iter().flatten() {
                all.set(&format!("{prefix}{key}"), value);
            }
        }
        if let Some(reference) = &from.secret_ref
            && let Some(secret) =
                sources.secret(&reference.name, reference.optional.unwrap_or(false))?
        {
            for (key, value) in secret.data.iter().flatten() {
                all.set(&format!("{prefix}{key}"), &String::from_utf8_lossy(&value.0));
            }
        }
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value(pod, container, variable, &all, sources, place)? {
            all.set(&variable.name, &value);
        }
    }
    Ok(all.0.into_iter().collect())
}

/// The program and its arguments: the container's, or else the image's.
#[must_use]
pub fn command(container: &Container, image: &Image, env: &[(String, String)]) -> Vec<String> {
    let variables = Variables(env.iter().cloned().collect());
    let expand = |words: &Vec<String>| -> Vec<String> {
        words.iter().map(|word| variables.expand(word)).collect()
    };
    let own = container.command.as_ref().filter(|words| !words.is_empty());
    let args = container.args.as_ref().filter(|words| !words.is_empty());
    let mut argv = own.map_or_else(|| image.entrypoint.clone(), expand);
    match (own, args) {
        (_, Some(args)) => argv.extend(expand(args)),
        (None, None) => argv.extend(image.command.iter().cloned()),
        (Some(_), None) => {}
    }
    argv
}

/// The Pod's host name: its own wish, or its name.
pub(crate) fn hostname(pod: &Pod) -> String {
    let wish = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let mut name = wish.or_else(|| pod.metadata.name.clone()).unwrap_or_default();
    name.truncate(63);
    name
}

fn value(
    pod: &Pod,
    container: &Container,
    variable: &EnvVar,
    so_far: &Variables,
    sources: &Sources,
    place: &Place,
) -> Result<Option<String>, Problem> {
    let Some(from) = &variable.value_from else {
        return Ok(Some(so_far.expand(variable.value.as_deref().unwrap_or_default())));
    };
    let EnvVarSource { config_map_key_ref, field_ref, resource_field_ref, secret_key_ref, .. } =
        from;
    if let Some(field) = field_ref {
        return downward::field(pod, field, place).map(Some);
    }
    if let Some(field) = resource_field_ref {
        return downward::resource(pod, Some(container), field, place).map(Some);
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(at) = config_map_key_ref {
        let optional = at.optional.unwrap_or(false);
        let map = sources.config_map(&at.name, optional)?;
        let found = map.and_then(|map| map.data.as_ref()?.get(&at.key)).cloned();
        return keyed("ConfigMap", namespace, &at.name, &at.key, found, optional);
    }
    if let Some(at) = secret_key_ref {
        let optional = at.optional.unwrap_or(false);
        let secret = sources.secret(&at.name, optional)?;
        let found = secret.and_then(|secret| secret.data.as_ref()?.get(&at.key));
        let found = found.map(|value| String::from_utf8_lossy(&value.0).into_owned());
        return keyed("Secret", namespace, &at.name, &at.key, found, optional);
    }
    Ok(Some(String::new()))
}

fn keyed(
    kind: &str,
    namespace: &str,
    name: &str,
    key: &str,
    found: Option<String>,
    optional: bool,
) -> Result<Option<String>, Problem> {
    if found.is_none() && !optional {
        return Err(Problem(format!("couldn't find key {key} in {kind} {namespace}/{name}")));
    }
    Ok(found)
}

#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn of(env: &[(String, String)]) -> Self {
        Self(env.iter().cloned().collect())
    }

    /// Replaces `$(NAME)` where the name is known; `$$` is a dollar sign.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some((name, after)) =
                rest.strip_prefix('(').and_then(|inner| inner.split_once(')'))
                && let Some(value) = self.0.get(name)
            {
                out.push_str(value);
                rest = after;
            } else {
                out.push('$');
            }
        }
        out + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_replaced_once_and_dollars_can_be_escaped() {
        let mut all = Variables::default();
        all.set("A", "x$(B)");
        for (text, expanded) in
            [("$(A)", "x$(B)"), ("$$(A)", "$(A)"), ("$(C) $", "$(C) $"), ("-$(A)-$(", "-x$(B)-$(")]
        {
            assert_eq!(all.expand(text), expanded);
        }
    }

    #[test]
    fn a_missing_key_is_named_unless_it_is_optional() {
        let container = |optional: bool| -> Container {
            let from = json!({ "secretKeyRef": { "name": "s", "key": "k", "optional": optional } });
            serde_json::from_value(
                json!({ "name": "a", "env": [{ "name": "X", "valueFrom": from }] }),
            )
            .unwrap()
        };
        let pod: Pod = serde_json::from_value(json!({ "metadata": { "namespace": "n" } })).unwrap();
        let resolve = |container: &Container, sources: &Sources| {
            environment(&pod, container, &Image::default(), sources, &Place::default(), &[])
        };
        let mut sources = Sources::default();
        let said = resolve(&container(false), &sources).unwrap_err().to_string();
        assert_eq!(said, "secret \"s\" not found");
        assert!(resolve(&container(true), &sources).unwrap().iter().all(|(name, _)| name != "X"));
        sources.secrets.insert("s".into(), Default::default());
        let said = resolve(&container(false), &sources).unwrap_err().to_string();
        assert_eq!(said, "couldn't find key k in Secret n/s");
    }
}

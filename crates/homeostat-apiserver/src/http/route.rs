//! From a path to what it names. Paths follow one grammar; no resource has a route of its own.

use percent_encoding::percent_decode_str;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/G`
    Group(String),
    /// `/api/V`, `/apis/G/V`
    Resources { group: String, version: String },
    /// A collection, an object, or what lies below an object.
    Resource(ResourcePath),
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz`, whole or one of their checks.
    Health { root: String, check: String },
    /// `/metrics`
    Metrics,
    /// `/openapi/v2`
    Swagger,
    /// `/openapi/v3`
    OpenApiIndex,
    /// `/openapi/v3/…`
    OpenApi(String),
    /// `/openid/v1/jwks`
    TokenKeys,
    /// `/.well-known/openid-configuration`
    TokenIssuer,
    /// `/`
    Root,
    /// Anything else.
    Unknown,
}

/// A path of the form `…/namespaces/N/plural/name/subresource/rest`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty for cluster-scoped paths and lists over all namespaces.
    pub(crate) namespace: String,
    pub(crate) plural: String,
    /// Empty for collections.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// What follows a proxy subresource, with its leading slash and as it was sent: whoever it is
    /// for may tell an encoded character from a plain one.
    pub(crate) rest: String,
    /// The old form of watching: `/api/v1/watch/…`.
    pub(crate) watch: bool,
}

/// Reads a path.
pub(crate) fn parse(path: &str) -> Route {
    let parts: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    match words.as_slice() {
        [""] => Route::Root,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => {
            Route::Resources { group: String::new(), version: (*version).to_owned() }
        }
        ["apis", group, version] => {
            Route::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["api", version, rest @ ..] => resource("", version, rest, path),
        ["apis", group, version, rest @ ..] => resource(group, version, rest, path),
        ["version"] => Route::Version,
        [root @ ("healthz" | "livez" | "readyz"), check @ ..] => {
            Route::Health { root: (*root).to_owned(), check: check.join("/") }
        }
        ["metrics"] => Route::Metrics,
        ["openid", "v1", "jwks"] => Route::TokenKeys,
        [".well-known", "openid-configuration"] => Route::TokenIssuer,
        ["openapi", "v2"] => Route::Swagger,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", ..] => Route::OpenApi(parts[2..].join("/")),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, parts: &[&str], path: &str) -> Route {
    let (watch, parts) = match parts {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        parts => (false, parts),
    };
    let (namespace, parts) = match parts {
        // Namespaces themselves: their subresources are not resources inside them.
        ["namespaces", _, "status" | "finalize"] | ["namespaces"] | ["namespaces", _] => {
            ("", parts)
        }
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        parts => ("", parts),
    };
    let (plural, name, subresource, rest) = match parts {
        [plural] => (*plural, "", "", String::new()),
        [plural, name] => (*plural, *name, "", String::new()),
        [plural, name, subresource] => (*plural, *name, *subresource, trailing_slash(path)),
        [plural, name, "proxy", rest @ ..] => {
            let sent: Vec<&str> = path.trim_matches('/').split('/').collect();
            let rest = sent[sent.len() - rest.len()..].join("/");
            (*plural, *name, "proxy", format!("/{rest}{}", trailing_slash(path)))
        }
        _ => return Route::Unknown,
    };
    Route::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: plural.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        rest,
        watch,
    })
}

fn trailing_slash(path: &str) -> String {
    if path.ends_with('/') { "/".to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ResourcePath {
        match parse(text) {
            Route::Resource(path) => path,
            other => panic!("{text} is {other:?}"),
        }
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        let pods = path("/api/v1/namespaces/default/pods");
        assert_eq!((pods.namespace.as_str(), pods.plural.as_str()), ("default", "pods"));
        let scale = path("/apis/apps/v1/namespaces/a/deployments/web/scale");
        assert_eq!((scale.group.as_str(), scale.subresource.as_str()), ("apps", "scale"));
        let everywhere = path("/api/v1/pods");
        assert_eq!((everywhere.namespace.as_str(), everywhere.name.as_str()), ("", ""));
    }

    #[test]
    fn a_namespace_is_an_object_until_something_follows_it() {
        assert_eq!(path("/api/v1/namespaces/a").name, "a");
        assert_eq!(path("/api/v1/namespaces/a/finalize").subresource, "finalize");
        assert_eq!(path("/api/v1/namespaces/a/secrets").namespace, "a");
    }

    #[test]
    fn a_proxy_keeps_the_path_below_it() {
        let proxy = path("/api/v1/namespaces/a/pods/web:80/proxy/x/y/");
        assert_eq!((proxy.name.as_str(), proxy.rest.as_str()), ("web:80", "/x/y/"));
        let proxy = path("/api/v1/namespaces/a/pods/web%3A80/proxy/x%3F/%25");
        assert_eq!((proxy.name.as_str(), proxy.rest.as_str()), ("web:80", "/x%3F/%25"));
    }

    #[test]
    fn names_are_percent_decoded() {
        assert_eq!(path("/api/v1/namespaces/a/secrets/b%3Ac").name, "b:c");
    }
}

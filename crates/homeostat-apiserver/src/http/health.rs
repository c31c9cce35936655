//! Whether the server works: `/healthz`, `/livez` and `/readyz`, whole or check by check, in the
//! words of kube-apiserver, which probes and people know.

use std::fmt::Write as _;

use http::header::{HeaderName, HeaderValue};
use http::{Request, Response};

use super::answer;
use super::body::Body;
use crate::registry::Registry;

/// One thing that must be so.
struct Check {
    name: &'static str,
    /// Asked only by those who want to know whether to send requests here.
    only_ready: bool,
    holds: fn(&Registry) -> Result<(), String>,
}

/// The checks, under the names of kube-apiserver's that ask the same. What a server is made with is
/// there before it answers anything; the store alone can fail later.
const CHECKS: [Check; 6] = [
    Check { name: "ping", only_ready: false, holds: always },
    Check { name: "etcd", only_ready: false, holds: store_works },
    Check { name: "etcd-readiness", only_ready: true, holds: store_works },
    Check { name: "poststarthook/crd-informer-synced", only_ready: false, holds: always },
    Check { name: "poststarthook/rbac/bootstrap-roles", only_ready: false, holds: always },
    Check {
        name: "poststarthook/scheduling/bootstrap-system-priority-classes",
        only_ready: false,
        holds: always,
    },
];

fn always(_: &Registry) -> Result<(), String> {
    Ok(())
}

fn store_works(registry: &Registry) -> Result<(), String> {
    if registry.store.works() { Ok(()) } else { Err("the store has failed".to_owned()) }
}

/// Answers for a path below `root`; `""` asks for everything.
pub(crate) fn respond(
    registry: &Registry,
    root: &str,
    check: &str,
    request: &Request<Body>,
) -> Response<Body> {
    let mut checks = CHECKS.iter().filter(|check| root == "readyz" || !check.only_ready);
    if check.is_empty() {
        return whole(registry, root, checks, request.uri().query().unwrap_or(""));
    }
    match checks.find(|known| known.name == check).map(|known| (known.holds)(registry)) {
        None => answer::text(404, "404 page not found\n"),
        Some(Ok(())) => answer::text(200, "ok"),
        Some(Err(why)) => answer::text(500, format!("internal server error: {why}\n")),
    }
}

fn whole<'a>(
    registry: &Registry,
    root: &str,
    checks: impl Iterator<Item = &'a Check>,
    query: &str,
) -> Response<Body> {
    let (mut verbose, mut excluded) = (false, std::collections::BTreeSet::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "verbose" => verbose = true,
            "exclude" => drop(excluded.insert(value.into_owned())),
            _ => {}
        }
    }
    let (mut lines, mut failed) = (String::new(), false);
    for check in checks {
        let name = check.name;
        let line = if excluded.remove(name) {
            format!("[+]{name} excluded: ok")
        } else if let Err(why) = (check.holds)(registry) {
            tracing::warn!(check = name, why, "a check of health failed");
            failed = true;
            format!("[-]{name} failed: reason withheld")
        } else {
            format!("[+]{name} ok")
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        let _ =
            writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    let mut response = if failed {
        answer::text(500, format!("{lines}{root} check failed\n"))
    } else if verbose {
        answer::text(200, format!("{lines}{root} check passed\n"))
    } else {
        answer::text(200, "ok")
    };
    let sniffing = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(sniffing, HeaderValue::from_static("nosniff"));
    response
}

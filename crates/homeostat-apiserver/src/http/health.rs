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
    asked: Asked,
    holds: fn(&Registry) -> Result<(), String>,
}

/// By whom a check is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// By everybody.
    Always,
    /// By those who want to know whether the process is well, but not whether it is ready.
    Alive,
    /// By those who want to know whether to send requests here.
    Ready,
}

impl Check {
    const fn holding(name: &'static str) -> Self {
        Self { name, asked: Asked::Always, holds: always }
    }

    fn is_asked_by(&self, root: &str) -> bool {
        match self.asked {
            Asked::Always => true,
            Asked::Alive => root != "readyz",
            Asked::Ready => root == "readyz",
        }
    }
}

/// The checks of kube-apiserver 1.36 as it is started without further options, in its order. What
/// they ask for is there here before a server answers anything, or is never needed; the store alone
/// can fail later.
const CHECKS: [Check; 37] = [
    Check::holding("ping"),
    Check::holding("log"),
    Check { name: "loopback-serving-certificate", asked: Asked::Alive, holds: always },
    Check { name: "etcd", asked: Asked::Always, holds: store_works },
    Check { name: "etcd-readiness", asked: Asked::Ready, holds: store_works },
    Check { name: "informer-sync", asked: Asked::Ready, holds: always },
    Check::holding("poststarthook/start-apiserver-admission-initializer"),
    Check::holding("poststarthook/generic-apiserver-start-informers"),
    Check::holding("poststarthook/priority-and-fairness-config-consumer"),
    Check::holding("poststarthook/priority-and-fairness-filter"),
    Check::holding("poststarthook/storage-object-count-tracker-hook"),
    Check::holding("poststarthook/start-apiextensions-informers"),
    Check::holding("poststarthook/start-apiextensions-controllers"),
    Check::holding("poststarthook/crd-informer-synced"),
    Check::holding("poststarthook/start-system-namespaces-controller"),
    Check::holding("poststarthook/peer-endpoint-reconciler-controller"),
    Check::holding("poststarthook/start-cluster-authentication-info-controller"),
    Check::holding("poststarthook/start-kube-apiserver-identity-lease-controller"),
    Check::holding("poststarthook/start-kube-apiserver-identity-lease-garbage-collector"),
    Check::holding("poststarthook/storage-readiness"),
    Check::holding("poststarthook/start-legacy-token-tracking-controller"),
    Check::holding("poststarthook/start-service-ip-repair-controllers"),
    Check::holding("poststarthook/rbac/bootstrap-roles"),
    Check::holding("poststarthook/scheduling/bootstrap-system-priority-classes"),
    Check::holding("poststarthook/priority-and-fairness-config-producer"),
    Check::holding("poststarthook/bootstrap-controller"),
    Check::holding("poststarthook/start-kubernetes-service-cidr-controller"),
    Check::holding("poststarthook/start-kube-aggregator-informers"),
    Check::holding("poststarthook/apiservice-status-local-available-controller"),
    Check::holding("poststarthook/apiservice-status-remote-available-controller"),
    Check::holding("poststarthook/apiservice-registration-controller"),
    Check::holding("poststarthook/apiservice-discovery-controller"),
    Check::holding("poststarthook/kube-apiserver-autoregistration"),
    Check::holding("autoregister-completion"),
    Check::holding("poststarthook/apiservice-openapi-controller"),
    Check::holding("poststarthook/apiservice-openapiv3-controller"),
    Check { name: "shutdown", asked: Asked::Ready, holds: always },
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
    let mut checks = CHECKS.iter().filter(|check| check.is_asked_by(root));
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

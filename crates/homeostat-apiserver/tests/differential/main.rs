//! The same requests to this server and to kube-apiserver: the answers must not differ.
//!
//! Requests are data: `areas/*.http`, read by [`script`]. A *sequence* is a list of steps in a
//! namespace of its own. Both sides get each step; what cannot be equal (uids, revisions, times,
//! generated names) is replaced by its role in [`normal`]; the rest is compared in [`difference`].
//! Differences that are accepted stand in [`known`], with the reason. This server is reached in-process
//! by one half of the sequences and over TLS by the other.

#![expect(clippy::unwrap_used, reason = "a side that cannot be reached ends the test")]

#[path = "../converter/mod.rs"]
mod converter;
#[path = "../dice/mod.rs"]
mod dice;
mod difference;
mod documents;
mod faults;
mod known;
mod live_watch;
mod normal;
mod random;
mod reached;
mod reviewer;
mod script;
mod side;
#[path = "../webhook_server/mod.rs"]
mod webhook_server;

use std::collections::BTreeSet;
use std::sync::Arc;

use difference::Difference;
use futures::StreamExt as _;
use homeostat_apiserver::{AddressRange, Server, ServerConfig};
use homeostat_env::Env;
use kube::Client;
use kube::config::Kubeconfig;
use reached::Reached;
use reviewer::Reviewer;
use script::Sequence;
use side::Side;
use tokio::sync::Mutex;
use webhook_server::Served;

const ORACLE: &str = "HOMEOSTAT_ORACLE_KUBECONFIG";
/// Set when every judge is there.
const JUDGES: &str = "HOMEOSTAT_JUDGES";
/// Only the sequences whose name contains this, for work on one of them.
const ONLY: &str = "HOMEOSTAT_DIFFERENTIAL_ONLY";

/// The areas, as `(name, requests)`.
const AREAS: &[(&str, &str)] = &[
    ("create", include_str!("areas/create.http")),
    ("read", include_str!("areas/read.http")),
    ("options", include_str!("areas/options.http")),
    ("forms", include_str!("areas/forms.http")),
    ("selectors", include_str!("areas/selectors.http")),
    ("watch", include_str!("areas/watch.http")),
    ("live", include_str!("areas/live.http")),
    ("update", include_str!("areas/update.http")),
    ("patch", include_str!("areas/patch.http")),
    ("apply", include_str!("areas/apply.http")),
    ("delete", include_str!("areas/delete.http")),
    ("kinds", include_str!("areas/kinds.http")),
    ("pods", include_str!("areas/pods.http")),
    ("workloads", include_str!("areas/workloads.http")),
    ("custom", include_str!("areas/custom.http")),
    ("definitions", include_str!("areas/definitions.http")),
    ("defaults", include_str!("areas/defaults.http")),
    ("strangers", include_str!("areas/strangers.http")),
    ("embedded", include_str!("areas/embedded.http")),
    ("conversion", include_str!("areas/conversion.http")),
    ("access", include_str!("areas/access.http")),
    ("admission", include_str!("areas/admission.http")),
    ("webhooks", include_str!("areas/webhooks.http")),
    ("answers", include_str!("areas/answers.http")),
    ("asked", include_str!("areas/asked.http")),
    ("policies", include_str!("areas/policies.http")),
    ("params", include_str!("areas/params.http")),
    ("expressions", include_str!("areas/expressions.http")),
    ("subresources", include_str!("areas/subresources.http")),
    ("statuses", include_str!("areas/statuses.http")),
    ("autoscaling", include_str!("areas/autoscaling.http")),
    ("addresses", include_str!("areas/addresses.http")),
    ("ports", include_str!("areas/ports.http")),
    ("certificates", include_str!("areas/certificates.http")),
    ("resizing", include_str!("areas/resizing.http")),
    ("logs", include_str!("areas/logs.http")),
    ("families", include_str!("areas/families.http")),
    ("reviews", include_str!("areas/reviews.http")),
    ("warnings", include_str!("areas/warnings.http")),
    ("openapi", include_str!("areas/openapi.http")),
    ("uncommon", include_str!("areas/uncommon.http")),
    ("notation", include_str!("areas/notation.http")),
    ("devices", include_str!("areas/devices.http")),
    ("confined", include_str!("areas/confined.http")),
    ("flow", include_str!("areas/flow.http")),
    ("columns", include_str!("areas/columns.http")),
    ("keys", include_str!("areas/keys.http")),
    ("components", include_str!("areas/components.http")),
    ("words", include_str!("areas/words.http")),
    ("bodies", include_str!("areas/bodies.http")),
    ("endings", include_str!("areas/endings.http")),
];

/// One test at a time: random watches last a second on both sides, and expressions that use up their
/// budget keep the servers busy for longer than that.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A client of kube-apiserver, if there is one.
#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
async fn oracle() -> Option<Client> {
    let Ok(file) = std::env::var(ORACLE) else {
        assert!(std::env::var_os(JUDGES).is_none(), "{ORACLE} is not set");
        eprintln!("NOT RUN: the comparison with kube-apiserver; {ORACLE} names no kubeconfig");
        return None;
    };
    let kubeconfig = Kubeconfig::read_from(file).unwrap();
    Some(reached::client(kubeconfig).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_kube_apiserver() {
    let Some(oracle) = oracle().await else { return };
    let _alone = ALONE.lock().await;
    let only = std::env::var(ONLY).unwrap_or_default();
    let sequences: Vec<Sequence> = AREAS
        .iter()
        .flat_map(|(area, text)| script::read(area, text))
        .filter(|sequence| sequence.name.contains(&only))
        .collect();
    let compared: usize = sequences.iter().map(|sequence| sequence.steps.len()).sum();
    let hooks = Arc::new(Hooks {
        converter: converter::serve().await,
        ours: Reviewer::serve().await,
        theirs: Reviewer::serve().await,
    });
    let mut found: Vec<Difference> = futures::stream::iter(sequences)
        .map(|sequence| tokio::spawn(run(oracle.clone(), hooks.clone(), sequence)))
        .buffered(4)
        .flat_map(|found| futures::stream::iter(found.unwrap()))
        .collect()
        .await;
    let mut seen = BTreeSet::new();
    found.retain(|difference| match known::position(difference) {
        Some(position) => {
            seen.insert(position);
            false
        }
        None => true,
    });
    for difference in &found {
        eprintln!("{difference}");
    }
    assert!(found.is_empty(), "{} differences in {compared} answers", found.len());
    let rows = known::KNOWN.iter().enumerate();
    let gone: Vec<_> =
        rows.filter(|(row, _)| !seen.contains(row)).map(|(_, known)| known).collect();
    assert!(gone.is_empty() || !only.is_empty(), "no longer differs, take it off: {gone:#?}");
}

/// The webhooks that both sides call: one converts for both, but each has its own reviewer.
struct Hooks {
    converter: Served,
    ours: Arc<Reviewer>,
    theirs: Arc<Reviewer>,
}

/// One half of the sequences is sent in-process and the other through a socket; which ones depends on
/// their names alone, so that it stays so.
fn goes_over_tls(name: &str) -> bool {
    name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 2 == 0
}

/// Sends a sequence to both sides and says where the answers differ.
async fn run(oracle: Client, hooks: Arc<Hooks>, sequence: Sequence) -> Vec<Difference> {
    let env = Env::system();
    let id = format!("diff-{}", env.random_alphanumeric(8).to_lowercase());
    let server = Server::new(ServerConfig {
        service_account_admission: true,
        service_range: AddressRange { base: [10, 96, 0, 0].into(), prefix: 16 },
        history: sequence.history.unwrap_or(4096),
        ..ServerConfig::new(env)
    });
    let reached = if goes_over_tls(&sequence.name) {
        Reached::over_tls(server).await
    } else {
        Reached::in_process(server)
    };
    let mut ours = Side::new(reached.client.clone(), &id);
    let mut theirs = Side::new(oracle, &id);
    for (side, reviewer) in [(&mut ours, &hooks.ours), (&mut theirs, &hooks.theirs)] {
        side.set("hook", &hooks.converter.url);
        side.set("ca", &hooks.converter.ca);
        side.reviewed_by(reviewer);
    }
    tokio::join!(ours.prepare(), theirs.prepare());
    let mut differences = Vec::new();
    for step in &sequence.steps {
        let (our, their) = tokio::join!(ours.send(step), theirs.send(step));
        differences.extend(difference::between(&sequence.name, &step.title, &our, &their));
    }
    theirs.clean_up().await;
    differences
}

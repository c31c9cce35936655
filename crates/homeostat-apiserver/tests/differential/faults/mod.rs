//! One fault at a time: objects of every kind that are right but for one field, which the schema
//! knows and whose value is of the wrong type, empty, too long, negative, or a word nobody knows.
//!
//! Nothing is stored (`dryRun`). A run sends an even part of the faults of the kinds that are known to
//! be answered alike; `HOMEOSTAT_DIFFERENTIAL_FAULTS` says how many, `0` sends all faults of all kinds.

mod known;
mod values;

use std::collections::BTreeMap;

use futures::StreamExt as _;
use homeostat_apiserver::kinds::builtin;
use homeostat_apiserver::{AddressRange, Server, ServerConfig};
use homeostat_env::Env;
use kube::Client;
use serde_json::{Value, json};

use crate::difference::{self, Difference};
use crate::script::Step;
use crate::side::Side;

/// How many faults a run sends; `0` for all, also of kinds that are known to differ.
const COUNT: &str = "HOMEOSTAT_DIFFERENTIAL_FAULTS";
const DEFAULT_COUNT: usize = 1500;
const AT_ONCE: usize = 8;

/// Objects that are right, one or more of each kind.
const OBJECTS: &str = include_str!("objects.json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_are_refused_as_by_kube_apiserver() {
    let Some(oracle) = crate::oracle().await else { return };
    let _alone = crate::ALONE.lock().await;
    let only = std::env::var(crate::ONLY).unwrap_or_default();
    let mut steps: Vec<Step> = steps();
    steps.retain(|step| format!("faults: {}", step.title).contains(&only));
    let count = std::env::var(COUNT).ok().map_or(DEFAULT_COUNT, |text| text.parse().unwrap());
    if count != 0 {
        steps.retain(|step| known::is_judged(step.title.split(' ').next().unwrap_or_default()));
    }
    let every = if count == 0 { 1 } else { steps.len().div_ceil(count).max(1) };
    let chosen: Vec<Step> = steps.into_iter().step_by(every).collect();
    let sent = chosen.len();
    let server = Server::new(ServerConfig {
        service_account_admission: true,
        service_range: AddressRange { base: [10, 96, 0, 0].into(), prefix: 16 },
        ..ServerConfig::new(Env::system())
    });
    let id = format!("diff-{}", Env::system().random_alphanumeric(8).to_lowercase());
    let ours = Client::new(server, "default");
    let (our, their) = (Side::new(ours.clone(), &id), Side::new(oracle.clone(), &id));
    tokio::join!(our.prepare(), their.prepare());
    let found: Vec<Difference> = futures::stream::iter(chosen)
        .map(|step| {
            let mut our = Side::new(ours.clone(), &id);
            let mut their = Side::new(oracle.clone(), &id);
            async move {
                let (our, their) = tokio::join!(our.send(&step), their.send(&step));
                // There are faults that kube-apiserver panics of.
                if their.code == 0 && our.code != 0 {
                    return Vec::new();
                }
                let mut found = difference::between("faults", &step.title, &our, &their);
                found.retain(|difference| !known::accepts(difference));
                found
            }
        })
        .buffered(AT_ONCE)
        .flat_map(futures::stream::iter)
        .collect()
        .await;
    their.clean_up().await;
    let mut sorts: BTreeMap<&str, usize> = BTreeMap::new();
    for difference in &found {
        eprintln!("{difference}");
        *sorts.entry(&difference.step).or_default() += 1;
    }
    assert!(found.is_empty(), "{} of {sent} single faults are answered differently", sorts.len());
}

/// A request for every fault of every object.
fn steps() -> Vec<Step> {
    let objects: Vec<Value> = serde_json::from_str(OBJECTS).unwrap();
    let mut steps = Vec::new();
    for object in objects {
        let is = |row: &&std::sync::Arc<homeostat_apiserver::kinds::Kind>| {
            object["kind"] == row.kind && object["apiVersion"] == row.api_version()
        };
        let kind = builtin().iter().find(is).unwrap();
        let base = if kind.group.is_empty() {
            "/api/v1".to_owned()
        } else {
            format!("/apis/{}", kind.api_version())
        };
        let space = if kind.namespaced { "/namespaces/{{ns}}" } else { "" };
        let path = format!("{base}{space}/{}?dryRun=All&fieldManager=faults", kind.plural);
        for (pointer, value) in values::faults(kind.schema.root(), &object) {
            let mut wrong = object.clone();
            if wrong["metadata"].get("name").is_none() {
                wrong["metadata"]["name"] = json!("x");
            }
            values::put(&mut wrong, &pointer, value.clone());
            let shown: String = value.map_or("(absent)".to_owned(), |value| value.to_string());
            let shown: String = shown.chars().take(60).collect();
            steps.push(Step {
                title: format!("{} {pointer} {shown}", kind.plural),
                method: "POST".to_owned(),
                path: path.clone(),
                headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                body: wrong.to_string(),
                ..Step::default()
            });
        }
    }
    steps
}

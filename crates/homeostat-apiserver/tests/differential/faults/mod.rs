//! One fault at a time: objects of every kind that are right but for one field, which the schema
//! knows and whose value is of the wrong type, empty, too long, negative, or a word nobody knows.
//!
//! They are sent as new objects, in place of objects that are there, as their `status`, and through the
//! subresources that change Pods. Nothing that is wrong is stored (`dryRun`). A run sends an even part of all faults;
//! `HOMEOSTAT_DIFFERENTIAL_FAULTS` says how many, `0` sends all.

mod known;
mod ownership;
mod subjects;
mod values;

use std::collections::BTreeMap;

use futures::StreamExt as _;
use homeostat_apiserver::{AddressRange, Server, ServerConfig};
use homeostat_env::Env;
use kube::Client;

use crate::difference::{self, Difference};
use crate::side::Side;
use subjects::{Live, Subject};
use values::Fault;

/// How many faults a run sends in each way; `0` for all.
const COUNT: &str = "HOMEOSTAT_DIFFERENTIAL_FAULTS";
const DEFAULT_COUNT: usize = 800;
const AT_ONCE: usize = 8;

/// How a fault gets to the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// In a new object.
    Create,
    /// In what replaces an object.
    Update,
    /// In what replaces its status.
    Status,
    /// In what gives a Pod another container for a while.
    EphemeralContainers,
    /// In what changes the resources of a Pod.
    Resize,
}

impl Way {
    /// What differences are told under.
    fn name(self) -> &'static str {
        match self {
            Self::Create => "faults",
            Self::Update => "faults in updates",
            Self::Status => "faults in status",
            Self::EphemeralContainers => "faults in ephemeral containers",
            Self::Resize => "faults in resizes",
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_are_refused_as_by_kube_apiserver() {
    compare(Way::Create).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_in_updates_are_refused_as_by_kube_apiserver() {
    compare(Way::Update).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_in_a_status_are_refused_as_by_kube_apiserver() {
    compare(Way::Status).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_in_ephemeral_containers_are_refused_as_by_kube_apiserver() {
    compare(Way::EphemeralContainers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_faults_in_resizes_are_refused_as_by_kube_apiserver() {
    compare(Way::Resize).await;
}

/// The two servers.
struct Servers {
    ours: Client,
    theirs: Client,
}

impl Servers {
    /// Both, as somebody sees them who works in that namespace.
    fn sides(&self, namespace: &str) -> (Side, Side) {
        (Side::new(self.ours.clone(), namespace), Side::new(self.theirs.clone(), namespace))
    }
}

/// An object that is there on both sides, or will not be.
struct Place<'a> {
    subject: &'a Subject,
    live: Live,
}

#[expect(clippy::print_stderr, reason = "what differs is told one by one")]
async fn compare(way: Way) {
    let Some(theirs) = crate::oracle().await else { return };
    let _alone = crate::ALONE.lock().await;
    let subjects = subjects::all();
    let chosen = chosen(way, &subjects);
    let sent = chosen.iter().map(|(_, faults)| faults.len()).sum::<usize>();
    let server = Server::new(ServerConfig {
        service_account_admission: true,
        service_range: AddressRange { base: [10, 96, 0, 0].into(), prefix: 16 },
        ..ServerConfig::new(Env::system())
    });
    let servers = Servers { ours: Client::new(server, "default"), theirs };
    let id = format!("diff-{}", Env::system().random_alphanumeric(8).to_lowercase());
    let mut places = Vec::new();
    for (subject, _) in &chosen {
        let live = Live::make(subject, way, &servers, &id, places.len()).await;
        places.push(Place { subject, live });
    }
    let faults = places
        .iter()
        .zip(&chosen)
        .flat_map(|(place, (_, faults))| faults.iter().map(move |fault| (place, fault)));
    let found: Vec<Difference> = futures::stream::iter(faults)
        .map(|(place, fault)| send(way, &servers, place, fault))
        .buffered(AT_ONCE)
        .flat_map(futures::stream::iter)
        .collect()
        .await;
    for place in &places {
        place.live.remove(place.subject, &servers).await;
    }
    let mut sorts: BTreeMap<&str, usize> = BTreeMap::new();
    for difference in &found {
        eprintln!("{difference}");
        *sorts.entry(&difference.step).or_default() += 1;
    }
    assert!(found.is_empty(), "{} of {sent} single faults are answered differently", sorts.len());
    let unseen = known::unseen(way);
    if std::env::var_os(COUNT).is_none() && std::env::var_os(crate::ONLY).is_none() {
        assert!(unseen.is_empty(), "accepted, and no longer so: {unseen:#?}");
    }
}

/// The faults that this run sends.
fn chosen(way: Way, subjects: &[Subject]) -> Vec<(&Subject, Vec<Fault>)> {
    let only = std::env::var(crate::ONLY).unwrap_or_default();
    let count = std::env::var(COUNT).ok().map_or(DEFAULT_COUNT, |text| text.parse().unwrap());
    let mut all: Vec<(&Subject, Vec<Fault>)> =
        subjects.iter().map(|subject| (subject, subject.faults(way))).collect();
    for (subject, faults) in &mut all {
        faults.retain(|fault| title(way, subject, fault).contains(&only));
    }
    let total: usize = all.iter().map(|(_, faults)| faults.len()).sum();
    let every = if count == 0 { 1 } else { total.div_ceil(count).max(1) };
    let mut at = 0;
    for (subject, faults) in &mut all {
        faults.retain(|fault| {
            at += 1;
            let title = title(way, subject, fault);
            at % every == 0 || known::examples(way).any(|example| title.ends_with(example))
        });
    }
    all.retain(|(_, faults)| !faults.is_empty());
    all
}

/// What a fault is called.
fn title(way: Way, subject: &Subject, fault: &Fault) -> String {
    let (pointer, value) = fault;
    let shown = value.as_ref().map_or("(absent)".to_owned(), ToString::to_string);
    let shown: String = shown.chars().take(60).collect();
    format!("{}: {} {pointer} {shown}", way.name(), subject.kind.plural)
}

/// Sends one fault to both sides and says where the answers differ.
async fn send(way: Way, servers: &Servers, place: &Place<'_>, fault: &Fault) -> Vec<Difference> {
    let (mut ours, mut theirs) = servers.sides(&place.live.namespace);
    let title = title(way, place.subject, fault);
    let our_step = place.subject.step(way, &place.live.ours, fault);
    let their_step = place.subject.step(way, &place.live.theirs, fault);
    let (our, their) = tokio::join!(ours.send(&our_step), theirs.send(&their_step));
    // There are faults that kube-apiserver panics of.
    if their.code == 0 && our.code != 0 {
        return Vec::new();
    }
    let (sequence, step) = title.split_once(": ").unwrap_or_default();
    let mut found = difference::between(sequence, step, &our, &their);
    let (pointer, value) = fault;
    let value = value.as_ref().map_or(String::new(), ToString::to_string);
    let told = (place.subject.kind.plural.as_str(), pointer.as_str(), value.as_str());
    found.retain(|difference| !known::accepts(way, told, difference, (&our.body, &their.body)));
    found
}

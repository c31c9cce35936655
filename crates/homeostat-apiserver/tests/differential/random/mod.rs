//! Random sequences of requests from a seed: the answers must not differ.
//!
//! A run sends the same sequences as every other one, so that it says something about the code and not
//! about luck; whoever looks for new differences asks for some that nobody has sent before. Their seed is
//! printed; the seed of a sequence that differs is printed with the shortest form of it that still does,
//! as a script for `areas/`. Accepted differences: [`known`].

mod known;
mod objects;
mod requests;
mod shrink;

use std::collections::BTreeMap;

use futures::StreamExt as _;
use homeostat_apiserver::{AddressRange, Server, ServerConfig};
use homeostat_env::Env;
use kube::Client;
use serde_json::Value;

use crate::difference::{self, Difference};
use crate::reached::Reached;
use crate::script::{Sequence, Step, Until};
use crate::side::Side;
use objects::Sample;

/// Where the sequences of a run begin, instead of those that every run sends and those that are new.
const SEED: &str = "HOMEOSTAT_DIFFERENTIAL_SEED";
/// How many sequences a run sends from that seed, or of those that every run sends.
const COUNT: &str = "HOMEOSTAT_DIFFERENTIAL_SEQUENCES";
/// So many are the same in every run, from seed 1,
const CORPUS: u64 = 2000;
/// then those that were new once, and differed,
const ONCE_DIFFERED: &[u64] = &[
    5000168,
    5000194,
    5000222,
    5000268,
    5000283,
    5000849,
    5000957,
    5000970,
    5001166,
    5001397,
    5001681,
    5002046,
    5002125,
    5002312,
    5002388,
    5002544,
    5002583,
    5002656,
    5002694,
    5002713,
    5002748,
    5002889,
    5002929,
    9001345,
    9001612,
    9002601,
    9002902,
    9002964,
    9003479,
    9003987,
    31000753,
    31000898,
    31002115,
    31002449,
    31002651,
    31003203,
    771_320_485_261,
];
/// and so many that are new, if somebody asks for them.
const FRESH: &str = "HOMEOSTAT_DIFFERENTIAL_FRESH";
/// Fresh seeds have so many digits that nobody meets one twice, and few enough to be read out.
const FRESH_SEEDS: u64 = 1_000_000_000_000;
/// How many sequences are under way at once.
const AT_ONCE: usize = 12;
/// Every sequence that differs is counted; so many sorts are made short and shown.
const SHOWN: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_are_answered_as_by_kube_apiserver() {
    let Some(oracle) = crate::oracle().await else { return };
    let _alone = crate::ALONE.lock().await;
    let (seeds, is_corpus) = seeds();
    let pair = Pair::new(oracle).await;
    let samples = Sample::all();
    let found: Vec<(Sequence, Vec<Difference>)> = futures::stream::iter(seeds.clone())
        .map(|seed| {
            let sequence = requests::sequence(&samples, seed);
            let pair = &pair;
            async move {
                let found = pair.run(&sequence).await;
                (sequence, found)
            }
        })
        .buffered(AT_ONCE)
        .filter(|(_, found)| std::future::ready(!found.is_empty()))
        .collect()
        .await;
    let different = found.len();
    // One of each sort is enough to read.
    let mut sorts: BTreeMap<String, usize> = BTreeMap::new();
    for (sequence, found) in found {
        let seen = sorts.entry(sort(&found[0])).or_default();
        *seen += 1;
        if *seen > 1 || sorts.len() > SHOWN {
            continue;
        }
        let seed = sequence.name.rsplit(' ').next().unwrap_or_default().to_owned();
        let (short, found) = shrink::shortest(&pair, sequence, found).await;
        eprintln!("{SEED}={seed}\n{}", shrink::script(&short));
        for difference in &found {
            eprintln!("{difference}");
        }
        eprintln!();
    }
    for (sort, times) in &sorts {
        eprintln!("{times:5} × {sort}");
    }
    pair.clean_up().await;
    let unseen = known::unseen();
    if is_corpus && different == 0 {
        assert!(unseen.is_empty(), "accepted, and no longer so: {unseen:#?}");
    }
    assert!(different == 0, "{different} of {} sequences differ, see their {SEED}", seeds.len());
}

/// The seeds of a run, and whether all those of every run are among them.
#[expect(clippy::print_stderr, reason = "only who knows the seed can repeat the run")]
fn seeds() -> (Vec<u64>, bool) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let count = number(COUNT);
    if let Some(seed) = number(SEED) {
        let count = count.unwrap_or(1);
        eprintln!("{count} sequences from {SEED}={seed}");
        return ((seed..seed + count).collect(), false);
    }
    if let Some(count) = count {
        eprintln!("{count} sequences from {SEED}=1");
        return ((1..=count).collect(), false);
    }
    let fresh = Env::system().random_below(FRESH_SEEDS) + CORPUS;
    let new = number(FRESH).unwrap_or_default();
    eprintln!("{CORPUS} sequences from {SEED}=1, {new} new ones from {SEED}={fresh}");
    let again = ONCE_DIFFERED.iter().copied();
    ((1..=CORPUS).chain(again).chain(fresh..fresh + new).collect(), true)
}

/// The verb, the resource and the place.
fn sort(difference: &Difference) -> String {
    let (_, title) = difference.step.rsplit_once(": ").unwrap_or_default();
    format!("{title} {}", difference.place.replace(|c: char| c.is_ascii_digit(), "#"))
}

/// Both servers, with the definitions of the custom resources that sequences use.
struct Pair {
    group: String,
    /// This server in-process, and over TLS.
    ours: [Reached; 2],
    theirs: Client,
}

impl Pair {
    async fn new(theirs: Client) -> Self {
        let env = Env::system();
        let group = format!("{}.example.com", env.random_alphanumeric(8).to_lowercase());
        let server = Server::new(ServerConfig {
            service_account_admission: true,
            service_range: AddressRange { base: [10, 96, 0, 0].into(), prefix: 16 },
            history: 100_000,
            ..ServerConfig::new(env)
        });
        let ours = [Reached::in_process(server.clone()), Reached::over_tls(server).await];
        let pair = Self { group, ours, theirs };
        let (mut ours, mut theirs) = pair.sides("");
        for definition in Self::definitions() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
            let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            let body = definition.to_string();
            let step = Step { method: "POST".to_owned(), path, headers, body, ..Step::default() };
            let (our, their) = tokio::join!(ours.send(&step), theirs.send(&step));
            assert_eq!((our.code, their.code), (201, 201), "{} {}", our.body, their.body);
            let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
            let path = format!("/apis/{{{{group}}}}/v1/{plural}");
            let until = Some(Until { code: 200, words: String::new() });
            let step = Step { method: "GET".to_owned(), path, until, ..Step::default() };
            theirs.send(&step).await;
        }
        pair
    }

    fn definitions() -> Vec<Value> {
        serde_json::from_str(include_str!("definitions.json")).unwrap()
    }

    /// Both servers, each with a namespace for the sequence of that name.
    fn sides(&self, name: &str) -> (Side, Side) {
        let id = format!("diff-{}", Env::system().random_alphanumeric(8).to_lowercase());
        let side = |client: &Client| {
            let mut side = Side::new(client.clone(), &id);
            side.set("group", &self.group);
            side
        };
        let way = usize::from(crate::goes_over_tls(name));
        (side(&self.ours[way].client), side(&self.theirs))
    }

    /// Sends the sequence to both and gives what nobody expects of the first step that differs:
    /// after that the two are in different states.
    async fn run(&self, sequence: &Sequence) -> Vec<Difference> {
        let (mut ours, mut theirs) = self.sides(&sequence.name);
        tokio::join!(ours.prepare(), theirs.prepare());
        let mut found = Vec::new();
        for step in &sequence.steps {
            let (our, their) = tokio::join!(ours.send(step), theirs.send(step));
            let codes = (our.code, their.code);
            let mut differences = difference::between(&sequence.name, &step.title, &our, &their);
            differences.retain(|difference| !known::accepts(step, difference, &our, &their));
            found = differences;
            if !found.is_empty() || codes.0 / 100 != codes.1 / 100 {
                break;
            }
        }
        theirs.clean_up().await;
        found
    }

    /// Takes away what no namespace takes with it: objects of the whole cluster (a node left behind
    /// would get other tests' Pods) and the definitions, whose objects must be free to go.
    async fn clean_up(&self) {
        let (_, theirs) = self.sides("");
        for sample in Sample::all().iter().filter(|sample| !sample.is_namespaced()) {
            release(&theirs, &sample.path).await;
            for name in names(&list(&theirs, &sample.path).await) {
                delete(&theirs, &format!("{}/{name}", sample.path)).await;
            }
        }
        for definition in Self::definitions() {
            let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
            release(&theirs, &format!("/apis/{{{{group}}}}/v1/{plural}")).await;
            let name = definition["metadata"]["name"].as_str().unwrap();
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            delete(&theirs, &path).await;
        }
    }
}

async fn list(side: &Side, collection: &str) -> Vec<Value> {
    let method = "GET".to_owned();
    let step = Step { method, path: collection.to_owned(), ..Step::default() };
    side.raw(&step).await["items"].as_array().cloned().unwrap_or_default()
}

/// The names that sequences give to objects of the whole cluster.
fn names(objects: &[Value]) -> Vec<String> {
    let names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
    names.filter(|name| name.starts_with("diff-")).map(str::to_owned).collect()
}

async fn delete(side: &Side, path: &str) {
    let step = Step { method: "DELETE".to_owned(), path: path.to_owned(), ..Step::default() };
    side.raw(&step).await;
}

/// Frees the objects of a collection from their finalizers.
async fn release(side: &Side, collection: &str) {
    let (base, plural) = collection.rsplit_once('/').unwrap();
    for object in list(side, collection).await {
        if object["metadata"].get("finalizers").is_none() {
            continue;
        }
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let space = match text("namespace") {
            "" => String::new(),
            name => format!("namespaces/{name}/"),
        };
        let path = format!("{base}/{space}{plural}/{}", text("name"));
        let media = "application/merge-patch+json".to_owned();
        let headers = vec![("content-type".to_owned(), media)];
        let body = r#"{"metadata": {"finalizers": null}}"#.to_owned();
        let method = "PATCH".to_owned();
        side.raw(&Step { method, path, headers, body, ..Step::default() }).await;
    }
}

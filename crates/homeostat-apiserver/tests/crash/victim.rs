//! The process that is killed: writes as fast as it can from several tasks, and says what it is
//! about to do and what was acknowledged.

use std::io::Write as _;
use std::path::Path;

use homeostat_apiserver::DataDirectory;
use homeostat_apiserver::store::{
    Draft, Expect, Key, Limits, Log, LogOptions, Pairs, Store, Write,
};
use homeostat_env::Env;
use jiff::Timestamp;
use serde_json::json;

/// Each task has keys of its own, so what it was told is all there is to know about them.
const TASKS: u64 = 8;
const KEYS: u64 = 5;

/// Opens the store in `place`, which must not be damaged.
pub(crate) fn open(place: &Path, longest: u64) -> Store {
    let directory = DataDirectory::open(place).unwrap();
    let log = Log::open(&directory, LogOptions { longest }).unwrap();
    Store::open(Limits::default(), log).unwrap()
}

/// Writes until it is killed. Each task draws from a stream of its own: what it writes does not
/// depend on the others.
pub(crate) fn work(place: &Path, longest: u64, seed: u64) {
    let store = open(place, longest);
    let env = Env::simulated(seed, Timestamp::UNIX_EPOCH);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    runtime.block_on(async {
        let streams: Vec<u64> = (0..TASKS).map(|_| env.random_u64()).collect();
        let env = |seed| Env::simulated(seed, Timestamp::UNIX_EPOCH);
        let tasks = (0..).zip(streams);
        let tasks = tasks.map(|(task, seed)| tokio::spawn(write(store.clone(), env(seed), task)));
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
}

/// One task: creates, replaces and deletes pairs of objects, each pair in one commit.
async fn write(store: Store, env: Env, task: u64) {
    loop {
        let name = format!("{task}-{}", env.random_below(KEYS));
        let key = Key::new("default", name.clone());
        let current = store.get("left", &key).map(|object| object.revision);
        let deletes = current.is_some() && env.random_below(4) == 0;
        let (uid, size) = (env.uid(), usize::try_from(env.random_below(3000)).unwrap());
        let expect = current.map_or(Expect::Absent, Expect::Revision);
        let writes = ["left", "right"].map(|resource| Write {
            resource: resource.to_owned(),
            key: key.clone(),
            expect,
            draft: (!deletes).then(|| Draft {
                value: json!({"metadata": {"uid": uid}, "filling": "x".repeat(size)}),
                fields: Pairs::default(),
            }),
        });
        let what = if deletes { "nothing" } else { uid.as_str() };
        say(&format!("begin {name} {what} ."));
        let commit = || store.commit(writes.into()).unwrap()[0].revision;
        // Half of them would make it durable themselves.
        let revision = if task.is_multiple_of(2) { store.in_place(commit) } else { commit() };
        store.settle().await.unwrap();
        say(&format!("done {name} {what} {revision} ."));
    }
}

/// A line in one piece: it reaches the other side whole even if this process ends right after.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

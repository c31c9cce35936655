//! Things outside the cluster: made once whatever gets lost, adopted, looked at, removed or left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::external::{Existing, External, Find, Outside, Policy, Removal};
use homeostat::kube::api::DeleteParams;
use homeostat::{Change, Context, Controller, Error, EventType, Outcome, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use crate::cluster::{Cluster, config, endings, on_cluster, triggers};

/// A registrar of names, with its own ids and a bad line.
#[derive(Debug, Default)]
struct Registrar {
    /// Name and token by id.
    records: BTreeMap<String, (String, String)>,
    calls: u32,
    /// So many answers of `create` get lost after the thing was made.
    lose: u32,
    /// What was asked to be made as it should be.
    updated: Vec<String>,
    /// The token of a thing that is there once somebody has looked for it.
    late: Option<String>,
}

#[derive(Clone, Default)]
struct World(Arc<Mutex<Registrar>>);

struct Record {
    world: World,
    name: String,
}

impl External for Record {
    type Found = String;

    async fn find(&self, by: Find<'_>) -> Result<Option<String>> {
        let mut world = self.world.0.lock().unwrap();
        let found = world.records.iter().find(|(id, (name, token))| match by {
            Find::Name => *name == self.name,
            Find::Token(wanted) => token == wanted,
            Find::Id(wanted) => *id == wanted,
        });
        let found = found.map(|(id, _)| id.clone());
        if let Some(token) = world.late.take() {
            world.records.insert("late".to_owned(), (self.name.clone(), token));
        }
        Ok(found)
    }

    fn id(&self, found: &String) -> String {
        found.clone()
    }

    async fn create(&self, token: &str) -> Result<String> {
        let mut world = self.world.0.lock().unwrap();
        world.calls += 1;
        let id = format!("id-{}", world.calls);
        world.records.insert(id.clone(), (self.name.clone(), token.to_owned()));
        if world.lose > 0 {
            world.lose -= 1;
            return Err(Error::transient("the answer got lost"));
        }
        Ok(id)
    }

    async fn update(&self, found: String) -> Result<(String, Change)> {
        self.world.0.lock().unwrap().updated.push(found.clone());
        Ok((found, Change::Changed))
    }

    async fn delete(&self, id: &str) -> Result<()> {
        self.world.0.lock().unwrap().records.remove(id);
        Ok(())
    }
}

fn controller(world: &World, policy: Policy) -> Controller<ConfigMap> {
    let world = world.clone();
    Controller::new(move |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
        let record = Record { world: world.clone(), name: context.key().name().to_owned() };
        async move {
            match context.external("dns", policy, &record).await? {
                Outside::Removed => Ok(Outcome::Done),
                Outside::Absent => Err(Error::terminal("not there")),
                Outside::Present { change, .. } => {
                    context.event(EventType::Normal, "Looked", change.to_string());
                    Ok(Outcome::RequeueAfter(Duration::from_secs(2)))
                }
            }
        }
    })
}

fn ids(world: &World) -> Vec<String> {
    world.0.lock().unwrap().records.keys().cloned().collect()
}

async fn delete(cluster: &Cluster, name: &str) {
    cluster.api::<ConfigMap>().delete(name, &DeleteParams::default()).await.unwrap();
    cluster.until_gone::<ConfigMap>(name).await;
}

#[test]
fn a_lost_answer_makes_nothing_twice() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        world.0.lock().unwrap().lose = 1;
        let running = cluster.start(controller(&world, Policy::default())).await;
        let made = |config: &ConfigMap| {
            let notes = config.metadata.annotations.clone().unwrap_or_default();
            notes.values().any(|note| note.contains("id-1"))
        };
        cluster.until_one::<ConfigMap>("a", "the id on record", made).await;
        assert_eq!(endings(&running.journal().records())[0], "failed: the answer got lost");
        assert_eq!((ids(&world), world.0.lock().unwrap().calls), (vec!["id-1".to_owned()], 1));
        delete(&cluster, "a").await;
        assert!(ids(&world).is_empty());
        running.stop().await.unwrap();
    });
}

#[test]
fn the_intent_is_on_record_before_the_call_and_a_restart_finishes_it() {
    on_cluster(async |cluster| {
        // As a process that died after its call left it.
        let mut left = config("a", "1");
        let note = json!({ "token": "t" }).to_string();
        let name = "external.homeostat.dev/dns".to_owned();
        left.metadata.annotations = Some(BTreeMap::from([(name, note)]));
        cluster.create(&left).await;
        let world = World::default();
        let thing = ("a".to_owned(), "t".to_owned());
        world.0.lock().unwrap().records.insert("id-9".into(), thing);
        let running = cluster.start(controller(&world, Policy::default())).await;
        cluster.runs(&running.journal(), 2).await;
        assert_eq!((ids(&world), world.0.lock().unwrap().calls), (vec!["id-9".to_owned()], 0));

        cluster.create(&config("b", "1")).await;
        cluster.quiet().await;
        let records = running.journal().records();
        let b = records.iter().find(|r| r.key.name() == "b").unwrap();
        let verbs: Vec<&str> = b.writes.iter().map(|write| write.verb).collect();
        assert_eq!(verbs, ["finalizer", "external", "external"], "intent, then id");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_somebody_removed_is_made_anew() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let running = cluster.start(controller(&world, Policy::default())).await;
        let journal = running.journal();
        cluster.runs(&journal, 2).await;
        world.0.lock().unwrap().records.clear();
        let before = journal.records().len();
        cluster.runs(&journal, before + 2).await;
        assert_eq!(ids(&world), ["id-2"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_strangers_thing_is_refused_or_adopted_and_left_when_told_so() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let stranger = ("a".to_owned(), "theirs".to_owned());
        world.0.lock().unwrap().records.insert("id-7".into(), stranger);
        let running = cluster.start(controller(&world, Policy::default())).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.starts_with("terminal: dns id-7 exists and is not on record"), "{ending}");
        running.stop().await.unwrap();

        let keep = Policy::Manage { existing: Existing::Adopt, removal: Removal::Retain };
        let running = cluster.start(controller(&world, keep)).await;
        cluster.runs(&running.journal(), 2).await;
        assert_eq!(world.0.lock().unwrap().calls, 0);
        delete(&cluster, "a").await;
        assert_eq!(ids(&world), ["id-7"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_strangers_thing_that_goes_away_makes_room_without_an_edit() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let stranger = || ("a".to_owned(), "theirs".to_owned());
        world.0.lock().unwrap().records.insert("id-7".into(), stranger());
        let running = cluster.start(controller(&world, Policy::default())).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        cluster.quiet().await;
        let before = journal.records().len();
        let last = journal.records()[before - 1].clone();
        assert!(
            last.result.to_string().starts_with("terminal") && last.next.is_some(),
            "{journal}"
        );
        world.0.lock().unwrap().records.clear();
        let records = cluster.runs(&journal, before + 1).await;
        assert_eq!(ids(&world), ["id-1"], "{journal}");
        assert_eq!(triggers(&records[before]), "timer");
        assert!(endings(&records)[before].starts_with("requeue after"), "{journal}");

        // Ours is removed, and a stranger is quicker than we are.
        let stranger = BTreeMap::from([("id-8".to_owned(), stranger())]);
        world.0.lock().unwrap().records = stranger;
        let refused = |records: &[Arc<homeostat::journal::Record>]| {
            endings(records).last().unwrap().contains("id-8")
        };
        cluster.until_recorded(&journal, refused).await;
        assert_eq!(world.0.lock().unwrap().calls, 1, "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn looking_touches_nothing() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let running = cluster.start(controller(&world, Policy::ObserveOnly)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert_eq!(endings(&records), ["terminal: not there"]);
        assert!(records[0].writes.is_empty() && ids(&world).is_empty());
        running.stop().await.unwrap();
    });
}

#[test]
fn an_object_that_is_only_looked_at_now_is_let_go_and_its_thing_stays() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let running = cluster.start(controller(&world, Policy::default())).await;
        cluster.runs(&running.journal(), 2).await;
        assert_eq!(ids(&world), ["id-1"]);
        running.stop().await.unwrap();

        let running = cluster.start(controller(&world, Policy::ObserveOnly)).await;
        cluster.runs(&running.journal(), 1).await;
        delete(&cluster, "a").await;
        assert_eq!(ids(&world), ["id-1"], "it was not ours to remove any more");
        running.stop().await.unwrap();
    });
}

/// What a config map says that remembers a thing so.
fn remembering(name: &str, note: &str) -> ConfigMap {
    let mut config = config(name, "1");
    let annotation = ("external.homeostat.dev/dns".to_owned(), note.to_owned());
    config.metadata.annotations = Some(BTreeMap::from([annotation]));
    config
}

fn put(world: &World, id: &str, name: &str, token: &str) {
    let thing = (name.to_owned(), token.to_owned());
    world.0.lock().unwrap().records.insert(id.to_owned(), thing);
}

#[test]
fn an_object_deleted_between_intent_and_id_takes_the_thing_with_it_by_its_token() {
    on_cluster(async |cluster| {
        let mut left = remembering("a", &json!({ "token": "t" }).to_string());
        left.metadata.finalizers = Some(vec!["homeostat.dev/external-dns".to_owned()]);
        cluster.create(&left).await;
        cluster.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        let world = World::default();
        put(&world, "id-9", "a", "t");
        put(&world, "id-8", "a", "theirs");
        let running = cluster.start(controller(&world, Policy::default())).await;
        cluster.until_gone::<ConfigMap>("a").await;
        assert_eq!(ids(&world), ["id-8"], "ours, and nobody else's of that name");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_is_on_record_is_made_as_it_should_be_and_says_whether_it_changed() {
    on_cluster(async |cluster| {
        let note = json!({ "token": "t", "id": "id-9" }).to_string();
        cluster.create(&remembering("a", &note)).await;
        let world = World::default();
        put(&world, "id-9", "a", "t");
        let running = cluster.start(controller(&world, Policy::default())).await;
        let told = |all: &[Event]| {
            let says = |event: &Event| event.note.as_deref() == Some("changed");
            all.iter().any(says)
        };
        cluster.until::<Event>("a change", told).await;
        let updated = world.0.lock().unwrap().updated.clone();
        assert!(!updated.is_empty() && updated.iter().all(|id| id == "id-9"), "{updated:?}");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_is_there_is_looked_at_and_left_as_it_is() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        put(&world, "id-9", "a", "theirs");
        let running = cluster.start(controller(&world, Policy::ObserveOnly)).await;
        let records = cluster.runs(&running.journal(), 1).await;
        assert!(endings(&records)[0].starts_with("requeue after"), "{}", running.journal());
        assert!(records[0].writes.is_empty() && world.0.lock().unwrap().updated.is_empty());
        delete(&cluster, "a").await;
        assert_eq!(ids(&world), ["id-9"]);
        running.stop().await.unwrap();
    });
}

#[test]
fn what_was_adopted_is_made_as_it_should_be_and_goes_with_its_object() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        put(&world, "id-7", "a", "theirs");
        let ours = Policy::Manage { existing: Existing::Adopt, removal: Removal::Delete };
        let running = cluster.start(controller(&world, ours)).await;
        let runs = cluster.runs(&running.journal(), 2).await.len();
        let updated = world.0.lock().unwrap().updated.clone();
        assert!(
            updated.len() >= runs && updated.iter().all(|id| id == "id-7"),
            "from the first on"
        );
        delete(&cluster, "a").await;
        assert!(ids(&world).is_empty() && world.0.lock().unwrap().calls == 0);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_record_that_cannot_be_read_is_told_and_nothing_is_made() {
    on_cluster(async |cluster| {
        cluster.create(&remembering("a", "id-7")).await;
        let world = World::default();
        let running = cluster.start(controller(&world, Policy::default())).await;
        let records = cluster.runs(&running.journal(), 1).await;
        let ending = &endings(&records)[0];
        assert!(ending.contains("annotation external.homeostat.dev/dns"), "{ending}");
        assert!(ids(&world).is_empty() && world.0.lock().unwrap().calls == 0);
        running.stop().await.unwrap();
    });
}

#[test]
fn of_two_processes_that_begin_at_once_one_makes_the_thing() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let both = [cluster.manager(), cluster.manager()].map(|manager| {
            let controller = controller(&world, Policy::default());
            manager.with(controller.namespace(&cluster.namespace))
        });
        let [first, second] = both;
        let (first, second) = tokio::join!(first.start(), second.start());
        let (first, second) = (first.unwrap(), second.unwrap());
        for running in [&first, &second] {
            cluster.runs(&running.journal(), 3).await;
        }
        assert_eq!((ids(&world).len(), world.0.lock().unwrap().calls), (1, 1));
        first.stop().await.unwrap();
        second.stop().await.unwrap();
    });
}

#[test]
fn what_a_crash_left_behind_is_brought_up_to_date_when_it_is_found() {
    on_cluster(async |cluster| {
        cluster.create(&remembering("a", &json!({ "token": "t" }).to_string())).await;
        let world = World::default();
        put(&world, "id-9", "a", "t");
        let running = cluster.start(controller(&world, Policy::default())).await;
        let runs = cluster.runs(&running.journal(), 1).await.len();
        let updated = world.0.lock().unwrap().updated.clone();
        assert!(
            updated.len() >= runs && updated.iter().all(|id| id == "id-9"),
            "from the first on: {updated:?}"
        );
        running.stop().await.unwrap();
    });
}

#[test]
fn an_object_with_two_things_outside_takes_both_with_it() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "1")).await;
        let world = World::default();
        let all = world.clone();
        let both = move |_: Arc<ConfigMap>, context: Context<ConfigMap>| {
            let record = |name: &str| Record { world: all.clone(), name: name.to_owned() };
            let (first, second) = (record("a.example"), record("b.example"));
            async move {
                let policy = Policy::default();
                let first = context.external("first", policy, &first).await?;
                let second = context.external("second", policy, &second).await?;
                if [first, second].contains(&Outside::Removed) {
                    return Ok(Outcome::Done);
                }
                Ok(Outcome::RequeueAfter(Duration::from_secs(60)))
            }
        };
        let running = cluster.start(Controller::new(both)).await;
        cluster.runs(&running.journal(), 1).await;
        assert_eq!(ids(&world).len(), 2);
        delete(&cluster, "a").await;
        assert!(ids(&world).is_empty());
        running.stop().await.unwrap();
    });
}

#[test]
fn what_is_still_being_made_when_its_object_goes_is_removed_all_the_same() {
    on_cluster(async |cluster| {
        let mut going = remembering("a", &json!({ "token": "t" }).to_string());
        going.metadata.finalizers = Some(vec!["homeostat.dev/external-dns".to_owned()]);
        cluster.create(&going).await;
        cluster.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
        let world = World::default();
        // The call of a process that is no more is over a moment after the first look.
        world.0.lock().unwrap().late = Some("t".to_owned());
        let running = cluster.start(controller(&world, Policy::default())).await;
        cluster.until_gone::<ConfigMap>("a").await;
        assert!(ids(&world).is_empty(), "nothing is left behind");
        running.stop().await.unwrap();
    });
}

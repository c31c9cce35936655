//! A started manager, and the order in which it stops.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Manager;
use super::definitions::Definitions;
use super::health::{Health, Observer, Probe, Probes, Readings};
use super::leadership::Leadership;
use super::listen::{self, Listening};
use super::runnable::{ClientOf, Trouble, Work};
use crate::Env;
use crate::cache::{Caches, SourceState};
use crate::client;
use crate::controller::{Launched, World, is_decided};
use crate::error::{Error, Result};
use crate::event::{Recorder, is_reporter};
use crate::journal::Journal;
use crate::webhook::Serving;

/// How long a stop waits for the lease to be given back.
const RELEASE: Duration = Duration::from_secs(4);
/// How long a stop waits for events to be written.
const FLUSH: Duration = Duration::from_secs(4);

/// A started manager; dropping it stops everything at once, [`Running::stop`] does so in order.
#[derive(Debug)]
pub struct Running {
    env: Env,
    journal: Journal,
    caches: Caches,
    recorder: Recorder,
    controllers: Vec<Launched>,
    runnables: Vec<(Arc<str>, JoinSet<()>)>,
    webhooks: Option<Serving>,
    leadership: Leadership,
    observer: Observer,
    listening: Option<Listening>,
    grace: Duration,
    /// Ends workers that still wait for their caches.
    stop: DropGuard,
    /// Ends the event writer.
    close_events: DropGuard,
    events: JoinHandle<()>,
    /// Ends the caches, whose handlers may hold each other.
    _end_caches: EndCaches,
}

#[derive(Debug)]
struct EndCaches(Caches);

impl Drop for EndCaches {
    fn drop(&mut self) {
        self.0.stop();
    }
}

pub(super) async fn start(manager: Manager) -> Result<Running> {
    let Manager { client, env, caches, journal, definitions, controllers, .. } = manager;
    let Manager { lease, metrics, address, grace, runnables, probes, webhooks, .. } = manager;
    let mut names = BTreeSet::new();
    if let Some(twice) = runnables.iter().find(|one| !names.insert(one.name().to_string())) {
        let name = twice.name();
        return Err(Error::terminal(format!("two runnables are named `{name}`")));
    }
    names.clear();
    if let Some(twice) = controllers.iter().find(|one| !names.insert(one.name().to_owned())) {
        let name = twice.name();
        return Err(Error::terminal(format!(
            "two controllers are named `{name}`; give one another name with Controller::named"
        )));
    }
    if let Some(odd) = controllers.iter().map(|one| one.name()).find(|name| !is_reporter(name)) {
        return Err(Error::terminal(format!(
            "a controller cannot be named `{odd}`: its events and its field manager carry the name, \
             which is up to 63 letters, digits, `-`, `_` and `.`, begins and ends with a letter or a \
             digit, and may follow a domain and `/`; give it another with Controller::named"
        )));
    }
    let bound = match address {
        Some(address) => Some(listen::bind(address).await?),
        None => None,
    };
    // First of all: whoever asks hears that there is a start under way.
    let sight = Arc::new(OnceLock::new());
    let listening = bound.map(|bound| bound.serve(env.clone(), Arc::clone(&sight)));
    let definitions = Definitions::establish(&client, &env, definitions).await?;

    // Before any cache, ours or the API's: a list of a kind that is converted asks it.
    let webhooks = match webhooks {
        Some(webhooks) => Some(webhooks.serve(&client, &caches, &env, &metrics).await?),
        None => None,
    };
    definitions.serve(&client, &env).await?;

    let lease_name = lease.as_ref().map(|lease| lease.name().to_owned());
    let mut leadership = Leadership::new(&env, lease)?;
    let (recorder, writer) = Recorder::new(client.clone(), env.clone());
    let close_events = CancellationToken::new();
    let events = tokio::spawn(writer.run(close_events.clone().cancelled_owned()));
    let stop = CancellationToken::new();
    let insists = definitions.missing.clone().insist(client.clone(), env.clone());
    tokio::spawn(stop.clone().run_until_cancelled_owned(insists));
    let world = World {
        client,
        env: env.clone(),
        caches: caches.clone(),
        recorder: recorder.clone(),
        journal: journal.clone(),
        fence: leadership.fence.clone(),
        metrics: metrics.clone(),
        stop: stop.clone(),
    };
    let controllers: Vec<Launched> =
        controllers.into_iter().map(|controller| controller.launch(&world)).collect();
    let followers = controllers.iter().filter_map(Launched::follower).collect();
    let warm = join_all(controllers.iter().map(|one| one.starting.clone().there()));
    let warm = warm.map(drop).boxed();
    leadership.contend(&world.client, &env, followers, warm);
    let readings = |one: &Launched| Readings {
        name: one.name.clone(),
        queue: one.queue.clone(),
        shifts: one.shifts.clone(),
        memories: one.memories.clone(),
    };
    let observer = Observer {
        env: env.clone(),
        caches: caches.clone(),
        missing: definitions.missing,
        recorder: recorder.clone(),
        metrics,
        fence: leadership.fence.clone(),
        lease: lease_name,
        controllers: controllers.iter().map(readings).collect(),
        outside: controllers.iter().flat_map(|one| one.outside.clone()).collect(),
        probes: Probes::new(probes),
        runnables: runnables.iter().map(|runnable| runnable.name().clone()).collect(),
        trouble: Trouble::none(),
        webhooks: webhooks.as_ref().map(Serving::observer),
    };
    let observer = sight.get_or_init(|| observer).clone();
    let mut running = Running {
        listening,
        observer,
        _end_caches: EndCaches(caches.clone()),
        env,
        journal,
        caches,
        recorder,
        controllers,
        runnables: Vec::new(),
        webhooks,
        leadership,
        grace,
        stop: stop.drop_guard(),
        close_events: close_events.drop_guard(),
        events,
    };
    for Launched { name, starting, .. } in &mut running.controllers {
        let mut pending = Vec::new();
        // Let go of: an informer that nobody else holds any more is not needed.
        for informer in std::mem::take(starting).all() {
            if let SourceState::Pending(_) = informer.wait_for_state(is_decided).await {
                pending.push(informer.kind().to_string());
            }
        }
        if !pending.is_empty() {
            // Why, the log has already.
            tracing::warn!(controller = %name, sources = pending.join(", "), "waiting for sources");
        }
    }
    for runnable in runnables {
        let (name, fence) = (runnable.name().clone(), running.leadership.fence.clone());
        let (client, env) = (world.client.clone(), world.env.clone());
        let client = if runnable.is_leading() {
            client::while_open(client, env.clone(), fence.clone())
        } else {
            client::patient(client, env.clone())
        };
        let (caches, stop) = (world.caches.clone(), world.stop.child_token());
        let work = Work { client: ClientOf(client), env, caches, stop };
        let task = runnable.start(work, fence, running.observer.trouble.clone());
        running.runnables.push((name, task));
    }
    Ok(running)
}

impl Running {
    /// The journal of all its controllers.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.journal.clone()
    }

    /// The caches that its controllers share.
    #[must_use]
    pub fn caches(&self) -> Caches {
        self.caches.clone()
    }

    /// The recorder of events.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The sources that do not work at the moment, each with the reason.
    #[must_use]
    pub fn pending(&self) -> Vec<String> {
        let states = self.caches.informers().into_iter().map(|informer| informer.state());
        states
            .filter_map(|state| match state {
                SourceState::Pending(why) => Some(why),
                _ => None,
            })
            .collect()
    }

    /// How it is: every source, and the lease.
    #[must_use]
    pub fn health(&self) -> Health {
        self.observer.health()
    }

    /// Adds a question to the readiness, as [`Manager::with_check`] does before the start.
    ///
    /// ```
    /// # homeostat_testing::on_cluster(async |cluster| {
    /// # let running = cluster.manager().start().await.unwrap();
    /// running.add_check("weather", || Some("it rains".to_owned()));
    /// assert_eq!(running.health().to_string(), "not ok weather: it rains\n");
    /// # running.stop().await.unwrap();
    /// # });
    /// ```
    pub fn add_check(
        &self,
        name: &str,
        problem: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) {
        self.observer.probes.add(Probe::new(name, problem));
    }

    /// Its metrics, as OpenMetrics text. [`Manager::listen`] adds those of the process (`process_*`),
    /// which no seed repeats.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.observer.metrics()
    }

    /// Where it answers probes; `None` unless [`Manager::listen`] was asked for.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listening.as_ref().map(|listening| listening.address)
    }

    /// Where it answers webhooks; `None` unless [`Manager::webhooks`] was asked for.
    #[must_use]
    pub fn webhook_address(&self) -> Option<SocketAddr> {
        self.webhooks.as_ref().map(|serving| serving.address)
    }

    /// Whether this process works: it holds the lease, or there is none.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.leadership.fence.is_open()
    }

    /// Waits until [`Self::is_leading`].
    pub async fn wait_until_leading(&self) {
        self.leadership.fence.opened().await;
    }

    /// Waits until a runnable fails, and says how; for ever if none does.
    pub async fn failed(&self) -> Error {
        self.observer.trouble.wait().await
    }

    /// Stops intake, lets running reconciles, runnables and then answers of webhooks finish within
    /// the grace, flushes events, gives the lease back.
    ///
    /// # Errors
    /// When something had to be dropped because it did not finish in time; everything is stopped
    /// all the same.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        let (mut controllers, mut runnables) = (self.controllers, self.runnables);
        for controller in &controllers {
            controller.queue.shut_down_now();
        }
        let finish = async {
            for controller in &mut controllers {
                while controller.workers.join_next().await.is_some() {}
            }
            for (_, task) in &mut runnables {
                while task.join_next().await.is_some() {}
            }
        };
        let began = self.env.instant();
        let _ = self.env.timeout(self.grace, finish).await;
        let working = controllers.iter().filter(|one| !one.workers.is_empty());
        let still = runnables.iter().filter(|(_, task)| !task.is_empty());
        let late = working.map(|one| format!("reconciles of {}", one.name));
        let mut late: Vec<String> = late.chain(still.map(|(name, _)| name.to_string())).collect();
        drop((controllers, runnables));
        self.caches.stop();
        if let Some(webhooks) = self.webhooks {
            // After the reconciles, whose writes it may be asked about.
            let taken = self.env.instant().saturating_duration_since(began);
            let left = self.grace.saturating_sub(taken);
            if !webhooks.close(&self.env, left).await {
                late.push("answers of webhooks".to_owned());
            }
        }
        drop(self.close_events);
        if self.env.timeout(FLUSH, self.events).await.is_err() {
            tracing::warn!("events were not written in time");
        }
        if let Some(listening) = self.listening {
            listening.close().await;
        }
        if self.env.timeout(RELEASE, self.leadership.release()).await.is_err() {
            tracing::warn!("the lease was not given back in time");
        }
        if late.is_empty() {
            return Ok(());
        }
        let (late, grace) = (late.join(", "), self.grace);
        Err(Error::transient(format!("{late} did not finish within {grace:?}: dropped")))
    }
}

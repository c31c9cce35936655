//! One task per Pod: tells the machine what happens and does what it says.

mod refresh;
mod report;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as ContainerSpec, Pod};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::node::configuration::Problem;
use crate::node::container::{self, Running};
use crate::node::directory::Present;
use crate::node::host::Host;
use crate::node::machine::{Action, Machine, Notice, ProbeKind, StartFailure};
use crate::node::prober::Prober;
use crate::node::remains;
use crate::node::volumes::Volumes;
use refresh::Refresh;

/// How long containers may take to end when the agent stops: as long as `docker stop` waits, since
/// somebody sits there and waits too.
const LONGEST_LEAVE: Duration = Duration::from_secs(10);
/// What sidecars may take beyond that.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// What a Pod's task is told.
#[derive(Debug)]
pub(in crate::node) enum Message {
    /// The object is new or changed.
    Pod(Box<Pod>),
    /// The object is gone: end everything now.
    Gone,
    /// The agent stops: everything is asked to end.
    Leave,
    /// A container was started, or not.
    Started { name: String, attempt: i32, outcome: Result<Running, StartFailure> },
    /// A container ended.
    Exited { name: String, code: i32, words: Option<String> },
    /// A probe was answered.
    Probed { name: String, attempt: i32, kind: ProbeKind, answer: Result<(), String> },
    /// The volumes were brought up to date; when a token in them is to be renewed.
    Refreshed(Result<Option<Timestamp>, Problem>),
}

/// The way to a Pod's task.
#[derive(Debug)]
pub(in crate::node) struct Mailbox {
    sender: mpsc::Sender<Message>,
    poked: Arc<Notify>,
}

impl Mailbox {
    /// Tells it something; a task that has ended hears nothing.
    pub(in crate::node) async fn send(&self, message: Message) {
        let _ = self.sender.send(message).await;
    }

    /// Tells it that a Secret or ConfigMap of its namespace changed. That waits beside the other
    /// messages, and is heard however many there are.
    pub(in crate::node) fn poke(&self) {
        self.poked.notify_one();
    }

    /// Whether the task has ended.
    pub(in crate::node) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

pub(in crate::node) struct Worker {
    host: Arc<Host>,
    machine: Machine,
    ip: Ipv4Addr,
    own_ip: bool,
    messages: mpsc::Receiver<Message>,
    sender: mpsc::Sender<Message>,
    poked: Arc<Notify>,
    running: BTreeMap<String, Live>,
    tasks: JoinSet<()>,
    volumes: Arc<Volumes>,
    refresh: Refresh,
    reported: Value,
    retry: Option<Instant>,
    /// Until when containers may take to end because the agent stops.
    leave_by: Option<Instant>,
    gone: bool,
}

/// A running container and the probes that ask it.
struct Live {
    running: Running,
    started: watch::Sender<bool>,
    /// Whether it was asked to stop.
    stopping: bool,
    /// Ends with this handle.
    _probers: JoinSet<()>,
}

impl Worker {
    /// Starts the task of a Pod; it ends when the Pod is gone from the API and from the host.
    pub(in crate::node) fn spawn(host: Arc<Host>, pod: Pod, tasks: &mut JoinSet<()>) -> Mailbox {
        let (sender, messages) = mpsc::channel(64);
        let mailbox = Mailbox { sender: sender.clone(), poked: Arc::default() };
        let poked = mailbox.poked.clone();
        tasks.spawn(async move {
            let host_network = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
            let taken = if host_network { None } else { addresses(&host).take() };
            let now = host.env.now();
            let worker = Self {
                ip: taken.unwrap_or_else(Host::ip),
                own_ip: taken.is_some(),
                machine: Machine::new(pod, now),
                host,
                messages,
                sender,
                poked,
                running: BTreeMap::new(),
                tasks: JoinSet::new(),
                volumes: Arc::default(),
                refresh: Refresh::default(),
                reported: Value::Null,
                retry: None,
                leave_by: None,
                gone: false,
            };
            worker.run().await;
        });
        mailbox
    }

    async fn run(mut self) {
        self.machine.prepared();
        self.appear().await;
        while !self.gone {
            let now = self.host.env.now();
            let actions = self.machine.advance(now);
            let release = actions.contains(&Action::Release);
            self.perform(actions);
            self.show();
            self.report().await;
            if release {
                self.report_at_last().await;
                self.release().await;
                break;
            }
            if self.leave_by.is_some() && self.running.is_empty() {
                break;
            }
            self.wait().await;
            self.refresh_when_due();
        }
        self.clean_up().await;
    }

    /// Waits for the next message or the next time something is due.
    async fn wait(&mut self) {
        let env = self.host.env.clone();
        let wake = self.machine.wake().into_iter().chain(self.refresh.due()).min();
        let due = wake.map(|wake| {
            let wait = wake.duration_since(env.now());
            env.instant() + Duration::try_from(wait).unwrap_or_default()
        });
        let due = due.into_iter().chain(self.retry).chain(self.leave_by).min();
        let timer = async {
            match due {
                Some(due) => env.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.host.hurry.cancelled() => self.gone = true,
            message = self.messages.recv() => match message {
                Some(message) => self.handle(message),
                None => self.gone = true,
            },
            () = self.poked.notified() => {
                self.machine.poke(env.now());
                self.refresh_volumes();
            }
            () = timer => self.gone |= self.leave_by.is_some_and(|by| by <= env.instant()),
        }
        while let Ok(message) = self.messages.try_recv() {
            self.handle(message);
        }
    }

    fn handle(&mut self, message: Message) {
        let now = self.host.env.now();
        match message {
            Message::Pod(pod) => self.machine.update(*pod),
            Message::Gone => self.gone = true,
            Message::Leave => {
                self.machine.leave(LONGEST_LEAVE);
                self.leave_by = Some(self.host.env.instant() + LONGEST_LEAVE + LAST_MOMENT);
            }
            Message::Started { name, attempt, outcome: Ok(running) } => {
                self.machine.started(&name, running.id.clone(), now);
                self.refresh.by(running.renewal);
                self.adopt(name, attempt, running);
            }
            Message::Refreshed(outcome) => self.refreshed(outcome),
            Message::Started { name, outcome: Err(failure), .. } => {
                let actions = self.machine.refused(&name, failure, now);
                self.perform(actions);
            }
            Message::Exited { name, code, words } => {
                self.running.remove(&name);
                self.machine.exited(&name, code, words, now);
            }
            Message::Probed { name, attempt, kind, answer } => {
                let actions = self.machine.probed(&name, attempt, kind, answer, now);
                self.perform(actions);
                if let Some(live) = self.running.get(&name) {
                    let started = self.machine.is_started(&name);
                    live.started.send_if_modified(|was| std::mem::replace(was, started) != started);
                }
            }
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Event(notice) => self.host.note(self.machine.pod(), &notice),
                Action::Start { container, attempt } => self.start(container, attempt),
                Action::Stop { container, grace } => self.stop(&container, grace),
                Action::Release => {}
            }
        }
    }

    fn spec(&self, name: &str) -> Option<ContainerSpec> {
        self.machine.container(name).cloned()
    }

    fn start(&mut self, name: String, attempt: i32) {
        let Some(spec) = self.spec(&name) else { return };
        let (host, pod, ip) = (self.host.clone(), self.machine.pod().clone(), self.ip);
        let (sender, volumes) = (self.sender.clone(), self.volumes.clone());
        self.tasks.spawn(async move {
            let outcome = container::start(&host, &pod, &spec, attempt, ip, &volumes).await;
            // Nobody to tell means that the Pod is gone; the handle ends the container.
            let _ = sender.send(Message::Started { name, attempt, outcome }).await;
        });
    }

    /// Watches over a container that just started.
    fn adopt(&mut self, name: String, attempt: i32, running: Running) {
        let Some(spec) = self.spec(&name) else { return };
        let (namespace, pod, uid) = self.names();
        self.host.directory.change(&namespace, &pod, &uid, |present| {
            let runs = present.containers.entry(name.clone()).or_default();
            runs.process = Some(running.process.clone());
            runs.older = runs.newest.replace(running.log.clone());
            runs.waits = None;
        });
        let (started, watcher) = watch::channel(self.machine.is_started(&name));
        let mut probers = JoinSet::new();
        for kind in ProbeKind::ALL {
            let Some(probe) = kind.of(&spec).cloned() else { continue };
            let (host, ip) = (self.host.clone(), self.ip);
            let (container, running) = (spec.clone(), running.clone());
            let prober = Prober { host, container, running, attempt, ip, kind, probe };
            probers.spawn(prober.run(watcher.clone(), self.sender.clone()));
        }
        let (host, sender, ip) = (self.host.clone(), self.sender.clone(), self.ip);
        let (pod, watched, container) = (self.machine.pod().clone(), running.clone(), name.clone());
        self.tasks.spawn(async move {
            let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.post_start.as_ref());
            if let Some(hook) = hook
                && let Err(message) = watched.hook(&host, hook, &spec, ip).await
            {
                let reason = "FailedPostStartHook";
                host.note(&pod, &Notice { warning: true, reason, message });
                watched.kill().await;
            }
            let (code, words) = watched.end(&spec).await;
            // Nobody to tell means that the Pod is gone.
            let _ = sender.send(Message::Exited { name: container, code, words }).await;
        });
        let live = Live { running, started, stopping: false, _probers: probers };
        self.running.insert(name, live);
    }

    fn stop(&mut self, name: &str, grace: Duration) {
        let Some(spec) = self.spec(name) else { return };
        let Some(live) = self.running.get_mut(name) else { return };
        let asked_before = std::mem::replace(&mut live.stopping, true);
        let (host, running, ip) = (self.host.clone(), live.running.clone(), self.ip);
        self.tasks.spawn(async move {
            if asked_before {
                running.kill_after(&host, grace).await;
            } else {
                running.stop(&host, &spec, ip, grace).await;
            }
        });
    }

    fn names(&self) -> (String, String, String) {
        let meta = &self.machine.pod().metadata;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        (text(&meta.namespace), text(&meta.name), text(&meta.uid))
    }

    /// Shows that the Pod begins to run here, or goes on.
    async fn appear(&self) {
        let (namespace, name, uid) = self.names();
        let containers = remains::runs(&self.host, &uid).await;
        let present = Present { uid, ip: Some(self.ip), containers };
        self.host.directory.show(&namespace, &name, present);
    }

    /// Shows which containers are waited for, and why.
    fn show(&self) {
        let (namespace, name, uid) = self.names();
        self.host.directory.change(&namespace, &name, &uid, |present| {
            for (container, waits) in self.machine.waits() {
                let runs = present.containers.entry(container.to_owned()).or_default();
                runs.waits = waits.map(Into::into);
            }
        });
    }

    async fn clean_up(mut self) {
        for live in self.running.values() {
            live.running.kill().await;
            live.running.process.wait().await;
        }
        self.running.clear();
        self.tasks.shutdown().await;
        let (namespace, name, uid) = self.names();
        self.host.directory.hide(&namespace, &name, &uid);
        if self.own_ip {
            addresses(&self.host).release(self.ip);
        }
        // The Pod is not gone when only the agent stops: the next one goes on with what is there.
        if !self.host.stopping.is_cancelled() {
            remains::remove(&self.host, &uid).await;
        }
    }
}

fn addresses(host: &Host) -> std::sync::MutexGuard<'_, crate::node::address::Addresses> {
    host.addresses.lock().unwrap_or_else(PoisonError::into_inner)
}

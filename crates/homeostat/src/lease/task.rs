//! Runs a [`Machine`] on the API: one `Lease` of `coordination.k8s.io/v1`, compare and swap.

use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, FusedFuture};
use homeostat_env::Env;
use k8s_openapi::api::coordination::v1::Lease as Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fence::Hand;
use super::machine::{Action, Event, Machine, Record, Terms};
use super::{Identity, Lease};
use crate::client::{is_told, told_to_wait};

/// Contends for the lease until `stop`, then gives it back. Until `warm` ends, others go first.
pub(crate) async fn run(
    client: kube::Client,
    env: Env,
    lease: Lease,
    hand: Hand,
    warm: BoxFuture<'static, ()>,
    stop: CancellationToken,
) {
    let Lease { namespace, name, identity, duration, deadline, retry } = lease;
    let identity = match identity {
        Identity::Given(identity) => identity,
        Identity::Host => format!("{}_{}", env.host(), env.uid()),
    };
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let post = Post { api: Api::namespaced(client, &namespace), env: env.clone(), name, hand };
    let mut machine = Machine::new(Terms { identity: identity.clone(), duration, deadline, retry });
    let mut known_holder = identity;
    let mut warm = warm.fuse();
    machine.set_ready((&mut warm).now_or_never().is_some());
    let origin = env.instant();
    let mut event = Event::Go;
    loop {
        let now = env.instant().saturating_duration_since(origin);
        let action = machine.step(event, now, env.random_unit());
        publish(&post.hand.until, machine.leads_until().map(|until| origin + until), &post.name);
        if machine.is_anothers(now) {
            post.hand.settled();
        }
        // No answer is waited for longer than the lease is held by anybody.
        let limit = deadline / 2;
        event = match action {
            Action::End => return,
            Action::Wait(delay) => tokio::select! {
                biased;
                () = stop.cancelled() => Event::Stop,
                () = &mut warm, if !warm.is_terminated() => {
                    machine.set_ready(true);
                    Event::Go
                }
                () = env.sleep(delay) => Event::Go,
            },
            Action::Read => {
                let heard = post.hear(env.timeout(limit, post.read()).await.ok());
                tell_holder(&post.name, &heard, &mut known_holder);
                heard
            }
            write @ Action::Write { .. } => {
                let answer = env.timeout(limit, post.write(write)).await.ok();
                if answer.is_none() {
                    post.hand.not_written("no answer");
                }
                post.hear(answer)
            }
        };
    }
}

fn publish(held: &watch::Sender<Option<Instant>>, until: Option<Instant>, lease: &str) {
    held.send_if_modified(|old| {
        match (&old, until) {
            (None, Some(_)) => tracing::info!(lease, "leading"),
            (Some(_), None) => tracing::info!(lease, "no longer leading"),
            _ => {}
        }
        let changed = *old != until;
        *old = until;
        changed
    });
}

/// Says for whom this process waits, once for each.
fn tell_holder(lease: &str, heard: &Event, known: &mut String) {
    if let Event::Found(Some(Record { holder, .. })) = heard
        && !holder.is_empty()
        && holder != known
    {
        tracing::info!(lease, holder, "another process leads; waiting");
        known.clone_from(holder);
    }
}

struct Post {
    api: Api<Object>,
    env: Env,
    name: String,
    hand: Hand,
}

impl Post {
    /// Takes note of whether there was an answer.
    fn hear(&self, answer: Option<Event>) -> Event {
        match answer {
            Some(trouble @ (Event::Failed | Event::Busy(_))) => trouble,
            Some(event) => {
                self.hand.heard();
                event
            }
            None => {
                self.hand.failed("no answer");
                Event::Failed
            }
        }
    }

    async fn read(&self) -> Event {
        match self.api.get_opt(&self.name).await {
            Ok(found) => Event::Found(found.map(record)),
            Err(error) => self.failed(&error),
        }
    }

    async fn write(&self, write: Action) -> Event {
        let Action::Write { over, holder, duration, transitions, acquires } = write else {
            return Event::Failed;
        };
        let now = MicroTime(self.env.now());
        let mut spec = json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": duration.as_secs().max(1),
            "leaseTransitions": transitions,
            "renewTime": now,
        });
        if acquires {
            spec["acquireTime"] = json!(now);
        }
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "resourceVersion": over },
            "spec": spec,
        });
        let written = match &over {
            // A patch leaves alone what others have put on the lease.
            Some(_) => {
                let patch = Patch::Merge(&body);
                self.api.patch(&self.name, &PatchParams::default(), &patch).await
            }
            None => match serde_json::from_value(body) {
                Ok(lease) => self.api.create(&PostParams::default(), &lease).await,
                Err(error) => Err(kube::Error::SerdeError(error)),
            },
        };
        match written {
            Ok(lease) => {
                self.hand.settled();
                Event::Written(lease.metadata.resource_version.unwrap_or_default())
            }
            // Somebody else wrote it or made it.
            Err(kube::Error::Api(status)) if status.code == 409 => Event::Conflict,
            // Somebody removed it. What is made has nothing that could be missing but its namespace.
            Err(kube::Error::Api(status)) if status.code == 404 && over.is_some() => {
                Event::Conflict
            }
            Err(error) => {
                self.hand.not_written(error.to_string());
                self.failed(&error)
            }
        }
    }

    fn failed(&self, error: &kube::Error) -> Event {
        let lease = &*self.name;
        if is_told(error) {
            tracing::debug!(lease, %error, "the lease could not be reached");
        } else {
            tracing::warn!(lease, %error, "the lease could not be reached");
        }
        self.hand.failed(error.to_string());
        match told_to_wait(error) {
            Duration::ZERO => Event::Failed,
            told => Event::Busy(told),
        }
    }
}

fn record(lease: Object) -> Record {
    let spec = lease.spec.unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(seconds.unwrap_or(0)),
        transitions: spec.lease_transitions.unwrap_or(0),
        version: lease.metadata.resource_version.unwrap_or_default(),
    }
}

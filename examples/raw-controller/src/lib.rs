//! A controller loop written by hand: an informer, a queue, and a function.
//!
//! It gives every Deployment with the label `example.homeostat.dev/sidecar=wanted` one more
//! container, exactly once. This is what `homeostat::Controller` does for you, in the open.

use std::pin::pin;
use std::time::Duration;

use homeostat::cache::{Caches, Delta, Scope};
use homeostat::k8s_openapi::api::apps::v1::Deployment;
use homeostat::queue::Queue;
use homeostat::trigger::Trigger;
use homeostat::{Env, Key, Kind, Result, client};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

/// Deployments with this label get the sidecar.
pub const SELECTOR: &str = "example.homeostat.dev/sidecar=wanted";

/// The name of the added container.
pub const SIDECAR: &str = "sidecar";

/// How long a stop waits for the Deployment that is being worked on: an answer may never end.
const GRACE: Duration = Duration::from_secs(10);

/// Watches Deployments and works on their keys until `stop` is done.
///
/// # Errors
/// None of its own: a Deployment that cannot be patched is tried again with backoff.
pub async fn run(client: kube::Client, env: Env, stop: impl Future<Output = ()>) -> Result<()> {
    // Observe: one shared cache of the Deployments that carry the label ...
    let caches = Caches::new(client.clone(), env.clone());
    let client = client::patient(client, env.clone());
    let scope = Scope { labels: Some(SELECTOR.to_owned()), ..Scope::default() };
    let deployments = caches.informer(Kind::of::<Deployment>(), scope);
    // ... whose changes become keys in a queue: one entry per key, however many events.
    let queue = Queue::new(env.clone());
    let changed = queue.clone();
    deployments.on_event(move |delta: &Delta| {
        let key = delta.key().clone();
        let trigger = Trigger::Event {
            change: delta.change,
            kind: Kind::of::<Deployment>(),
            key: key.clone(),
        };
        changed.add(key, trigger);
    });
    deployments.start();
    deployments.wait_for_sync().await;
    tracing::info!("running");

    let work = async {
        while let Some(item) = queue.get().await {
            match deployments.get::<Deployment>(&item.key) {
                Ok(Some(deployment)) => match reconcile(&client, &item.key, &deployment).await {
                    Ok(()) => queue.forget(&item.key),
                    Err(error) => {
                        tracing::warn!(key = %item.key, %error, "will be tried again");
                        queue.add_rate_limited(item.key.clone());
                    }
                },
                // Gone, or not readable: nothing to do until it changes.
                Ok(None) | Err(_) => queue.forget(&item.key),
            }
            queue.done(&item.key);
        }
    };
    let mut work = pin!(work);
    tokio::select! {
        biased;
        () = stop => {
            // What is under way is finished; whatever else waits is found again at the next start.
            queue.shut_down_now();
            if env.timeout(GRACE, work).await.is_err() {
                tracing::warn!("stopped in the middle of a Deployment");
            }
        }
        () = &mut work => {}
    }
    caches.stop();
    Ok(())
}

/// Compare and act. Running it twice changes nothing the second time.
async fn reconcile(client: &kube::Client, key: &Key, deployment: &Deployment) -> Result<()> {
    let containers =
        deployment.spec.as_ref().and_then(|spec| Some(&spec.template.spec.as_ref()?.containers));
    if containers.into_iter().flatten().any(|container| container.name == SIDECAR) {
        return Ok(());
    }
    let sidecar = json!({"name": SIDECAR, "image": "busybox", "command": ["sh", "-c", "while :; do sleep 3600; done"]});
    // Containers merge by name, so a patch that raced with another one still adds only one.
    let patch = json!({"spec": {"template": {"spec": {"containers": [sidecar]}}}});
    let namespace = key.namespace().unwrap_or_default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    deployments.patch(key.name(), &PatchParams::default(), &Patch::Strategic(patch)).await?;
    tracing::info!(%key, "added the sidecar");
    Ok(())
}

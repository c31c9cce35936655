//! Keeps the status of ResourceQuotas: what a namespace has in use. Admission charges what is
//! made; this gives back what went, and counts anew when a quota says something else.
//!
//! A quota is read before what it counts, and written only if it is still the same: whatever is
//! charged in between makes the write fail, and the count begins again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat::cache::{Delta, Entry};
use homeostat::kube::Client;
use homeostat::queue::Queue;
use homeostat::{Env, Error, Key, Kind, Result, Trigger};
use homeostat_quota::{Amounts, Measure, Quantity, matches_scopes};
use http::{Request, header};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::{Value, json};

use crate::gc::Monitor;
use crate::write;

/// Kinds that are measured by more than their number.
const WEIGHED: &[&str] = &["pods", "services", "persistentvolumeclaims"];
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Namespaces whose quotas must be counted anew.
#[derive(Debug, Clone)]
pub(crate) struct Recounts {
    pub(crate) namespaces: Queue<Arc<str>>,
    /// Namespaces that have a quota at all.
    limited: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

impl Recounts {
    pub(crate) fn new(env: Env) -> Self {
        Self { namespaces: Queue::new(env), limited: Arc::default() }
    }

    /// Asks for a recount if the change may have given something back.
    pub(crate) fn tell(&self, kind: &Kind, delta: &Delta) {
        let Some(namespace) = delta.key().namespace() else { return };
        let mut limited = self.limited.lock().unwrap_or_else(PoisonError::into_inner);
        let matters = if *kind == Kind::of::<ResourceQuota>() {
            limited.insert(Arc::from(namespace));
            let value = |entry: &Arc<Entry>| entry.value().unwrap_or_default();
            let (old, new) = (delta.old.as_ref().map(value), delta.new.as_ref().map(value));
            let spec = |quota: &Value| quota["spec"].clone();
            old.as_ref().map(spec) != new.as_ref().map(spec)
                || new.is_some_and(|new| is_stale(&new))
        } else {
            limited.contains(namespace) && gives_back(kind, delta)
        };
        if matters {
            let trigger = Trigger::Source("quota".into());
            self.namespaces.add(Arc::from(namespace), trigger);
        }
    }

    fn forget(&self, namespace: &str) {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
    }
}

/// Whether the status repeats other limits than those that hold.
fn is_stale(quota: &Value) -> bool {
    let limits = |path: &str| Amounts::read(quota.pointer(path));
    limits("/spec/hard") != limits("/status/hard")
}

fn gives_back(kind: &Kind, delta: &Delta) -> bool {
    match (&delta.old, &delta.new) {
        (Some(_), None) => true,
        (Some(old), Some(new)) if WEIGHED.contains(&resource(kind).as_str()) => {
            let resource = resource(kind);
            let usage = |entry: &Arc<Entry>| {
                let value = entry.value().unwrap_or_default();
                Measure::of(&resource).usage(&value, Timestamp::UNIX_EPOCH)
            };
            usage(old) != usage(new)
        }
        _ => false,
    }
}

fn resource(kind: &Kind) -> String {
    match kind.group() {
        "" => kind.plural().to_owned(),
        group => format!("{}.{group}", kind.plural()),
    }
}

/// Counts the quotas of a namespace anew.
pub(crate) async fn recount(
    client: &Client,
    env: &Env,
    monitor: &Monitor,
    recounts: &Recounts,
    namespace: &str,
) -> Result<()> {
    let kind = Kind::of::<ResourceQuota>();
    let quotas = list(client, &kind, namespace, "application/json").await?;
    if quotas.is_empty() {
        recounts.forget(namespace);
        return Ok(());
    }
    let kinds = monitor.namespaced_kinds();
    for quota in &quotas {
        let hard = Amounts::read(quota.pointer("/spec/hard"));
        let mut used = Amounts::read(quota.pointer("/status/used"));
        for counted in kinds.iter().filter(|kind| is_limited(&hard, kind)) {
            used = replace(&used, &count(client, env, counted, quota, &hard).await?);
        }
        let used = used.filtered(|name, _| hard.get(name).is_some());
        let status = json!({"hard": hard.to_value(), "used": used.to_value()});
        if quota.get("status") == Some(&status) {
            continue;
        }
        let text = |field: &str| quota["metadata"][field].as_str().unwrap_or_default();
        let mut body = quota.clone();
        body["status"] = status;
        let key = Key::namespaced(namespace, text("name"));
        write::put(client, &kind, &key, "status", &body).await?;
    }
    Ok(())
}

fn is_limited(hard: &Amounts, kind: &Kind) -> bool {
    let resource = resource(kind);
    hard.names().any(|name| Measure::of(&resource).measures(name))
}

fn replace(known: &Amounts, new: &Amounts) -> Amounts {
    let mut all = known.filtered(|name, _| new.get(name).is_none());
    all.add(new);
    all
}

/// What the objects of one kind use of what the quota limits.
async fn count(
    client: &Client,
    env: &Env,
    kind: &Kind,
    quota: &Value,
    hard: &Amounts,
) -> Result<Amounts> {
    let resource = resource(kind);
    let measure = Measure::of(&resource);
    let mut used = Amounts::default();
    for name in hard.names().filter(|name| measure.measures(name)) {
        used.set(name, Quantity::ZERO);
    }
    let form =
        if WEIGHED.contains(&resource.as_str()) { "application/json" } else { METADATA_ONLY };
    let namespace = quota["metadata"]["namespace"].as_str().unwrap_or_default();
    for object in list(client, kind, namespace, form).await? {
        if matches_scopes(quota, &resource, &object) {
            let usage = measure.usage(&object, env.now());
            used.add(&usage.filtered(|name, _| used.get(name).is_some()));
        }
    }
    Ok(used)
}

/// The objects of a kind as the API has them now.
async fn list(client: &Client, kind: &Kind, namespace: &str, form: &str) -> Result<Vec<Value>> {
    let request = Request::get(kind.path(Some(namespace)))
        .header(header::ACCEPT, form)
        .body(Vec::new())
        .map_err(Error::terminal)?;
    let mut listed: Value = client.request(request).await?;
    match listed.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

//! Objects on their way out, in the form their kind speaks: where a webhook converts them, it is
//! asked here, about many at once. Everything else is shown from what is stored.

use std::sync::Arc;

use serde_json::Value;

use super::settle;
use crate::custom::Versions;
use crate::kinds::Kind;
use crate::registry::options::ListOptions;
use crate::registry::{Listed, Registry, Target, convert, webhook};
use crate::status::Status;
use crate::store::{Change, Stored};

/// About how many bytes of objects a webhook is asked about at once.
const BATCH: usize = 1024 * 1024;

/// The objects in the form the kind speaks. Only a webhook makes this wait.
///
/// # Errors
/// What is wrong with the webhook or its answer.
pub(crate) async fn objects(
    registry: &Registry,
    kind: &Kind,
    items: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>, Status> {
    let Some(custom) = kind.custom.as_ref().filter(|_| convert::is_by_webhook(kind)) else {
        return Ok(items);
    };
    let mut show = Show {
        registry,
        versions: &custom.versions,
        to: kind.api_version(),
        waiting: Vec::new(),
        size: 0,
        shown: items,
    };
    for at in 0..show.shown.len() {
        let item = show.shown[at].clone();
        let is_right = item.api_version == show.to;
        if is_right && convert::is_current(custom, &item) {
            continue;
        }
        let object = webhook::refreshed(custom, &item);
        if is_right {
            show.shown[at] = Arc::new(item.with_value(object));
        } else {
            show.enqueue(at, object, item.body.len()).await?;
        }
    }
    show.ask().await?;
    Ok(show.shown)
}

/// Objects of which some still wait for the webhook.
struct Show<'a> {
    registry: &'a Registry,
    versions: &'a Versions,
    to: String,
    /// Places and objects, all in one version: a question is about one.
    waiting: Vec<(usize, Value)>,
    size: usize,
    shown: Vec<Arc<Stored>>,
}

impl Show<'_> {
    async fn enqueue(&mut self, at: usize, object: Value, size: usize) -> Result<(), Status> {
        let other = |(_, last): &(usize, Value)| last["apiVersion"] != object["apiVersion"];
        if self.size > BATCH || self.waiting.last().is_some_and(other) {
            self.ask().await?;
        }
        self.size += size;
        self.waiting.push((at, object));
        Ok(())
    }

    /// Asks about those who wait and puts the answers into their places.
    async fn ask(&mut self) -> Result<(), Status> {
        self.size = 0;
        let waiting = std::mem::take(&mut self.waiting);
        let (places, objects): (Vec<usize>, Vec<Value>) = waiting.into_iter().unzip();
        if objects.is_empty() {
            return Ok(());
        }
        let Some(question) = webhook::question(self.versions, &objects, &self.to)? else {
            return Ok(());
        };
        let answer = settle::ask_one(self.registry, &question).await;
        let converted = webhook::converted(self.versions, &objects, &self.to, answer)?;
        for (at, object) in places.into_iter().zip(converted) {
            self.shown[at] = Arc::new(self.shown[at].with_value(object));
        }
        Ok(())
    }
}

/// One object in the form the kind speaks.
///
/// # Errors
/// As [`objects`].
pub(crate) async fn object(
    registry: &Registry,
    kind: &Kind,
    item: Arc<Stored>,
) -> Result<Arc<Stored>, Status> {
    let mut shown = objects(registry, kind, vec![item.clone()]).await?;
    Ok(shown.pop().unwrap_or(item))
}

/// The selected objects of a collection. What a selector sees is what is shown.
///
/// # Errors
/// As [`Registry::list`]; 429 as long as the webhook does not convert.
pub(crate) async fn list(
    registry: &Registry,
    target: &Target,
    options: &ListOptions,
) -> Result<Listed, Status> {
    let kind = &target.kind;
    if !convert::is_by_webhook(kind) {
        return registry.list(target, options);
    }
    let unconverted = |status: Status| {
        let what = format!("failed to list {}, Kind={}", kind.api_version(), kind.kind);
        Status::initializing(&format!("{what}: {}", status.message))
    };
    if options.selector.is_everything() {
        let mut listed = registry.list(target, options)?;
        listed.items = objects(registry, kind, listed.items).await.map_err(unconverted)?;
        return Ok(listed);
    }
    let (revision, items) = registry.everything_left(target, options)?;
    let items = objects(registry, kind, items).await.map_err(unconverted)?;
    Ok(Registry::select(target, options, revision, items.iter()))
}

/// Changes of objects in the form the kind speaks. A webhook is asked about each of them once, for all
/// who watch that version.
///
/// # Errors
/// As [`objects`].
pub(crate) async fn changes(
    registry: &Registry,
    kind: &Kind,
    changes: Vec<Arc<Change>>,
) -> Result<Vec<Arc<Change>>, Status> {
    let Some(custom) = kind.custom.as_ref().filter(|_| convert::is_by_webhook(kind)) else {
        return Ok(changes);
    };
    let name = format!("{} {}", kind.api_version(), custom.edition);
    // Everybody goes through them in the order of their revisions: nobody waits for somebody who
    // waits for them. Whoever leaves early leaves what they had to make to the next one.
    let (mut shown, mut open) = (Vec::new(), Vec::new());
    for change in &changes {
        let place = change.version(&name).lock_owned().await;
        shown.push(place.clone());
        if place.is_none() {
            open.push((shown.len() - 1, place));
        }
    }
    let states = open.iter().map(|(at, _)| &changes[*at]).flat_map(|change| {
        let previous = change.previous.iter().cloned();
        previous.chain([change.object.clone()])
    });
    let mut states = objects(registry, kind, states.collect()).await?.into_iter();
    for (at, mut place) in open {
        let change = &changes[at];
        let previous = change.previous.as_ref().and_then(|_| states.next());
        let Some(object) = states.next() else { break };
        *place = Some(change.converted(object, previous));
        shown[at] = place.clone();
    }
    Ok(shown.into_iter().flatten().collect())
}

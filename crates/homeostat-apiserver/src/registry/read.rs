//! Get, list and the start of a watch.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::options::{Freshness, ListOptions};
use super::{Registry, Target, components, convert, fields};
use crate::decode;
use crate::status::Status;
use crate::store::{Key, Range, StoreError, Stored, Watcher};

/// The version of the form in which tokens are written.
const VERSION: &str = "meta.k8s.io/v1";

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Zero for what has none.
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Stored>>,
    /// Empty on the last page.
    pub(crate) continue_token: String,
    /// How many objects are left; known only without selectors.
    pub(crate) remaining: Option<usize>,
}

impl Registry {
    /// The object.
    ///
    /// # Errors
    /// 404 when there is none.
    pub fn get(&self, target: &Target) -> Result<Arc<Stored>, Status> {
        if components::are_asked_for(&target.kind) {
            return self.component_of(target);
        }
        self.expire_events(&target.kind);
        self.store
            .snapshot()
            .get(&convert::resource(&target.kind), &target.key())
            .ok_or_else(|| Status::not_found(&target.kind, &target.name))
    }

    fn range(target: &Target) -> Range {
        let namespace = (target.kind.namespaced && !target.namespace.is_empty())
            .then(|| target.namespace.clone());
        Range { namespace, ..Range::default() }
    }

    /// The selected objects of a collection.
    pub(crate) fn list(&self, target: &Target, options: &ListOptions) -> Result<Listed, Status> {
        self.walk(target, options, |revision, objects| {
            Self::select(target, options, revision, objects)
        })
    }

    /// All objects of a collection from where the list begins, selected or not.
    pub(crate) fn everything_left(
        &self,
        target: &Target,
        options: &ListOptions,
    ) -> Result<(u64, Vec<Arc<Stored>>), Status> {
        self.walk(target, options, |revision, objects| (revision, objects.cloned().collect()))
    }

    /// Goes through a collection from where the list begins.
    fn walk<T>(
        &self,
        target: &Target,
        options: &ListOptions,
        visit: impl FnOnce(u64, &mut dyn Iterator<Item = &Arc<Stored>>) -> T,
    ) -> Result<T, Status> {
        fields::check(&target.kind, &options.selector)?;
        if components::are_asked_for(&target.kind) {
            return Ok(visit(0, &mut self.components().iter()));
        }
        self.expire_events(&target.kind);
        let mut range = Self::range(target);
        if options.continue_token.is_empty() {
            if let Freshness::Exact(revision) = options.freshness {
                range.at = Some(revision);
            }
        } else {
            let (revision, after) = read_token(&options.continue_token, &target.namespace)?;
            if matches!(options.freshness, Freshness::Exact(_) | Freshness::NotOlderThan(_)) {
                let words = "specifying resource version is not allowed when using continue";
                return Err(Status::bad_request(words));
            }
            range.at = revision;
            range.after = Some(after);
        }
        let oldest = self.oldest();
        if let Some(asked) = range.at.filter(|asked| *asked < oldest) {
            let expired = StoreError::Expired { asked, oldest };
            return Err(self.list_expired(expired, range.after.as_ref()));
        }
        let snapshot = self.store.snapshot();
        let (revision, mut objects) = snapshot
            .walk(&convert::resource(&target.kind), &range)
            .map_err(|error| self.list_expired(error, range.after.as_ref()))?;
        Ok(visit(revision, &mut objects))
    }

    /// The list of those that are selected, as long as it may be.
    pub(crate) fn select<'a>(
        target: &Target,
        options: &ListOptions,
        revision: u64,
        objects: impl Iterator<Item = &'a Arc<Stored>>,
    ) -> Listed {
        let most = if options.limit > 0 { options.limit } else { usize::MAX };
        let selects_all = options.selector.is_everything();
        let mut selected = objects.filter(|object| {
            selects_all || fields::matches(&target.kind, &options.selector, object)
        });
        let items: Vec<Arc<Stored>> = selected.by_ref().take(most).cloned().collect();
        // How many are left is told only where it costs nothing but counting.
        let left = if selects_all { selected.count() } else { selected.take(1).count() };
        let (mut continue_token, mut remaining) = (String::new(), None);
        if let Some(last) = items.last().filter(|_| left > 0) {
            continue_token = write_token(Some(revision), &last.key);
            remaining = selects_all.then_some(left);
        }
        Listed { revision, items, continue_token, remaining }
    }

    fn list_expired(&self, error: StoreError, after: Option<&Key>) -> Status {
        let Some(after) = after else { return Status::expired(error.to_string()) };
        let mut status = Status::expired(
            "The provided continue parameter is too old to display a consistent list result. \
             You can start a new list without the continue parameter, or use the continue token \
             in this response to retrieve the remainder of the results. Continuing with the \
             provided token results in an inconsistent list - objects that were created, modified, \
             or deleted between the time the first chunk was returned and now may show up in the list.",
        );
        status.continue_token = Some(write_token(None, after));
        status
    }

    /// A watcher of everything after `revision`.
    pub(crate) fn watch(&self, target: &Target, revision: u64) -> Result<Watcher, Status> {
        self.expire_events(&target.kind);
        self.store
            .watch(&convert::resource(&target.kind), revision)
            .map_err(|error| Status::expired(error.to_string()))
    }
}

fn write_token(revision: Option<u64>, last: &Key) -> String {
    let revision = revision.map_or_else(|| json!(-1), |revision| json!(revision));
    let start = format!("{}/{}\u{0}", last.namespace, last.name);
    URL_SAFE_NO_PAD.encode(json!({"v": VERSION, "rv": revision, "start": start}).to_string())
}

/// The revision (`None`: the current one) and the last key of the page before; a key may leave out
/// the namespace of the list.
fn read_token(token: &str, namespace: &str) -> Result<(Option<u64>, Key), Status> {
    let refused = |why: String| {
        Status::bad_request(format!("invalid continue token: continue key is not valid{why}"))
    };
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let stranger = token.bytes().position(|byte| !is_known(byte));
        let at = stranger.unwrap_or(token.len().saturating_sub(1));
        refused(format!(": illegal base64 data at input byte {at}"))
    })?;
    let token = decode::json(&bytes).map_err(|why| refused(format!(": {why}")))?.value;
    let text = |field: &str| token.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("v") != VERSION {
        let version = text("v");
        return Err(refused(format!(": server does not recognize this encoded version {version}")));
    }
    let revision = token.get("rv").and_then(Value::as_i64).unwrap_or_default();
    if revision == 0 {
        let why = format!(": incorrect encoded start resourceVersion (version {VERSION})");
        return Err(refused(why));
    }
    if text("start").is_empty() {
        return Err(refused(format!(": encoded start key empty (version {VERSION})")));
    }
    let start = text("start").strip_suffix('\u{0}').unwrap_or(text("start"));
    let (namespace, name) = start.split_once('/').unwrap_or((namespace, start));
    if !is_plain(name) {
        return Err(refused(format!(": {}", text("start"))));
    }
    Ok((u64::try_from(revision).ok().filter(|revision| *revision > 0), Key::new(namespace, name)))
}

/// Whether a name leads nowhere else.
fn is_plain(name: &str) -> bool {
    !name.contains('/') && !matches!(name, "." | "..")
}

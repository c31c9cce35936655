//! The generic engine: what every verb does to an object, driven by the object's [`Kind`] row.
//!
//! Reads go straight to the store. Writes go one at a time through a `Writer`, so whatever
//! admission looks at is still true when the write is committed. Nothing here waits or does IO.

mod access_rules;
mod addresses;
mod aggregated;
mod binding;
pub(crate) mod catalogue;
mod charge;
mod compaction;
mod components;
mod connect;
pub(crate) mod convert;
mod create;
mod definition_names;
mod delete;
mod eviction;
mod expiry;
pub(crate) mod fields;
mod flows;
mod generation;
mod hooks;
pub(crate) mod metadata;
pub(crate) mod named;
pub(crate) mod names;
mod node_ports;
pub mod options;
mod owners;
mod patch;
mod patched;
pub(crate) mod posted;
mod read;
pub(crate) mod reviews;
pub(crate) mod rules;
mod scale;
mod scaling;
pub mod selector;
mod storage_key;
mod subresource;
mod token;
mod turned_off;
pub(crate) mod update;
pub(crate) mod webhook;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use homeostat_env::Env;
use jiff::Timestamp;
use serde_json::Value;

use crate::admission::{Configuration, Inquiry};
use crate::aside;
use crate::auth::{Rbac, Tokens};
use crate::decode::Decoded;
use crate::kinds::Kind;
use crate::server::ServerConfig;
use crate::status::Status;
use crate::store::{Draft, Expect, Key, Pairs, Range, Store, StoreError, Stored};
use crate::webhook_client::{TlsConnector, WebhookConnector};

pub(crate) use crate::decode::moment::seconds;
pub use catalogue::Catalogue;
pub use delete::Deleted;
pub(crate) use flows::Flow;
pub(crate) use hooks::{TEMPLATE_COUNT, profile_of};
pub use patch::Patch;
pub(crate) use read::Listed;
pub(crate) use subresource::PartWrite;

/// A request's object: which kind, where.
#[derive(Debug, Clone)]
pub struct Target {
    /// The row.
    pub kind: Arc<Kind>,
    /// Empty for objects of the cluster, and for lists over all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
}

impl Target {
    pub(crate) fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }
}

/// A body as it was read.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// The value; of a key given twice the last one.
    pub value: Value,
    /// Paths of keys that were given twice.
    pub duplicates: Vec<String>,
}

impl From<Decoded> for Body {
    fn from(Decoded { value, duplicates }: Decoded) -> Self {
        Self { value, duplicates }
    }
}

/// A value that nobody wrote, or that was read before.
impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self { value, duplicates: Vec::new() }
    }
}

/// What a write left behind.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object as stored (or as it would be, in a dry run).
    pub object: Arc<Stored>,
    /// Whether it is new.
    pub created: bool,
    /// What the client should be told.
    pub warnings: Vec<String>,
}

/// All objects and kinds of one server.
#[derive(Debug)]
pub struct Registry {
    pub(crate) env: Env,
    pub(crate) store: Store,
    pub(crate) config: ServerConfig,
    pub(crate) tokens: Tokens,
    pub(crate) rbac: Rbac,
    pub(crate) admission: Configuration,
    webhooks: RwLock<Arc<dyn WebhookConnector>>,
    catalogue: RwLock<Arc<Catalogue>>,
    /// The version of the catalogue, for those who wait for another one.
    served: tokio::sync::watch::Sender<u64>,
    events: expiry::Expiry,
    compaction: compaction::Compaction,
    node_ports: node_ports::NodePorts,
    flows: flows::Flows,
    definition_names: definition_names::DefinitionNames,
    aggregated: aggregated::Aggregated,
    /// Whether something was removed that nobody can do without, or changed that the server looks
    /// after.
    bereft: AtomicBool,
    /// Where the API is served, once it is.
    address: Mutex<Option<SocketAddr>>,
    pen: Mutex<()>,
}

/// Whoever holds the pen: the only one who writes at this moment.
pub(crate) struct Writer<'a> {
    pub(crate) registry: &'a Registry,
    /// The time of the write.
    pub(crate) time: Timestamp,
    /// Nothing will be committed.
    dry_run: bool,
    /// Where questions to conversion webhooks are left; `None` when nobody would ask them.
    inquiry: Option<&'a Inquiry>,
    _pen: MutexGuard<'a, ()>,
}

impl Registry {
    /// A registry of what `store` holds that serves the built-in kinds.
    pub(crate) fn new(config: ServerConfig, store: Store) -> Self {
        let builtin = crate::kinds::builtin().iter().cloned();
        Self {
            env: config.env.clone(),
            store,
            admission: Configuration::default(),
            webhooks: RwLock::new(Arc::new(TlsConnector::default())),
            catalogue: RwLock::new(Arc::new(Catalogue::new(builtin, 1))),
            served: tokio::sync::watch::Sender::new(1),
            events: expiry::Expiry::default(),
            tokens: Tokens::new(config.signing_key.clone()),
            rbac: Rbac::default(),
            compaction: compaction::Compaction::new(config.compaction, config.env.now()),
            node_ports: node_ports::NodePorts::default(),
            flows: flows::Flows::default(),
            definition_names: definition_names::DefinitionNames::default(),
            aggregated: aggregated::Aggregated::default(),
            bereft: AtomicBool::new(false),
            address: Mutex::new(None),
            pen: Mutex::new(()),
            config,
        }
    }

    /// Takes up what follows from the objects that are there already: the kinds of definitions,
    /// deletions that were under way, and the end of Events.
    pub(crate) fn resume(&self) {
        let snapshot = self.store.newest();
        self.events.resume(snapshot.objects(expiry::EVENTS), self.env.now());
        snapshot
            .objects("apiservices.apiregistration.k8s.io")
            .for_each(|stored| self.aggregated.note(&stored.value()));
        let definitions = "customresourcedefinitions";
        let catalogue = self.catalogue();
        let Some(kind) = catalogue.find("apiextensions.k8s.io", "v1", definitions) else { return };
        let writer = self.writer();
        let Some(committed) = hooks::of(kind).committed else { return };
        for definition in snapshot.objects(&convert::resource(kind)) {
            committed(&writer, kind, None, &definition.value());
        }
    }

    /// Brings back what was removed and nobody can do without, and looks after what is its own.
    pub(crate) fn restore(&self) {
        if self.bereft.swap(false, Ordering::AcqRel) {
            crate::bootstrap::restore(self);
        }
    }

    /// Says that there is something to bring back or to look after.
    pub(crate) fn disturb(&self) {
        self.bereft.store(true, Ordering::Release);
    }

    /// Where the API is served, if it is.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers where the API is served.
    pub(crate) fn serve_at(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// The kinds served right now.
    #[must_use]
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves `rows`, and nothing else, for the definition of that name from now on.
    pub(crate) fn serve(&self, definition: &str, rows: Vec<Kind>) {
        let mut current = self.catalogue.write().unwrap_or_else(PoisonError::into_inner);
        let others = current.all().iter().filter(|kind| {
            kind.custom.as_ref().is_none_or(|custom| custom.definition != definition)
        });
        let rows = rows.into_iter().map(|mut row| {
            let before = current.find(&row.group, &row.version, &row.plural);
            let same = before.and_then(|before| before.custom.as_ref()).filter(|before| {
                row.custom.as_ref().is_some_and(|custom| custom.open_api == before.open_api)
            });
            let since = same.map_or_else(|| self.store.revision(), |before| before.since);
            if let Some(custom) = row.custom.as_mut().and_then(Arc::get_mut) {
                custom.since = since;
                custom.edition = current.version() + 1;
            }
            Arc::new(row)
        });
        let kinds = others.cloned().chain(rows);
        let next = Catalogue::new(kinds, current.version() + 1);
        let version = next.version();
        *current = Arc::new(next);
        self.served.send_replace(version);
    }

    /// Hears of every change of what is served.
    pub(crate) fn served(&self) -> tokio::sync::watch::Receiver<u64> {
        self.served.subscribe()
    }

    /// Whether the kind is still served, by the same definition.
    pub(crate) fn serves(&self, kind: &Kind) -> bool {
        let uid = |kind: &Kind| kind.custom.as_ref().map(|custom| custom.definition_uid.clone());
        let catalogue = self.catalogue();
        let now = catalogue.find(&kind.group, &kind.version, &kind.plural);
        now.is_some_and(|now| uid(now) == uid(kind))
    }

    /// The oldest revision that can still be listed.
    fn oldest(&self) -> u64 {
        self.compaction.oldest(self.env.now(), self.store.revision())
    }

    /// Lets go of the past that is old enough, and of Events whose time has come.
    pub(crate) fn grow_older(&self) {
        self.store.forget_until(self.oldest());
        self.events.expire(&self.store, self.env.now());
    }

    /// Lets go of Events whose time has come before somebody looks at them.
    pub(crate) fn expire_events(&self, kind: &Kind) {
        if convert::resource(kind) == expiry::EVENTS && self.events.is_due(self.env.now()) {
            let writer = self.writer();
            writer.registry.grow_older();
        }
    }

    /// Waits for the pen.
    pub(crate) fn writer(&self) -> Writer<'_> {
        let pen = aside::lock(&self.pen);
        Writer { registry: self, time: self.env.now(), dry_run: false, inquiry: None, _pen: pen }
    }

    /// Waits for the pen, for a write that was perhaps begun before.
    pub(crate) fn writer_at<'a>(&'a self, inquiry: &'a Inquiry) -> Writer<'a> {
        let pen = aside::lock(&self.pen);
        let time = inquiry.time(|| self.env.now());
        Writer { registry: self, time, dry_run: false, inquiry: Some(inquiry), _pen: pen }
    }

    /// The same, for a write that may be a trial.
    pub(crate) fn writer_for<'a>(&'a self, options: &'a options::WriteOptions) -> Writer<'a> {
        Writer { dry_run: options.dry_run, ..self.writer_at(&options.inquiry) }
    }

    /// Calls webhooks through `connector` from now on.
    pub(crate) fn connect_webhooks(&self, connector: Arc<dyn WebhookConnector>) {
        *self.webhooks.write().unwrap_or_else(PoisonError::into_inner) = connector;
    }

    /// The way to webhooks.
    pub(crate) fn webhooks(&self) -> Arc<dyn WebhookConnector> {
        self.webhooks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The object of a built-in kind, decoded.
    pub(crate) fn peek(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.store.get(resource, &Key::new(namespace, name)).map(|stored| stored.value())
    }

    /// A namespace, as it is kept: every write asks for it.
    pub(crate) fn namespace(&self, name: &str) -> Option<Arc<Stored>> {
        self.store.get("namespaces", &Key::new("", name))
    }
}

impl Writer<'_> {
    /// The current time as the API writes it: whole seconds.
    pub(crate) fn now(&self) -> String {
        seconds(self.time)
    }

    /// Commits the object in place of `live`, and does what follows from it.
    pub(crate) fn write(
        &self,
        kind: &Kind,
        key: &Key,
        expect: Expect,
        live: Option<&Value>,
        object: Value,
    ) -> Result<Arc<Stored>, Status> {
        let hooks = hooks::of(kind);
        if let Some(committing) = hooks.committing
            && self.meets(kind, key, expect)
        {
            committing(self, live, &object);
        }
        let Some(committed) = hooks.committed else {
            return self.commit(kind, key, expect, object, false);
        };
        let stored = self.commit(kind, key, expect, object.clone(), false)?;
        committed(self, kind, live, &object);
        Ok(stored)
    }

    /// Whether what is stored is as expected; it stays so as long as this writer has the pen.
    fn meets(&self, kind: &Kind, key: &Key, expect: Expect) -> bool {
        let stored = self.registry.store.get(&convert::resource(kind), key);
        match expect {
            Expect::Absent => stored.is_none(),
            Expect::Revision(revision) => stored.is_some_and(|it| it.revision == revision),
        }
    }

    /// Commits the object, or shows what would be committed.
    pub(crate) fn commit(
        &self,
        kind: &Kind,
        key: &Key,
        expect: Expect,
        object: Value,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Status> {
        let object = self.to_storage(kind, object)?;
        if dry_run {
            return Ok(Arc::new(transient(key, &object)));
        }
        let fields = fields::selectable(kind, &object);
        let resource = convert::resource(kind);
        let learned = Rbac::read(&resource, key, &object);
        let draft = Draft { value: object, fields };
        // Every commit tells how old what was before it is.
        self.registry.grow_older();
        let put = self.registry.store.put(&resource, key, expect, draft);
        let stored = put.map_err(|error| match (error, expect) {
            (StoreError::Failed, _) => Status::internal(error.to_string()),
            (_, Expect::Absent) => Status::already_exists(kind, &key.name),
            (_, Expect::Revision(_)) => Status::modified(kind, &key.name),
        })?;
        if let Some(learned) = learned {
            self.registry.rbac.learn(key, learned);
        }
        if resource == expiry::EVENTS {
            self.registry.events.written(&stored, self.registry.env.now());
        }
        Ok(stored)
    }
}

/// An object that is shown but not stored.
pub(crate) fn transient(key: &Key, object: &Value) -> Stored {
    Stored {
        revision: 0,
        key: key.clone(),
        api_version: object.get("apiVersion").and_then(Value::as_str).unwrap_or("").to_owned(),
        labels: Pairs::default(),
        fields: Pairs::default(),
        body: object.to_string().into(),
    }
}

//! One request about a resource, and the verbs that read and write it. Which verb it is, others
//! decide.

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, Response};

use super::body::Body;
use super::events::Events;
use super::negotiate::{Accepted, Form};
use super::render::View;
use super::{answer, decode, patches, settle, shown, watch};
use crate::admission::Inquiry;
use crate::auth::User;
use crate::metrics::Metrics;
use crate::registry::options::{FieldValidation, ListOptions, Query, WriteOptions};
use crate::registry::selector::Selector;
use crate::registry::{Patch, Registry, Target, Written, fields};
use crate::server::Shared;
use crate::status::Status;

/// One request for a resource, taken apart.
pub(crate) struct Call {
    pub(crate) registry: Arc<Registry>,
    pub(crate) user: Arc<User>,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) accepted: Accepted,
    pub(crate) body: Bytes,
    /// Whether this thread may wait for the disk: others go on elsewhere.
    pub(crate) may_wait: bool,
}

impl Call {
    pub(crate) fn write_options(&self, kind: &str) -> Result<WriteOptions, Status> {
        let agent = self.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let applies = kind == "PatchOptions" && patches::is_apply(&self.headers);
        let options = WriteOptions::parse(&self.query, agent.unwrap_or(""), kind, applies)?;
        Ok(WriteOptions { user: Some(self.user.clone()), ..options })
    }

    /// Runs a write until its webhooks have said everything it must know; gives what they have
    /// to say to the client, too.
    pub(crate) async fn settle<T>(
        &self,
        inquiry: &Inquiry,
        write: impl Fn() -> Result<T, Status>,
    ) -> Result<(T, Vec<String>), Status> {
        settle::settle(&self.registry, inquiry, write).await
    }

    /// The one attempt of a request that changes something: what it commits will be waited for, so
    /// this thread makes it durable itself if it may.
    pub(super) fn in_place<T>(&self, write: impl FnOnce() -> T) -> T {
        if self.may_wait { self.registry.store.in_place(write) } else { write() }
    }

    fn view(&self) -> Result<View, Status> {
        View::new(self.accepted, &self.query, self.registry.env.now())
    }

    /// The view of one object, which cannot be shown as a list.
    pub(super) fn view_of_one(&self) -> Result<View, Status> {
        if self.accepted.form == Form::MetadataList {
            let group = self.target.kind.group.split('.').next().filter(|name| !name.is_empty());
            let words = format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 (*{}.{})",
                group.unwrap_or("core"),
                self.target.kind.kind
            );
            return Err(Status::new(406, "NotAcceptable", words));
        }
        self.view()
    }

    /// The view of a list, which cannot be shown as one object.
    pub(super) fn view_of_many(&self) -> Result<View, Status> {
        if self.accepted.form == Form::Metadata {
            let kind = &self.target.kind;
            let group = kind.group.split('.').next().filter(|name| !name.is_empty());
            let words = format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{}.{})",
                group.unwrap_or("core"),
                kind.list_kind
            );
            return Err(Status::new(406, "NotAcceptable", words));
        }
        self.view()
    }

    /// Runs a write to its end and shows what it left behind.
    pub(crate) async fn write(
        &self,
        inquiry: &Inquiry,
        write: impl Fn() -> Result<Written, Status>,
    ) -> Result<Response<Body>, Status> {
        let (written, said) = self.settle(inquiry, || self.in_place(&write)).await?;
        let kind = &self.target.kind;
        let object = shown::object(&self.registry, kind, written.object).await?;
        let code = if written.created { 201 } else { 200 };
        let bytes = self.view_of_one()?.object(kind, &object);
        let mut response = answer::document(code, bytes, self.accepted.encoding);
        answer::warn(&mut response, &written.warnings);
        answer::warn(&mut response, &said);
        Ok(response)
    }

    pub(crate) async fn get(self) -> Result<Response<Body>, Status> {
        let asked = self.query.get("resourceVersion").map_or("", String::as_str);
        let asked = crate::registry::options::revision(asked).map_err(|status| {
            if self.target.kind.kind == "Event" && self.target.kind.custom.is_none() {
                // They are read past the cache, which has other words for it.
                return status;
            }
            let words = status.message.trim_start_matches("invalid resource version: ");
            Status::unexplained(words)
        })?;
        if let Some(revision) = asked {
            wait_for(&self.registry, revision).await?;
        }
        let object = self.registry.get(&self.target)?;
        let object = shown::object(&self.registry, &self.target.kind, object).await?;
        let bytes = self.view_of_one()?.object(&self.target.kind, &object);
        Ok(answer::document(200, bytes, self.accepted.encoding))
    }

    pub(super) async fn list_or_watch(self, metrics: &Metrics) -> Result<Response<Body>, Status> {
        use crate::registry::options::Freshness;
        let kind = &self.target.kind;
        let check = |selector: &Selector| fields::check(kind, selector);
        let options = ListOptions::parse(&self.query, check)?;
        if options.watch {
            if !kind.is_stored() {
                return Err(Status::not_supported(kind, "watch"));
            }
            watch::check_accepted(self.accepted)?;
            let events = Events {
                kind: self.target.kind.clone(),
                namespace: self.target.namespace.clone(),
                selector: options.selector.clone(),
                view: self.view()?,
                sent: metrics.watch_events(kind),
            };
            if options.initial_events == Some(true)
                && let Freshness::NotOlderThan(revision) = options.freshness
            {
                wait_for(&self.registry, revision).await?;
            }
            return watch::respond(&self.registry, &self.target, &options, events).await;
        }
        if let Freshness::NotOlderThan(revision) | Freshness::Exact(revision) = options.freshness {
            wait_for(&self.registry, revision).await?;
        }
        let listed = shown::list(&self.registry, &self.target, &options).await?;
        let bytes = self.view_of_many()?.list(&self.target.kind, &listed);
        Ok(answer::document(200, bytes, self.accepted.encoding))
    }

    pub(super) async fn create(self, shared: &Shared) -> Result<Response<Body>, Status> {
        decode::check_type(&self.target.kind, &self.headers)?;
        let options = self.write_options("CreateOptions")?;
        if !self.target.kind.is_stored() {
            // What is not stored has no columns.
            if self.accepted.form == Form::Table {
                return Err(Status::not_acceptable());
            }
            return if self.target.kind.kind == "Binding" {
                self.post_as(&self.target.kind, &options, Registry::bind_named).await
            } else {
                self.review(shared, &options).await
            };
        }
        self.write(&options.inquiry, || {
            let body = decode::object_of(&self.target.kind, &self.headers, &self.body)?;
            self.registry.create(&self.target, body, &options)
        })
        .await
    }

    pub(super) async fn update(self, status: bool) -> Result<Response<Body>, Status> {
        let options = self.write_options("UpdateOptions")?;
        self.write(&options.inquiry, || {
            let body = decode::object_of(&self.target.kind, &self.headers, &self.body)?;
            self.registry.update(&self.target, status, body, &options)
        })
        .await
    }

    pub(super) async fn patch(self, status: bool) -> Result<Response<Body>, Status> {
        patches::check_type(&self.target.kind, &self.headers)?;
        let options = self.write_options("PatchOptions")?;
        self.write(&options.inquiry, || {
            if status && !self.target.kind.strategy.create_on_update {
                // Nobody makes an object by its status, so nobody reads one for an object that is
                // not there.
                self.registry.get(&self.target)?;
            }
            let patch = self.read_patch(options.validation)?;
            self.registry.patch(&self.target, status, patch, &options)
        })
        .await
    }

    /// The patch in the body. One that cannot be read is told of only where there is an object
    /// to read it for.
    pub(crate) fn read_patch(&self, validation: FieldValidation) -> Result<Patch, Status> {
        let patch = patches::read(&self.target.kind, &self.headers, &self.body, validation);
        if let Err(status) = &patch
            && status.code == 400
            && !patches::is_apply(&self.headers)
        {
            self.registry.get(&self.target)?;
        }
        patch
    }
}

/// How long a read waits for a revision that is not there yet.
const REVISION_PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

async fn wait_for(registry: &Registry, revision: u64) -> Result<(), Status> {
    let reached = registry.store.wait_for(revision);
    match registry.env.timeout(REVISION_PATIENCE, reached).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Status::internal(error.to_string())),
        Err(_) => Err(Status::revision_too_large(revision, registry.store.revision())),
    }
}

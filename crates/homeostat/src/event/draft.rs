//! An event in all its parts, before it is recorded: for those who have more to say than a reason
//! and a sentence. Nothing is sent from here.

use k8s_openapi::api::core::v1::ObjectReference;

use super::EventType;
use crate::context::reference;
use crate::kind::AnyObject;

/// What happened, to what, with what else, and what was being done; see
/// [`Context::event_with`](crate::Context::event_with).
///
/// ```
/// use homeostat::{Context, EventDraft};
/// use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
///
/// fn cannot_mount(context: &Context<Pod>, claim: &PersistentVolumeClaim) {
///     let draft = EventDraft::warning("FailedMount", "its volume is on another node");
///     context.event_with(draft.action("Mounting").related(claim));
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an event happens when it is recorded"]
pub struct EventDraft {
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
    /// The reason, if nothing else is said.
    pub(crate) action: Option<String>,
    /// The primary, if nothing else is said.
    pub(crate) about: Option<ObjectReference>,
    pub(crate) related: Option<ObjectReference>,
}

impl EventDraft {
    /// Something expected happened; `reason` is one CamelCase word.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason, note)
    }

    /// Somebody should look; `reason` is one CamelCase word.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, note)
    }

    /// An event of that type; `reason` is one CamelCase word.
    pub fn new(kind: EventType, reason: impl Into<String>, note: impl Into<String>) -> Self {
        let (reason, note) = (reason.into(), note.into());
        Self { kind, reason, note, action: None, about: None, related: None }
    }

    /// What was being done, in one CamelCase word; without it, the reason.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// The object that it is about; without it, the primary.
    pub fn about<T: AnyObject>(mut self, object: &T) -> Self {
        self.about = Some(reference(object));
        self
    }

    /// Another object that has a part in it.
    pub fn related<T: AnyObject>(mut self, object: &T) -> Self {
        self.related = Some(reference(object));
        self
    }
}

//! The few things that only one kind does, each in a file named after the kind.
//!
//! A hook sees the object between defaulting and validation, or after the commit. Everything that
//! a row of the table of kinds can say belongs there, not here.

mod addresses;
mod api_services;
mod autoscalers;
mod certificates;
mod daemonsets;
mod definitions;
mod endpointslices;
mod families;
mod flow_control;
mod jobs;
mod namespaces;
mod nodes;
mod persistentvolumes;
mod pods;
mod resourceclaims;
mod resourceslices;
mod secrets;
mod service_ports;
mod serviceaccounts;
mod services;

pub(crate) use daemonsets::TEMPLATE_COUNT;
pub(crate) use pods::profile_of;

use serde_json::Value;

use super::Writer;
use crate::auth::User;
use crate::field::FieldError;
use crate::kinds::Kind;
use crate::status::Status;

/// What follows from a commit.
type Committed = fn(&Writer<'_>, &Kind, Option<&Value>, &Value);

/// A write that a hook judges.
pub(crate) struct Judged<'a> {
    /// Who writes; nobody in particular when the server itself does.
    pub(crate) user: Option<&'a User>,
    /// How: `create`, `update` or `patch`.
    pub(crate) verb: &'a str,
    /// The subresource; empty for the main resource.
    pub(crate) part: &'a str,
    /// The object as it is; none if it is new.
    pub(crate) live: Option<&'a Value>,
    /// The object as it would be.
    pub(crate) object: &'a Value,
}

/// The hooks of one kind; the default does nothing.
pub(crate) struct Hooks {
    /// Says why an object cannot be read although all its fields can.
    pub(crate) read: fn(&Value) -> Result<(), String>,
    /// Brings what the client wrote into its usual form, given the live object if there is one; the
    /// client owns the result.
    pub(crate) complete: fn(Option<&Value>, &mut Value),
    /// Notes who asks for a new object.
    pub(crate) asked: fn(&User, &mut Value),
    /// Completes or refuses a new object. What is set here belongs to nobody.
    pub(crate) create: fn(&Writer<'_>, &Kind, &mut Value) -> Result<(), Status>,
    /// Completes or refuses an update of the main resource, given the live object.
    pub(crate) update: fn(&Writer<'_>, &Kind, &Value, &mut Value) -> Result<(), Status>,
    /// Completes a write through the named subresource, given the live object.
    pub(crate) part: fn(&Writer<'_>, &str, &Value, &mut Value),
    /// An object as it is compared with what was there, where not all of it counts: the rest changes
    /// nothing, and nobody owns it.
    pub(crate) compared: Option<fn(&Value) -> Value>,
    /// Brings an object that was found to be right into the form it is kept in.
    pub(crate) kept: fn(&mut Value),
    /// What is refused because of who asks or of what other objects say; everything else that is
    /// refused is told with it.
    pub(crate) judge: fn(&Writer<'_>, &Judged<'_>) -> Vec<FieldError>,
    /// Refuses a delete, or marks the object for it.
    pub(crate) delete: fn(&Writer<'_>, &Kind, &mut Value) -> Result<(), Status>,
    /// The object is about to be written: what must be there before anybody sees it.
    pub(crate) committing: Option<fn(&Writer<'_>, Option<&Value>, &Value)>,
    /// The object was written, in place of the one before it, if there was one.
    pub(crate) committed: Option<Committed>,
    /// The object is gone.
    pub(crate) removed: fn(&Writer<'_>, &Kind, &Value),
    /// A create may bring a status along.
    pub(crate) keeps_status: bool,
}

const NONE: Hooks = Hooks {
    read: |_| Ok(()),
    complete: |_, _| {},
    asked: |_, _| {},
    create: |_, _, _| Ok(()),
    update: |_, _, _, _| Ok(()),
    part: |_, _, _, _| {},
    compared: None,
    kept: |_| {},
    judge: |_, _| Vec::new(),
    delete: |_, _, _| Ok(()),
    committing: None,
    committed: None,
    removed: |_, _, _| {},
    keeps_status: false,
};

/// Kinds with hooks, by the name of their resource.
static HOOKS: &[(&str, Hooks)] = &[
    ("apiservices.apiregistration.k8s.io", api_services::HOOKS),
    ("certificatesigningrequests.certificates.k8s.io", certificates::HOOKS),
    ("customresourcedefinitions.apiextensions.k8s.io", definitions::HOOKS),
    ("daemonsets.apps", daemonsets::HOOKS),
    ("endpointslices.discovery.k8s.io", endpointslices::HOOKS),
    ("flowschemas.flowcontrol.apiserver.k8s.io", flow_control::HOOKS),
    ("horizontalpodautoscalers.autoscaling", autoscalers::HOOKS),
    ("ipaddresses.networking.k8s.io", addresses::HOOKS),
    ("jobs.batch", jobs::HOOKS),
    ("namespaces", namespaces::HOOKS),
    ("nodes", nodes::HOOKS),
    ("persistentvolumeclaims", persistentvolumes::CLAIM_HOOKS),
    ("persistentvolumes", persistentvolumes::HOOKS),
    ("pods", pods::HOOKS),
    ("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", flow_control::HOOKS),
    ("resourceclaims.resource.k8s.io", resourceclaims::HOOKS),
    ("resourceclaimtemplates.resource.k8s.io", resourceclaims::TEMPLATE_HOOKS),
    ("resourceslices.resource.k8s.io", resourceslices::HOOKS),
    ("secrets", secrets::HOOKS),
    ("serviceaccounts", serviceaccounts::HOOKS),
    ("services", services::HOOKS),
];

static DEFAULT: Hooks = NONE;
static CUSTOM: Hooks = definitions::INSTANCE_HOOKS;

/// The hooks of a kind.
pub(crate) fn of(kind: &Kind) -> &'static Hooks {
    if kind.custom.is_some() {
        return &CUSTOM;
    }
    HOOKS.iter().find(|(name, _)| kind.is(name)).map_or(&DEFAULT, |(_, hooks)| hooks)
}

//! Admission: the ordered chain of steps that complete a write, or refuse it.
//!
//! A step is a row of `CHAIN`, in the order of kube-apiserver's fixed list. Its first half may
//! change the object and runs before validation; its second half only judges and runs after it.
//! Steps read the store and nothing else: whatever needs IO is asked through the request's
//! [`Inquiry`]. They never write.

mod access;
mod certificate_signer;
mod certificate_subject;
mod configuration;
mod default_class;
mod expression;
mod hearing;
mod in_use;
mod inquiry;
mod limits;
mod matching;
mod mutating_policy;
mod namespace;
mod node_taint;
mod pod_resize;
mod pod_security;
mod policy;
mod priority;
mod quota;
mod request;
mod resize;
mod response;
mod rounds;
mod runtime_class;
mod service_account;
mod tolerations;
mod topology_labels;
mod webhook;

use std::sync::Arc;

use serde_json::Value;

use crate::auth::User;
use crate::kinds::Kind;
use crate::registry::options::{DeleteOptions, WriteOptions};
use crate::registry::{Writer, metadata};
use crate::status::Status;
use crate::store::{Range, Stored};

pub(crate) use configuration::Configuration;
pub use inquiry::Inquiry;
pub(crate) use inquiry::{Answer, Missing, Question, Topic};
pub(crate) use matching::selects;
pub(crate) use quota::Charge;
pub(crate) use response::read as read_response;
pub(crate) use rounds::Rounds;

/// What a request does to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A stream to a node, a Pod or a Service.
    Connect,
}

/// One write on its way through the chain.
pub(crate) struct Review<'a> {
    pub(crate) writer: &'a Writer<'a>,
    pub(crate) kind: &'a Kind,
    pub(crate) operation: Operation,
    /// Empty for the main resource.
    pub(crate) subresource: &'a str,
    /// Empty for objects of the cluster.
    pub(crate) namespace: &'a str,
    /// As the request gives it: empty when the server shall make one up.
    pub(crate) name: &'a str,
    /// What the object is, where a subresource speaks another kind than its resource.
    pub(crate) form: Option<&'a Kind>,
    /// The object as it would be written, or the options of a connect; null for a delete.
    pub(crate) object: Value,
    /// The object as it is.
    pub(crate) old: Option<&'a Value>,
    /// How the request wants it done.
    pub(crate) wish: Wish<'a>,
    /// What webhooks remember between the two rounds of the chain.
    pub(crate) rounds: Rounds,
}

/// The options of a request.
#[derive(Clone, Copy)]
pub(crate) enum Wish<'a> {
    Write(&'a WriteOptions),
    Delete(&'a DeleteOptions),
}

impl Wish<'_> {
    fn is_dry_run(&self) -> bool {
        match self {
            Self::Write(options) => options.dry_run,
            Self::Delete(options) => options.dry_run,
        }
    }

    fn inquiry(&self) -> &Inquiry {
        match self {
            Self::Write(options) => &options.inquiry,
            Self::Delete(options) => &options.inquiry,
        }
    }

    /// Who asks; nobody in particular when the server itself does.
    fn asker(&self) -> Option<Arc<User>> {
        match self {
            Self::Write(options) => options.user.clone(),
            Self::Delete(options) => options.user.clone(),
        }
    }

    /// Who asks, as `userInfo`.
    fn user(&self) -> Value {
        self.asker().unwrap_or_else(User::admin).to_value()
    }
}

/// The half of a step that may change the object.
type Mutate = fn(&mut Review<'_>) -> Result<(), Status>;
/// The half of a step that only judges.
type Validate = fn(&Review<'_>) -> Result<(), Status>;

/// A step of the chain. Either half may be absent.
struct Step {
    /// The name of the plugin it stands for.
    #[cfg_attr(not(test), expect(dead_code, reason = "the order is checked by name"))]
    name: &'static str,
    mutate: Option<Mutate>,
    validate: Option<Validate>,
}

const fn step(name: &'static str) -> Step {
    Step { name, mutate: None, validate: None }
}

/// The steps in order.
static CHAIN: &[Step] = &[
    Step { mutate: Some(namespace::exists), ..step("NamespaceLifecycle") },
    Step { mutate: Some(limits::default), validate: Some(limits::check), ..step("LimitRanger") },
    Step {
        mutate: Some(service_account::complete),
        validate: Some(service_account::check),
        ..step("ServiceAccount")
    },
    Step { mutate: Some(node_taint::taint), ..step("TaintNodesByCondition") },
    Step { validate: Some(pod_security::check), ..step("PodSecurity") },
    Step {
        mutate: Some(priority::resolve),
        validate: Some(priority::one_default),
        ..step("Priority")
    },
    Step { mutate: Some(tolerations::add), ..step("DefaultTolerationSeconds") },
    Step { mutate: Some(default_class::of_claim), ..step("DefaultStorageClass") },
    Step { mutate: Some(in_use::protect), ..step("StorageObjectInUseProtection") },
    Step { validate: Some(resize::check), ..step("PersistentVolumeClaimResize") },
    Step {
        mutate: Some(runtime_class::complete),
        validate: Some(runtime_class::check),
        ..step("RuntimeClass")
    },
    Step { validate: Some(certificate_signer::approve), ..step("CertificateApproval") },
    Step { validate: Some(certificate_signer::sign), ..step("CertificateSigning") },
    Step { validate: Some(certificate_subject::check), ..step("CertificateSubjectRestriction") },
    Step { mutate: Some(default_class::of_ingress), ..step("DefaultIngressClass") },
    Step { mutate: Some(topology_labels::copy), ..step("PodTopologyLabels") },
    Step { validate: Some(pod_resize::check_features), ..step("NodeDeclaredFeatureValidator") },
    Step { validate: Some(pod_resize::check_room), ..step("PodResizeValidator") },
    Step { mutate: Some(mutating_policy::mutate), ..step("MutatingAdmissionPolicy") },
    Step { mutate: Some(webhook::mutate), ..step("MutatingAdmissionWebhook") },
    Step { validate: Some(policy::check), ..step("ValidatingAdmissionPolicy") },
    Step { validate: Some(webhook::validate), ..step("ValidatingAdmissionWebhook") },
];

/// Completes the object of the review, or refuses it. A change that comes after a webhook which
/// wants to see such changes makes the chain run a second time.
pub(crate) fn mutate(review: &mut Review<'_>) -> Result<(), Status> {
    let run = |review: &mut Review<'_>| {
        CHAIN.iter().filter_map(|step| step.mutate).try_for_each(|mutate| mutate(review))
    };
    run(review)?;
    if review.rounds.is_wanted {
        review.rounds.is_second = true;
        run(review)?;
    }
    review.mend_owners();
    Ok(())
}

/// Judges the object of the review. What it is charged for comes back, to be written once the
/// object itself is.
pub(crate) fn validate(review: &Review<'_>) -> Result<Vec<Charge>, Status> {
    CHAIN.iter().filter_map(|step| step.validate).try_for_each(|validate| validate(review))?;
    quota::check(review)
}

impl<'a> Review<'a> {
    /// A request for the main resource; what has no place in it is empty.
    pub(crate) fn new(
        writer: &'a Writer<'a>,
        kind: &'a Kind,
        operation: Operation,
        wish: Wish<'a>,
    ) -> Self {
        Self {
            writer,
            kind,
            operation,
            subresource: "",
            form: None,
            namespace: "",
            name: "",
            object: Value::Null,
            old: None,
            wish,
            rounds: Rounds::default(),
        }
    }

    /// Whether the request is for the main resource of that name.
    fn is_for(&self, resource: &str) -> bool {
        self.subresource.is_empty() && self.kind.is(resource)
    }

    /// `plural.group`; custom resources never share a built-in one's name.
    fn resource(&self) -> String {
        self.kind.resource()
    }

    /// The name refusals speak of: what the request knows of it.
    fn shown_name(&self) -> &str {
        let known = [self.name, metadata::name(&self.object)];
        let given = known.into_iter().find(|name| !name.is_empty());
        let begun = metadata::text(&self.object, "generateName");
        given.unwrap_or(if begun.is_empty() { "Unknown" } else { begun })
    }

    /// 403 with these words.
    fn forbid(&self, why: &str) -> Status {
        Status::forbidden(self.kind, self.shown_name(), why)
    }

    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
    }

    /// The objects of a built-in resource: in that namespace, or all.
    fn list(&self, resource: &str, namespace: &str) -> Vec<Value> {
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        let range = Range { namespace, ..Range::default() };
        let page = self.writer.registry.store.list(resource, &range);
        page.map(|page| page.items)
            .unwrap_or_default()
            .iter()
            .map(|item| Stored::value(item))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::CHAIN;

    /// The plugins that are on by default, in the order kube-apiserver runs them.
    const ORDER: &[&str] = &[
        "NamespaceLifecycle",
        "LimitRanger",
        "ServiceAccount",
        "TaintNodesByCondition",
        "PodSecurity",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "DefaultIngressClass",
        "PodTopologyLabels",
        "NodeDeclaredFeatureValidator",
        "PodResizeValidator",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
    ];

    #[test]
    fn steps_run_in_the_order_of_kube_apiserver() {
        let place = |name: &str| ORDER.iter().position(|known| *known == name);
        let places: Vec<_> = CHAIN.iter().map(|step| place(step.name)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    }
}

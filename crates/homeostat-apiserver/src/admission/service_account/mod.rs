//! `ServiceAccount`: a Pod runs as an account of its namespace, which must exist if the server is
//! told to insist, and gets a token of it.

mod secrets;
mod token;

use serde_json::Value;

use super::{Operation, Review};
use crate::status::Status;
use crate::store::Key;
use crate::validate::name;

/// The annotation of Pods that a kubelet runs of its own accord.
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";
/// The annotation of accounts whose Pods may use only the Secrets that the account lists.
const ENFORCE: &str = "/metadata/annotations/kubernetes.io~1enforce-mountable-secrets";

/// Gives a new Pod its account, the token, and the account's pull secrets.
pub(super) fn complete(review: &mut Review<'_>) -> Result<(), Status> {
    if !is_new_pod(review) || review.object.pointer(MIRROR).is_some() {
        return Ok(());
    }
    let given = review.text("/spec/serviceAccountName");
    let name = if given.is_empty() { DEFAULT } else { given }.to_owned();
    let account = account(review, &name)?;
    let registry = review.writer.registry;
    let spec = &mut review.object["spec"];
    spec["serviceAccountName"] = name.clone().into();
    spec["serviceAccount"] = name.into();
    let field = "automountServiceAccountToken";
    let wanted = spec.get(field).and_then(Value::as_bool).or(account[field].as_bool());
    if registry.config.mount_tokens && wanted.unwrap_or(true) {
        let inquiry = review.wish.inquiry();
        token::mount(spec, || inquiry.volume(|| token::volume_name(&registry.env)));
    }
    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    if is_empty(&spec["imagePullSecrets"]) && !is_empty(&account["imagePullSecrets"]) {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    Ok(())
}

/// Judges the account, which a webhook may have changed, and the Secrets.
pub(super) fn check(review: &Review<'_>) -> Result<(), Status> {
    if review.is_for("serviceaccounts") {
        discourage(review);
    }
    if !is_new_pod(review) {
        return Ok(());
    }
    let name = review.text("/spec/serviceAccountName");
    let pod = &review.object;
    if pod.pointer(MIRROR).is_some() {
        let uses = |why: &str| Err(review.forbid(&format!("a mirror pod may not {why}")));
        return match () {
            () if !name.is_empty() => uses("reference service accounts"),
            () if secrets::any(&pod["spec"]) => uses("reference secrets"),
            () if token::is_projected(&pod["spec"]) => {
                uses("use ServiceAccountToken volume projections")
            }
            () => Ok(()),
        };
    }
    let account = account(review, name)?;
    let enforced = account.pointer(ENFORCE).and_then(Value::as_str).unwrap_or("");
    if ["1", "t", "T", "true", "TRUE", "True"].contains(&enforced) {
        secrets::check(&pod["spec"], &account).map_err(|why| review.forbid(&why))?;
    }
    Ok(())
}

/// Warns whoever begins to use the annotation.
fn discourage(review: &Review<'_>) {
    let is_new = review.old.is_none_or(|old| old.pointer(ENFORCE).is_none());
    if is_new && review.object.pointer(ENFORCE).is_some() {
        let words = "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in \
                     v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        review.wish.inquiry().warn(words.to_owned());
    }
}

fn is_new_pod(review: &Review<'_>) -> bool {
    review.operation == Operation::Create
        && review.is_for("pods")
        && review.writer.registry.config.service_account_admission
        && review.object.get("spec").is_some_and(Value::is_object)
}

/// The account every namespace gets, sooner or later.
const DEFAULT: &str = "default";

fn account(review: &Review<'_>, name: &str) -> Result<Value, Status> {
    let namespace = review.namespace;
    review.writer.registry.peek("serviceaccounts", namespace, name).ok_or_else(|| {
        if name == DEFAULT {
            review.wish.inquiry().may_come("serviceaccounts", Key::new(namespace, name));
        }
        let why =
            name::unaskable(name).unwrap_or_else(|| format!("serviceaccount {name:?} not found"));
        review.forbid(&format!("error looking up service account {namespace}/{name}: {why}"))
    })
}

//! `CertificateApproval` and `CertificateSigning`: who may speak for a signer.

use super::{Operation, Review};
use crate::auth::{Attributes, User};
use crate::status::Status;

const RESOURCE: &str = "certificatesigningrequests.certificates.k8s.io";

/// Who approves or denies must be allowed to, for that signer.
pub(super) fn approve(review: &Review<'_>) -> Result<(), Status> {
    if review.resource() != RESOURCE || review.subresource != "approval" {
        return Ok(());
    }
    check(review, "approve")
}

/// Who gives a certificate, or says why there is none, must be allowed to sign.
pub(super) fn sign(review: &Review<'_>) -> Result<(), Status> {
    let part = |field: &str| format!("/status/{field}");
    let changes = |field: &str| {
        let old = review.old.and_then(|old| old.pointer(&part(field)));
        old != review.object.pointer(&part(field))
    };
    if review.resource() != RESOURCE
        || review.subresource != "status"
        || !(changes("certificate") || changes("conditions"))
    {
        return Ok(());
    }
    check(review, "sign")
}

fn check(review: &Review<'_>, verb: &str) -> Result<(), Status> {
    let signer = review.old.and_then(|old| old.pointer("/spec/signerName")?.as_str());
    let (Operation::Update, Some(signer)) = (review.operation, signer) else { return Ok(()) };
    let user = review.wish.asker().unwrap_or_else(User::admin);
    let may = |name: String| {
        let wanted = Attributes {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        review.writer.registry.rbac.authorize(&user, &wanted).allowed
    };
    let domain = signer.split('/').next().unwrap_or_default();
    if may(signer.to_owned()) || may(format!("{domain}/*")) {
        return Ok(());
    }
    Err(review.forbid(&format!("user not permitted to {verb} requests with signerName {signer:?}")))
}

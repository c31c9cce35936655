//! Requests of kubelets for client certificates are approved where whoever asks may have them.
//! What nobody recognises is left to people.

use std::sync::Arc;
use std::time::Duration;

use homeostat::kube::api::{Api, PostParams};
use homeostat::kube::{Client, ResourceExt};
use homeostat::{Context, Controller, Error, Kind, Outcome, Result};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::{Value, json};

use super::KUBELET_CLIENT;
use super::request::{self, Request};
use crate::write;

/// When a request is looked at again that nobody may approve yet: roles may change.
const PATIENCE: Duration = Duration::from_secs(60);

/// The controller.
pub(crate) fn controller() -> Controller<CertificateSigningRequest> {
    Controller::new(reconcile).named("certificate-approver")
}

async fn reconcile(
    asked: Arc<CertificateSigningRequest>,
    ctx: Context<CertificateSigningRequest>,
) -> Result<Outcome> {
    let status = asked.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let decided = conditions.iter().any(|said| matches!(&*said.type_, "Approved" | "Denied"));
    if status.certificate.is_some() || decided || asked.spec.signer_name != KUBELET_CLIENT {
        return Ok(Outcome::Done);
    }
    let request = Request::read(&asked.spec.request.0).map_err(Error::terminal)?;
    let usages: Vec<&str> = asked.spec.usages.iter().flatten().map(String::as_str).collect();
    if request::kubelet_client(&request, &usages).is_err() {
        return Ok(Outcome::Done);
    }
    let own = asked.spec.username.as_deref() == Some(request.common_name());
    let ways = [
        (
            own,
            "selfnodeclient",
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        ),
        (
            true,
            "nodeclient",
            "Auto approving kubelet client certificate after SubjectAccessReview.",
        ),
    ];
    for (_, part, message) in ways.into_iter().filter(|(applies, ..)| *applies) {
        if may(ctx.client(), &asked, part).await? {
            return approve(&asked, &ctx, message).await;
        }
    }
    Ok(Outcome::RequeueAfter(PATIENCE))
}

/// Whether whoever asked may have such a certificate without being asked back.
async fn may(client: &Client, asked: &CertificateSigningRequest, part: &str) -> Result<bool> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: asked.spec.username.clone(),
            uid: asked.spec.uid.clone(),
            groups: asked.spec.groups.clone(),
            extra: asked.spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some("certificates.k8s.io".to_owned()),
                version: Some("*".to_owned()),
                resource: Some("certificatesigningrequests".to_owned()),
                subresource: Some(part.to_owned()),
                verb: Some("create".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answered = reviews.create(&PostParams::default(), &review).await?;
    Ok(answered.status.is_some_and(|status| status.allowed))
}

async fn approve(
    asked: &CertificateSigningRequest,
    ctx: &Context<CertificateSigningRequest>,
    message: &str,
) -> Result<Outcome> {
    let conditions = asked.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut said: Vec<Value> = Vec::new();
    for condition in conditions.into_iter().flatten() {
        said.push(serde_json::to_value(condition).map_err(Error::terminal)?);
    }
    said.push(json!({
        "type": "Approved", "status": "True", "reason": "AutoApproved", "message": message,
    }));
    let patch = json!({
        "metadata": {"uid": asked.uid(), "resourceVersion": asked.resource_version()},
        "status": {"conditions": said},
    });
    let kind = Kind::of::<CertificateSigningRequest>();
    write::patch(ctx.client(), &kind, ctx.key(), Some("approval"), &patch).await?;
    Ok(Outcome::Done)
}

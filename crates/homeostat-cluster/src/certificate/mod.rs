//! Approved CertificateSigningRequests get their certificate, for the signers that a cluster has of
//! its own. Those of kubelets are approved where roles allow it (`approve`), all others by people;
//! old ones go (`clean`).

mod approve;
mod authority;
mod clean;
mod issue;
mod request;

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, Kind, Outcome, Result};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::{Value, json};

pub(crate) use approve::controller as approver;
pub use authority::{AuthorityError, CertificateAuthority};
pub(crate) use clean::controller as cleaner;

use crate::write;
use issue::Term;
use request::Request;

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";

/// The controller.
pub(crate) fn controller(authority: CertificateAuthority) -> Controller<CertificateSigningRequest> {
    let authority = Arc::new(authority);
    Controller::new(move |asked, ctx| reconcile(asked, ctx, Arc::clone(&authority)))
        .named("certificate-signer")
}

async fn reconcile(
    asked: Arc<CertificateSigningRequest>,
    ctx: Context<CertificateSigningRequest>,
    authority: Arc<CertificateAuthority>,
) -> Result<Outcome> {
    let status = asked.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let is = |ty: &str| conditions.iter().any(|said| said.type_ == ty && said.status == "True");
    if status.certificate.is_some() || !is("Approved") || is("Denied") || is("Failed") {
        return Ok(Outcome::Done);
    }
    let rule: fn(&Request, &[&str]) -> std::result::Result<(), String> =
        match asked.spec.signer_name.as_str() {
            CLIENT => request::client,
            KUBELET_CLIENT => request::kubelet_client,
            KUBELET_SERVING => request::kubelet_serving,
            _ => return Ok(Outcome::Done),
        };
    let request = Request::read(&asked.spec.request.0).map_err(Error::terminal)?;
    let usages: Vec<&str> = asked.spec.usages.iter().flatten().map(String::as_str).collect();
    if let Err(why) = rule(&request, &usages) {
        let now = ctx.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut said: Vec<Value> = Vec::new();
        for condition in &conditions {
            said.push(serde_json::to_value(condition).map_err(Error::terminal)?);
        }
        said.push(json!({
            "type": "Failed", "status": "True", "reason": "SignerValidationFailure",
            "message": why, "lastUpdateTime": now,
        }));
        return say(&asked, &ctx, &json!({"conditions": said})).await;
    }
    let term = Term::of(ctx.now(), asked.spec.expiration_seconds);
    let mut serial = [0_u8; 16];
    ctx.env().fill_random(&mut serial);
    let pem =
        issue::certificate(&authority, &request, &usages, term, serial).map_err(Error::terminal)?;
    let certificate = k8s_openapi::ByteString(pem.into_bytes());
    say(&asked, &ctx, &json!({"certificate": certificate})).await
}

async fn say(
    asked: &CertificateSigningRequest,
    ctx: &Context<CertificateSigningRequest>,
    status: &Value,
) -> Result<Outcome> {
    let patch = json!({
        "metadata": {"uid": asked.uid(), "resourceVersion": asked.resource_version()},
        "status": status,
    });
    let kind = Kind::of::<CertificateSigningRequest>();
    write::patch(ctx.client(), &kind, ctx.key(), Some("status"), &patch).await?;
    Ok(Outcome::Done)
}

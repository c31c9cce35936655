//! `ValidatingAdmissionPolicies`: their status says which expressions do not fit the types that they
//! will meet. Never keeps a policy from running.

mod types;

use std::sync::Arc;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, Kind, Outcome, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use crate::write;

const MANAGER: &str = "validatingadmissionpolicy-status-controller";

/// The controller.
pub(crate) fn controller() -> Controller<ValidatingAdmissionPolicy> {
    Controller::new(reconcile).named(MANAGER)
}

async fn reconcile(
    policy: Arc<ValidatingAdmissionPolicy>,
    ctx: Context<ValidatingAdmissionPolicy>,
) -> Result<Outcome> {
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
    if policy.metadata.generation <= observed {
        return Ok(Outcome::Done);
    }
    let written = serde_json::to_value(&*policy).map_err(Error::terminal)?;
    let met = types::met(ctx.client(), &written).await?;
    let params = types::of_params(ctx.client(), &written).await?;
    let warnings = homeostat_cel::warnings(&written, &met, params.as_ref());
    let warnings: Vec<Value> = warnings
        .iter()
        .map(|warning| json!({"fieldRef": warning.field, "warning": warning.words}))
        .collect();
    let checking =
        if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy.name_any(), "uid": policy.uid()},
        "status": {
            "observedGeneration": policy.metadata.generation,
            "typeChecking": checking,
        },
    });
    let kind = Kind::of::<ValidatingAdmissionPolicy>();
    write::apply_by_uid(ctx.client(), &kind, ctx.key(), Some("status"), MANAGER, &body).await?;
    Ok(Outcome::Done)
}

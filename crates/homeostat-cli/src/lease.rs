//! The leases of the operators that run inside the cluster's process. Each is held for as long as
//! the cluster lives, so that the same operator as a program of its own waits instead of working
//! beside it. They are never renewed: the API and these operators end together.

use homeostat::Env;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::operators::{self, Operator};

/// Who holds them. A store has one such process at a time.
const HOLDER: &str = "homeostat up";

/// Takes the leases of the chosen operators, whoever had them, and gives up what an earlier process
/// on the same data held of the others.
pub(crate) async fn hold(client: &Client, env: &Env, chosen: &[Operator]) -> kube::Result<()> {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    for Operator { name, lease, .. } in operators::ALL {
        if chosen.iter().any(|operator| operator.name == name) {
            let now = MicroTime(env.now());
            let wish = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": lease },
                "spec": { "holderIdentity": HOLDER, "leaseDurationSeconds": i32::MAX,
                    "acquireTime": now, "renewTime": now },
            });
            leases
                .patch(lease, &PatchParams::apply("homeostat").force(), &Patch::Apply(wish))
                .await?;
        } else if leases.get_opt(lease).await?.is_some_and(|lease| is_ours(&lease)) {
            leases.delete(lease, &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

fn is_ours(lease: &Lease) -> bool {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) == Some(HOLDER)
}

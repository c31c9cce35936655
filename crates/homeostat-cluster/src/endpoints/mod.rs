//! Where a Service leads: EndpointSlices and the older Endpoints, from the Pods it selects.
//!
//! A Pod counts once it has an address; it receives traffic while it is ready. Slices hold at most
//! 100 addresses. Services without a selector are left to whoever writes their endpoints.

mod slices;
mod subsets;
mod target;

use std::sync::Arc;

use homeostat::{Context, Controller, Outcome, Result};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::selector;
use crate::selector::Interest;

use self::slices::slices;
use self::subsets::endpoints;

/// The controller.
pub(crate) fn controller() -> Controller<Service> {
    let interest = Interest::default();
    let selected = interest.clone();
    Controller::new(move |service, ctx| reconcile(service, ctx, interest.clone()))
        .named("endpoint-controller")
        // Endpoints are deprecated, and whoever still reads them finds them all the same.
        .without_warnings()
        .owns::<EndpointSlice>()
        .owns::<Endpoints>()
        .watches::<Pod>(move |pod| {
            selected.matching(pod.metadata.namespace.as_deref(), pod.metadata.labels.as_ref())
        })
}

async fn reconcile(
    service: Arc<Service>,
    ctx: Context<Service>,
    interest: Interest,
) -> Result<Outcome> {
    let Some(spec) = &service.spec else { return Ok(Outcome::Done) };
    let Some(labels) = spec.selector.as_ref().filter(|labels| !labels.is_empty()) else {
        return Ok(Outcome::Done);
    };
    if service.metadata.deletion_timestamp.is_some()
        || spec.type_.as_deref() == Some("ExternalName")
    {
        return Ok(Outcome::Done);
    }
    let wanted = selector::exact(labels);
    interest.record(ctx.key(), &wanted);
    let mut pods = ctx.list::<Pod>().await?;
    pods.retain(|pod| selector::matches(&wanted, pod.metadata.labels.as_ref()));
    let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let slices = slices(&service, spec, &pods);
    for stale in ctx.owned::<EndpointSlice>().await? {
        if !slices.iter().any(|slice| slice.metadata.name == stale.metadata.name) {
            ctx.delete(stale.as_ref()).await?;
        }
    }
    for slice in slices {
        ctx.apply(slice).await?;
    }
    ctx.apply(endpoints(&service, spec, &pods)).await?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_ready_pods_receive_traffic() {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]},
        }))
        .unwrap();
        let pod = |name: &str, ip: &str, ready: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"containers": [{"name": "c",
                    "ports": [{"name": "http", "containerPort": 8080}]}]},
                "status": {"phase": "Running", "podIP": ip,
                    "conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap()
        };
        let pods =
            [pod("a", "127.1.0.1", "True"), pod("b", "127.1.0.2", "False"), pod("c", "", "True")];
        let refs: Vec<&Pod> = pods.iter().collect();
        let spec = service.spec.as_ref().unwrap();
        let slices = slices(&service, spec, &refs);
        assert_eq!(slices.len(), 1);
        assert_eq!(slices[0].ports.as_ref().unwrap()[0].port, Some(8080));
        let ready: Vec<bool> = slices[0]
            .endpoints
            .iter()
            .flatten()
            .map(|e| e.conditions.as_ref().unwrap().ready.unwrap())
            .collect();
        assert_eq!(ready, [true, false]);
        let endpoints = endpoints(&service, spec, &refs);
        let subset = &endpoints.subsets.unwrap()[0];
        assert_eq!(subset.addresses.as_ref().unwrap()[0].ip, "127.1.0.1");
        assert_eq!(subset.not_ready_addresses.as_ref().unwrap()[0].ip, "127.1.0.2");
    }

    #[test]
    fn a_service_without_pods_has_one_empty_slice() {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        }))
        .unwrap();
        let slices = slices(&service, service.spec.as_ref().unwrap(), &[]);
        assert_eq!(slices.len(), 1);
        assert_eq!(slices[0].endpoints.as_deref(), Some(&[][..]));
    }
}

//! The Node object and its lease: how the rest of the cluster knows that the agent lives.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::capacity::Capacity;
use super::host::Host;
use super::sandbox::Tier;

const LEASE_NAMESPACE: &str = "kube-node-lease";
const RENEWAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
const MANAGER: &str = "kubelet";

/// A host name as the name of a Node: lower case, letters, digits, dashes and dots.
pub(super) fn node_name(host: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = host.to_lowercase().chars().map(keep).take(253).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "homeostat".to_owned() } else { name.to_owned() }
}

/// Writes the Node as ready.
pub(super) async fn register(host: &Host) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(host.client.clone());
    let name = host.node.as_str();
    let apply = PatchParams::apply(MANAGER).force();
    nodes.patch(name, &apply, &Patch::Apply(object(host))).await?;
    let status = json!({ "status": status(host) });
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

fn object(host: &Host) -> Value {
    let sandbox = match host.helper.tier() {
        Tier::Raw => "raw",
        Tier::User => "user",
        Tier::Root => "root",
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": host.node,
            "labels": {
                "kubernetes.io/hostname": host.node,
                "kubernetes.io/os": std::env::consts::OS,
                "kubernetes.io/arch": architecture,
                "homeostat.dev/sandbox": sandbox,
            },
        },
    })
}

fn status(host: &Host) -> Value {
    let now = host.env.now();
    let Capacity { cpus, memory, disk } = host.capacity;
    let resources = json!({
        "cpu": cpus.to_string(),
        "memory": format!("{}Ki", memory / 1024),
        "pods": "1000",
        "ephemeral-storage": format!("{}Ki", disk / 1024),
    });
    let condition = |kind: &str, good: bool, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": if good { "True" } else { "False" },
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            { "type": "InternalIP", "address": Host::ip().to_string() },
            { "type": "Hostname", "address": host.node },
        ],
        "conditions": [
            condition("MemoryPressure", false, "KubeletHasSufficientMemory", "the host has memory"),
            condition("DiskPressure", false, "KubeletHasNoDiskPressure", "the host has disk space"),
            condition("PIDPressure", false, "KubeletHasSufficientPID", "the host has process ids"),
            condition("Ready", true, "KubeletReady", "the node agent runs Pods"),
        ],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "",
            "kernelVersion": kernel(),
            "osImage": "the host's own system",
            "containerRuntimeVersion": format!("homeostat://{}", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": "v1.36.4-homeostat",
            "kubeProxyVersion": "",
            "operatingSystem": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
        },
    })
}

fn kernel() -> String {
    nix::sys::utsname::uname()
        .map(|name| name.release().to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Renews the node's lease for as long as it is polled.
pub(super) async fn renew(host: &Host) {
    let leases: Api<Lease> = Api::namespaced(host.client.clone(), LEASE_NAMESPACE);
    loop {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": host.node, "namespace": LEASE_NAMESPACE },
            "spec": {
                "holderIdentity": host.node,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": MicroTime(host.env.now()),
            },
        });
        let apply = PatchParams::apply(MANAGER).force();
        if let Err(error) = leases.patch(&host.node, &apply, &Patch::Apply(lease)).await {
            tracing::warn!(%error, "the node's lease could not be renewed");
        }
        host.env.sleep(RENEWAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::node_name;

    #[test]
    fn any_host_name_makes_a_node_name() {
        assert_eq!(node_name("My_Host.local"), "my-host.local");
        assert_eq!(node_name("--"), "homeostat");
    }
}

//! What is reconciled: Pods of the size and shape that clusters have, and as many ConfigMaps that are
//! next to nothing; made and changed by plain requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};

use super::sent::SENT;

/// Pods are spread over so many namespaces.
const NAMESPACES: usize = 50;
/// How many requests run at once while Pods are made.
const AT_ONCE: usize = 32;
/// One change is sent every so often: busy, but no server or controller is at its limit.
const PACE: Duration = Duration::from_millis(2);

/// Makes the Pods, with a status, and the ConfigMaps, of which there are more; returns how many bytes
/// a Pod has in the API.
pub(super) async fn fill(client: &Client, pods: usize, configmaps: usize) -> Result<usize> {
    for number in 0..NAMESPACES {
        let namespace = json!({"metadata": {"name": format!("bench-{number}")}});
        send(client, "POST", "/api/v1/namespaces", "bench", &namespace).await?;
    }
    let next = Arc::new(AtomicUsize::new(0));
    let workers = (0..AT_ONCE).map(|_| {
        let (client, next) = (client.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= configmaps {
                    return Ok::<_, anyhow::Error>(());
                }
                if number < pods {
                    let all = format!("/api/v1/namespaces/bench-{}/pods", number % NAMESPACES);
                    send(&client, "POST", &all, "kube-controller-manager", &pod(number)).await?;
                    let status = format!("{}/status", path(number));
                    send(&client, "PATCH", &status, "kubelet", &status_of(number)).await?;
                }
                let all = format!("/api/v1/namespaces/bench-{}/configmaps", number % NAMESPACES);
                let small = json!({"metadata": {"name": format!("small-{number:06}")}});
                send(&client, "POST", &all, "bench", &small).await?;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    let one = Request::get(path(0)).body(Vec::new())?;
    Ok(client.request_text(one).await?.len())
}

/// Changes `events` Pods once each, at a steady pace; returns what [`SENT`] says of each, and when the
/// server answered it, in nanoseconds since 1970. An event is there when the change is: how long the
/// server takes for a patch is none of what is compared.
pub(super) async fn change(
    client: &Client,
    pods: usize,
    events: usize,
) -> Result<Vec<(String, u64)>> {
    let events = events.min(pods);
    let begin = Instant::now();
    let mut sent = Vec::with_capacity(events);
    for number in 0..events {
        let due = begin + PACE * u32::try_from(number)?;
        tokio::time::sleep_until(due.into()).await;
        let client = client.clone();
        sent.push(tokio::spawn(async move {
            let sent = now()?.to_string();
            let patch = json!({"metadata": {"annotations": {SENT: sent}}});
            // Spread over all of them: neighbours in the list are not neighbours in memory.
            let number = number * pods / events;
            send(&client, "PATCH", &path(number), "bench", &patch).await?;
            anyhow::Ok((sent, now()?))
        }));
    }
    let mut answered = Vec::with_capacity(events);
    for sent in sent {
        answered.push(sent.await??);
    }
    Ok(answered)
}

/// Nanoseconds since 1970.
fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos().try_into()?)
}

fn path(number: usize) -> String {
    format!("/api/v1/namespaces/bench-{}/pods/web-{number:06}", number % NAMESPACES)
}

async fn send(client: &Client, method: &str, path: &str, who: &str, body: &Value) -> Result<()> {
    let patch = "application/strategic-merge-patch+json";
    let request = Request::builder()
        .method(method)
        .uri(format!("{path}?fieldManager={who}"))
        .header(CONTENT_TYPE, if method == "PATCH" { patch } else { "application/json" })
        .body(serde_json::to_vec(body)?)?;
    client.request_text(request).await?;
    Ok(())
}

fn pod(number: usize) -> Value {
    let set = number / 10;
    let variable = |name: &str| json!({"name": name, "value": format!("value-of-{name}-{set}")});
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example/team/{name}:1.{}.0", set % 20),
            "ports": [{"containerPort": 8080, "name": "http"}],
            "env": [variable("LOG_LEVEL"), variable("REGION"), variable("UPSTREAM"),
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 10},
            "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}, "periodSeconds": 10},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"},
                {"name": "kube-api-access", "mountPath": "/var/run/secrets", "readOnly": true}],
        })
    };
    let toleration = |what: &str| {
        json!({"key": format!("node.kubernetes.io/{what}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 300})
    };
    json!({
        "metadata": {
            "name": format!("web-{number:06}"),
            "labels": {"app": format!("web-{}", set % 100), "pod-template-hash": format!("{set:010}"),
                "team": "storefront", "tier": "front"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
                "name": format!("web-{set}"), "blockOwnerDeletion": true,
                "uid": format!("00000000-0000-4000-8000-{set:012}")}],
        },
        "spec": {
            "containers": [container("web")],
            "volumes": [{"name": "config", "configMap": {"name": format!("web-{set}")}},
                {"name": "kube-api-access", "projected": {"sources": [
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{"path": "namespace",
                        "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}],
            "nodeName": format!("node-{}", number % 200),
            "tolerations": [toleration("not-ready"), toleration("unreachable")],
        },
    })
}

fn status_of(number: usize) -> Value {
    let at = "2026-01-02T03:04:05Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": at});
    let container = |name: &str| {
        json!({
            "name": name, "ready": true, "restartCount": 0, "started": true,
            "image": format!("registry.example/team/{name}:1.0.0"),
            "imageID": format!("registry.example/team/{name}@sha256:{number:064}"),
            "containerID": format!("containerd://{number:064}"),
            "state": {"running": {"startedAt": at}},
        })
    };
    json!({"status": {
        "phase": "Running", "hostIP": "10.0.0.1", "startTime": at, "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}], "qosClass": "Burstable",
        "conditions": [condition("PodScheduled"), condition("Initialized"),
            condition("ContainersReady"), condition("Ready")],
        "containerStatuses": [container("web")],
    }})
}

//! What a Pod's worker tells the API. Once the agent stops, no answer is waited for.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::Worker;
use crate::node::host::Host;

/// How long to wait before something is sent again that the API did not take.
const RETRY: Duration = Duration::from_secs(1);

impl Worker {
    fn api(&self) -> Api<Pod> {
        Api::namespaced(self.host.client.clone(), &self.names().0)
    }

    /// Sends the status if it is not what was sent last.
    pub(super) async fn report(&mut self) {
        self.retry = None;
        let ip = self.ip.to_string();
        let host_ip = Host::ip().to_string();
        let status = self.machine.status(Some(&ip), &host_ip, self.host.env.now());
        let Ok(mut status) = serde_json::to_value(status) else { return };
        if status == self.reported {
            return;
        }
        let sent = status.clone();
        // A merge patch takes away only what it names.
        if let Some(fields) = status.as_object_mut() {
            for field in ["reason", "message"] {
                fields.entry(field).or_insert(Value::Null);
            }
        }
        let (_, name, uid) = self.names();
        let patch = Patch::Merge(json!({ "metadata": { "uid": uid }, "status": status }));
        let (api, params) = (self.api(), PatchParams::default());
        let answer = tokio::select! {
            biased;
            () = self.host.stopping.cancelled() => return,
            answer = api.patch_status(&name, &params, &patch) => answer,
        };
        match answer {
            Ok(_) => self.reported = sent,
            Err(kube::Error::Api(refusal)) if refusal.code == 404 || refusal.code == 409 => {
                // Deleted, or another Pod of the same name: the watch will say so.
                self.reported = sent;
            }
            Err(error) => {
                tracing::warn!(pod = name, %error, "the status could not be written");
                self.retry = Some(self.host.env.instant() + RETRY);
            }
        }
    }

    /// Makes sure that the status was taken before the Pod goes: it may be held, and its end is what
    /// others wait for.
    pub(super) async fn report_at_last(&mut self) {
        while let Some(again) = self.retry {
            let env = self.host.env.clone();
            tokio::select! {
                biased;
                () = self.host.stopping.cancelled() => return,
                () = env.sleep_until(again) => {}
            }
            self.report().await;
        }
    }

    /// Removes the Pod from the API; returns when it is gone, or the agent stops.
    pub(super) async fn release(&mut self) {
        let (_, name, uid) = self.names();
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
            ..DeleteParams::default()
        };
        let (api, env) = (self.api(), self.host.env.clone());
        let delete = async {
            loop {
                match api.delete(&name, &params).await {
                    // With a finalizer it stays a while; nothing of it runs, and the watch tells its end.
                    Ok(_) => return,
                    Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => return,
                    Err(error) => {
                        tracing::warn!(pod = name, %error, "the Pod could not be removed");
                        env.sleep(RETRY).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = self.host.stopping.cancelled() => {}
            () = delete => {}
        }
    }
}

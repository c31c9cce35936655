//! One Pod's volumes on disk, brought up to date by one task at a time.
//!
//! What is read and what is written belong together: were two tasks to do it at once, the one that
//! read first could write last, and old files would stay.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Mutex;

use super::configuration::{self, Given, Problem, Sources, Tokens};
use super::host::Host;

/// The volumes of a Pod.
#[derive(Debug, Default)]
pub(super) struct Volumes(Mutex<(Tokens, Given)>);

/// Volumes as they are now.
pub(super) struct Current {
    /// What they, and the environment, come from.
    pub(super) sources: Sources,
    /// Where each is.
    pub(super) paths: BTreeMap<String, PathBuf>,
    /// When a token in one of them is to be renewed.
    pub(super) renewal: Option<Timestamp>,
}

impl Volumes {
    /// Makes what is missing and writes the files of Secrets, ConfigMaps, tokens and the downward
    /// API again where they changed.
    pub(super) async fn update(
        &self,
        host: &Host,
        pod: &Pod,
        ip: Ipv4Addr,
    ) -> Result<Current, Problem> {
        let mut held = self.0.lock().await;
        let (tokens, given) = &mut *held;
        let sources = Sources::gather(&host.client, &host.env, pod, tokens).await?;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let root = host.data.join("pods").join(uid).join("volumes");
        let paths = configuration::volumes(&root, pod, &sources, &host.place(ip), given)?;
        Ok(Current { sources, paths, renewal: tokens.renewal() })
    }
}

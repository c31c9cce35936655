//! What no runtime can do without: every Pod comes over TLS, line by line, and is decoded once.
//! Nothing is kept, nobody is told.

use std::hint::black_box;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use homeostat::client;
use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::kube::Config;
use homeostat::kube::client::Body;
use homeostat::kube::config::{KubeConfigOptions, Kubeconfig};
use homeostat_env::Env;
use http_body_util::BodyExt as _;

use super::peer::line;

/// What informers ask for.
const PATH: &str = "/api/v1/pods?watch=true&sendInitialEvents=true\
    &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// `homeostat-bench floor`
#[derive(clap::Args)]
pub(crate) struct Floor {
    kubeconfig: PathBuf,
    pods: usize,
}

#[derive(serde::Deserialize)]
struct Event {
    object: Pod,
}

impl Floor {
    pub(crate) async fn run(self) -> Result<()> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let client = client::connect(&config, Env::system())?;
        println!("begin");
        line().await?;
        let mut body =
            client.send(http::Request::get(PATH).body(Body::empty())?).await?.into_body();
        let (mut read, mut text) = (0, Vec::new());
        while read < self.pods {
            let frame = body.frame().await.context("the answer ended too soon")??;
            text.extend_from_slice(&frame.into_data().unwrap_or_default());
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            for event in serde_json::Deserializer::from_slice(&text[..whole]).into_iter::<Event>() {
                black_box(event?.object);
                read += 1;
            }
            text.drain(..whole);
        }
        println!("all");
        // Who measures it looks now.
        line().await.map(drop)
    }
}

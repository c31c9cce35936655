//! A watch that goes on while other requests are sent. It is read as it comes, and kept until it is
//! asked for.

use std::time::Duration;

use bytes::Bytes;
use homeostat_env::Env;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

/// How long the end of a watch, or its last event, may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A watch under way; it is given up when this is dropped.
pub(crate) struct LiveWatch {
    frames: UnboundedReceiver<Bytes>,
    _reading: JoinSet<()>,
}

impl LiveWatch {
    pub(crate) fn new(mut body: Body) -> Self {
        let (sender, frames) = unbounded_channel();
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                let _ = sender.send(frame.into_data().unwrap_or_default());
            }
        });
        Self { frames, _reading: reading }
    }

    /// The lines of all events up to the first with these words, or to the end of the watch. What does
    /// not come in time is not told, and so differs.
    pub(crate) async fn until(mut self, env: &Env, words: &str) -> String {
        let is_last = |line: &str| !words.is_empty() && line.contains(words);
        let mut bytes = Vec::new();
        let reading = async {
            while !whole_lines(&bytes).lines().any(is_last) {
                let Some(frame) = self.frames.recv().await else { break };
                bytes.extend(frame);
            }
        };
        let is_over = env.timeout(PATIENCE, reading).await.is_ok();
        let told = whole_lines(&bytes);
        let last = told.lines().position(is_last).map_or(usize::MAX, |last| last + 1);
        let told: Vec<&str> = told.lines().take(last).collect();
        let end = if is_over { "" } else { "{\"type\":\"STILL WAITING\"}" };
        format!("{}\n{end}", told.join("\n"))
    }
}

/// What has come so far, without the line that is on its way.
fn whole_lines(bytes: &[u8]) -> String {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    String::from_utf8_lossy(&bytes[..whole]).into_owned()
}

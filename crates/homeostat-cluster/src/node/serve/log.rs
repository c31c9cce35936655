//! `kubectl logs`.

use std::time::Duration;

use futures::TryStreamExt;
use homeostat_env::Env;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;

use super::query::Query;
use super::{Body, Refusal};
use crate::node::directory::Runs;
use crate::node::logs::{Options, follow, stream};

pub(super) async fn answer(
    env: &Env,
    runs: &Runs,
    (pod, container): (&str, &str),
    query: &Query,
) -> Result<Response<Body>, Refusal> {
    let since_seconds: Option<u64> = query.number("sinceSeconds")?;
    let since_time: Option<Timestamp> = query.number("sinceTime")?;
    let ago = |seconds| env.now().checked_sub(Duration::from_secs(seconds)).ok();
    let options = Options {
        tail: query.number("tailLines")?,
        since: since_time.or_else(|| since_seconds.and_then(ago)),
        timestamps: query.is_set("timestamps"),
        limit: query.number("limitBytes")?,
    };
    let log = if query.is_set("previous") {
        runs.previous().cloned().ok_or_else(|| {
            let what = "previous terminated container";
            (StatusCode::BAD_REQUEST, format!("{what} {container:?} in pod {pod:?} not found"))
        })?
    } else {
        runs.newest.clone().ok_or_else(|| {
            let why = waits(runs.waits.as_deref());
            let words = format!("container {container:?} in pod {pod:?} is waiting to start{why}");
            (StatusCode::BAD_REQUEST, words)
        })?
    };
    let body = if query.is_set("follow") {
        StreamBody::new(follow(log, options).map_ok(Frame::data).map_err(Into::into)).boxed_unsync()
    } else {
        StreamBody::new(stream(log, options).map_ok(Frame::data).map_err(Into::into)).boxed_unsync()
    };
    let response = Response::builder().header("content-type", "text/plain").body(body);
    response.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Why there is nothing to read yet, in the kubelet's words.
fn waits(reason: Option<&str>) -> String {
    match reason {
        Some("ErrImagePull") => ": image can't be pulled".into(),
        Some("ImagePullBackOff") => ": trying and failing to pull image".into(),
        Some(reason) => format!(": {reason}"),
        None => " - no logs yet".into(),
    }
}

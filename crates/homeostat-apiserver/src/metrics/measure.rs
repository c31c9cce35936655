//! One request from its beginning to the end of its answer, and what is counted about it. A request
//! that is given up on the way is still counted out of those under way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use homeostat_env::Env;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;
use tower::BoxError;

use super::Metrics;
use super::labels::{Answered, Asked, Plain, Sort};
use crate::http::Body;

/// A request under way. What is not named is not counted: it was refused before anybody knew what
/// it was about.
#[derive(Debug)]
pub(crate) struct Measure {
    metrics: Arc<Metrics>,
    env: Env,
    begun: Instant,
    asked: Option<Asked>,
    under_way: Option<UnderWay>,
}

impl Measure {
    pub(crate) fn begin(metrics: &Arc<Metrics>, env: &Env) -> Self {
        let (metrics, env) = (metrics.clone(), env.clone());
        Self { begun: env.instant(), metrics, env, asked: None, under_way: None }
    }

    /// Says what the request is about.
    pub(crate) fn name(&mut self, sort: Sort, dry_run: bool) {
        let metrics = &self.metrics;
        let sort = Arc::new(sort);
        let gauge = if sort.is_long() {
            metrics.long.get_or_create_owned(&Plain(sort.clone()))
        } else if sort.writes() {
            metrics.writing.clone()
        } else {
            metrics.reading.clone()
        };
        self.under_way = Some(UnderWay::begin(gauge));
        self.asked = Some(Asked { sort, dry_run: if dry_run { "All" } else { "" } });
    }

    /// Counts the answer: now, or when it has been read if it may take long.
    pub(crate) fn end(mut self, response: Response<Body>) -> Response<Body> {
        let Some(asked) = self.asked.take() else { return response };
        let code = response.status().as_u16();
        if asked.sort.is_long() && code < 400 {
            let last = Last { measure: self, asked, code };
            return response.map(|body| Counted { body, _last: last }.boxed_unsync());
        }
        let size = response.body().size_hint().exact();
        self.count(asked, code, size);
        response
    }

    fn count(&self, asked: Asked, code: u16, size: Option<u64>) {
        let took = self.env.instant().duration_since(self.begun).as_secs_f64();
        let metrics = &self.metrics;
        metrics.durations.get_or_create(&asked).observe(took);
        if matches!(asked.sort.verb, "GET" | "LIST")
            && let Some(size) = size
        {
            #[expect(clippy::cast_precision_loss, reason = "answers are smaller than 2^53 bytes")]
            metrics.sizes.get_or_create(&Plain(asked.sort.clone())).observe(size as f64);
        }
        metrics.requests.get_or_create(&Answered { asked, code }).inc();
    }
}

/// One more of something, until it is dropped.
#[derive(Debug)]
struct UnderWay(Gauge);

impl UnderWay {
    fn begin(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts a long answer when it is over, read to its end or not.
struct Last {
    measure: Measure,
    asked: Asked,
    code: u16,
}

impl Drop for Last {
    fn drop(&mut self) {
        self.measure.count(self.asked.clone(), self.code, None);
    }
}

/// A body whose end is counted.
struct Counted {
    body: Body,
    _last: Last,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

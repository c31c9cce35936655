//! Runs a [`Machine`] on a [`kube::Client`]: raw bytes in, changes out; nothing typed is decoded.

use std::time::Duration;

use homeostat_env::Env;
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::decode::{self, Page, Reader};
use super::lines::Lines;
use super::{Change, Input, Machine, Next, Refusal, Request};
use crate::cache::{Entry, Transform};
use crate::client;
use crate::error::chain;
use crate::kind::Kind;

/// How long the server may take to answer a request, a page to its end.
const ANSWER: Duration = Duration::from_secs(60);

/// A watch that ends after such a time was well until then.
const LIVED: Duration = Duration::from_secs(5);

/// What is watched.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) metadata_only: bool,
    pub(crate) keep_managed_fields: bool,
    pub(crate) transform: Option<Transform>,
}

/// Follows the source until the receiver is gone; `told` is the revision up to which it was followed
/// before.
pub(crate) async fn run(
    client: kube::Client,
    env: Env,
    source: Source,
    told: Option<String>,
    changes: mpsc::Sender<Change<Entry>>,
) {
    let mut machine = Machine::after(told);
    let mut reader = Reader::new(&source);
    let mut lines = None;
    let mut input = Input::Go;
    // Whether the log has it already, or need not have it, why the source may be pending now.
    let mut is_told = false;
    let start = env.instant();
    let mut ends = Ends { opened: start, in_a_row: 0 };
    loop {
        let step = machine.step(input, env.instant() - start, env.random_unit());
        for change in step.changes {
            match &change {
                Change::Pending(why) if is_told => {
                    tracing::debug!(kind = %source.kind, why, "source is pending");
                }
                Change::Pending(why) => {
                    tracing::warn!(kind = %source.kind, why, "source is pending");
                }
                _ => {}
            }
            if changes.send(change).await.is_err() {
                return;
            }
        }
        is_told = false;
        input = match (step.next, &mut lines) {
            (Next::Wait(delay), _) => {
                lines = None;
                env.sleep(delay).await;
                Input::Go
            }
            (Next::Request(request), _) => {
                lines = None;
                match env.timeout(ANSWER, source.send(&client, &request, &mut reader)).await {
                    Err(_) => Input::Broken(format!("no answer within {ANSWER:?}")),
                    Ok(Answer::Broken(error)) => {
                        is_told = client::is_told(&*error);
                        if is_told {
                            ends.in_a_row = 0;
                        }
                        Input::Broken(chain(&*error))
                    }
                    Ok(Answer::No(refusal)) => Input::Refused(refusal),
                    Ok(Answer::Watch(body)) => {
                        lines = Some(Lines::of(body));
                        ends.opened = env.instant();
                        Input::Opened
                    }
                    Ok(Answer::Page(Page { items, skipped, revision, token })) => {
                        Input::Page { items, skipped, revision, token }
                    }
                }
            }
            (Next::Read(idle), Some(lines)) => match env.timeout(idle, lines.next()).await {
                Err(_) => Input::Silent,
                Ok(Err(error)) => {
                    is_told = ends.is_no_news(env.instant());
                    Input::Broken(chain(&error))
                }
                Ok(Ok(None)) => {
                    is_told = ends.is_no_news(env.instant());
                    Input::Closed
                }
                Ok(Ok(Some(line))) => reader.event(&line),
            },
            (Next::Read(_), None) => Input::Broken("there is nothing to read".to_owned()),
        };
    }
}

/// Watches that end, as when their server does, are begun again; only if that goes wrong there is
/// trouble.
struct Ends {
    /// When the watch was opened.
    opened: Instant,
    /// How many have ended soon, since the server was out of reach.
    in_a_row: u32,
}

impl Ends {
    fn is_no_news(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.opened) >= LIVED {
            self.in_a_row = 0;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.in_a_row == 1
    }
}

enum Answer {
    Page(Page),
    Watch(Body),
    No(Refusal),
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl Source {
    async fn send(&self, client: &kube::Client, request: &Request, reader: &mut Reader) -> Answer {
        let answer = self.try_send(client, request, reader).await;
        answer.unwrap_or_else(Answer::Broken)
    }

    /// How the answer shall look.
    fn accept(&self, request: &Request) -> &'static str {
        match (self.metadata_only, request) {
            (false, _) => "application/json",
            (true, Request::Page { .. }) => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            (true, _) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }

    async fn try_send(
        &self,
        client: &kube::Client,
        request: &Request,
        reader: &mut Reader,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let path = self.kind.path(self.namespace.as_deref());
        let query = request.query(self.labels.as_deref(), self.fields.as_deref());
        let sent = http::Request::get(format!("{path}?{query}"))
            .header(http::header::ACCEPT, self.accept(request))
            // Compressed watch events come as one gzip member each, which few decoders follow.
            .header(http::header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())?;
        let response = client.send(sent).await?;
        let (status, after) = (response.status(), client::retry_after(response.headers()));
        let body = response.into_body();
        if status.is_success() && !matches!(request, Request::Page { .. }) {
            return Ok(Answer::Watch(body));
        }
        let body = body.collect().await?.to_bytes();
        if status.is_success() {
            return Ok(Answer::Page(reader.page(&body)?));
        }
        Ok(Answer::No(decode::refusal(status.as_u16(), &body).or_told_to_wait(after)))
    }
}

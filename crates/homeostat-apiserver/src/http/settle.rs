//! Runs a write to its end: asks what it has to know, and tries again until nothing is open.
//! Reads ask here, too; they have nothing to try again.

use std::future::Future;
use std::time::Duration;

use crate::admission::{self, Answer, Inquiry, Missing, Question, Topic};
use crate::custom::conversion;
use crate::registry::Registry;
use crate::status::Status;
use crate::store::StoreError;
use crate::webhook_client;
use futures::future::join_all;

/// A write that still has questions after so many rounds competes with others for its object.
const ROUNDS: usize = 64;

/// How long a write waits for an object that is about to be made.
const PATIENCE: Duration = Duration::from_millis(1800);

/// Runs `write` until it has an answer to everything it asks. What webhooks have to say to the
/// client comes with its result.
pub(crate) async fn settle<T>(
    registry: &Registry,
    inquiry: &Inquiry,
    write: impl Fn() -> Result<T, Status>,
) -> Result<(T, Vec<String>), Status> {
    for _ in 0..ROUNDS {
        inquiry.begin();
        let result = write();
        let (open, missing, case) = (inquiry.open(), inquiry.missing(), inquiry.case());
        let hearings = inquiry.hearings();
        if open.is_empty() && missing.is_none() && case.is_none() && hearings.is_empty() {
            let mut warnings = inquiry.warnings();
            return match result {
                Ok(done) => Ok((done, warnings)),
                Err(mut status) => {
                    status.warnings.append(&mut warnings);
                    Err(status)
                }
            };
        }
        if let Some(missing) = missing {
            wait_for(registry, &missing).await;
        }
        if let Some(case) = case {
            inquiry.decide(case);
        }
        for hearing in hearings {
            inquiry.hold(&registry.rbac, hearing);
        }
        for (question, answer) in ask(registry, open).await {
            inquiry.answered(&question, answer);
        }
    }
    Err(Status::new(409, "Conflict", "the object changes faster than its webhooks answer"))
}

/// Waits until the object is there, but not for ever.
async fn wait_for(registry: &Registry, missing: &Missing) {
    let store = &registry.store;
    let there = async {
        let mut watcher = store.watch(missing.resource, store.revision())?;
        while store.get(missing.resource, &missing.key).is_none() {
            watcher.next().await?;
        }
        Ok::<(), StoreError>(())
    };
    // Whether it came, the next attempt sees for itself.
    let _ = registry.env.timeout(PATIENCE, there).await;
}

/// Asks all questions at once.
fn ask(
    registry: &Registry,
    questions: Vec<Question>,
) -> impl Future<Output = Vec<(Question, Answer)>> {
    join_all(questions.into_iter().map(async |question| {
        let answer = ask_one(registry, &question).await;
        (question, answer)
    }))
}

/// Asks one question, under a uid of its own.
pub(crate) async fn ask_one(registry: &Registry, question: &Question) -> Answer {
    let uid = registry.env.uid();
    let mut review = question.review.clone();
    review["request"]["uid"] = uid.clone().into();
    let reply = webhook_client::call(registry, &question.client, question.timeout, &review).await;
    match question.topic {
        Topic::Admission { mutates } => {
            let reply = reply.map_err(|why| format!("failed to call webhook: {why}"))?;
            admission::read_response(&review, &uid, mutates, reply)
        }
        Topic::Conversion => conversion::objects_of(&review, &uid, reply?),
    }
}

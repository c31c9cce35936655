//! One write's dealings with the outside: what webhooks were asked and what they answered.
//!
//! A write is decided in one turn, without waiting. Where it needs an answer that nobody has given
//! yet, it leaves the question here and gives up its turn; whoever runs it asks, records the
//! answer, and runs the write again from the start. What a write draws by chance (its time, the
//! uid, names) is drawn once and kept, so that the same questions arise again. An object that
//! somebody is about to make is waited for in the same way, once; and rules of a custom resource and
//! policies that take long are asked in the same way, while others write.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

use super::hearing::{self, Docket, Hearing, Opinion, Turn};
use crate::auth::Rbac;
use crate::decode::Emptied;
use crate::field::FieldError;
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::Key;
use crate::validate;

/// Something only a webhook can answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// The webhook's name, for people.
    pub(crate) webhook: String,
    /// Where it is: `clientConfig` of its configuration.
    pub(crate) client: Value,
    /// How long it may take, in seconds.
    pub(crate) timeout: u64,
    /// The review, without its uid.
    pub(crate) review: Value,
    /// What it is about.
    pub(crate) topic: Topic,
    /// How often the same was asked before by this write: webhooks are called once for each time.
    pub(crate) repeated: usize,
}

/// What a webhook is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Whether and how a write may happen: the answer is the `response` of an `AdmissionReview`.
    Admission {
        /// Whether the webhook may change the object.
        mutates: bool,
    },
    /// How objects look in another version: the answer is the list of them.
    Conversion,
}

/// An object that is about to be made.
#[derive(Debug, Clone)]
pub(crate) struct Missing {
    /// The resource, as the store knows it.
    pub(crate) resource: &'static str,
    /// Where in it.
    pub(crate) key: Key,
}

/// An object whose rules take long: they are asked while nobody waits.
#[derive(Debug)]
pub(crate) struct Case {
    kind: Kind,
    object: Value,
    old: Option<Value>,
}

/// What the rules of a custom resource say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    /// What they refuse.
    pub(crate) refused: Vec<FieldError>,
    /// What was wrong before.
    pub(crate) forgiven: Vec<FieldError>,
}

/// How often something that takes long is put off. Whoever still has to wait then competes with
/// others for its object, or has very much to ask: it keeps everybody else waiting from there on.
const PATIENCE: usize = 32;

/// What became of a question: what came back, or why nothing did.
pub(crate) type Answer = Result<Value, String>;

/// The dealings so far. A fresh one knows no answers.
#[derive(Debug, Default)]
pub struct Inquiry {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    time: Option<Timestamp>,
    uid: Option<String>,
    names: Vec<String>,
    volume: Option<String>,
    answers: BTreeMap<String, Answer>,
    open: Vec<Question>,
    /// How often webhooks were asked the same in this attempt.
    asked: BTreeMap<String, usize>,
    missing: Option<Missing>,
    has_waited: bool,
    /// How often somebody who would run the write again ran it.
    attempts: usize,
    docket: Docket,
    case: Option<Box<Case>>,
    decided: Option<(Box<Case>, Verdict)>,
    warnings: Vec<String>,
    emptied: Emptied,
}

impl State {
    /// Whether what takes long may wait for the next attempt.
    fn may_wait(&self) -> bool {
        (1..=PATIENCE).contains(&self.attempts)
    }
}

impl Inquiry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another attempt: what the one before it had to say is forgotten.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.open.clear();
        state.asked.clear();
        state.missing = None;
        state.case = None;
        state.attempts += 1;
        state.docket.begin();
        state.warnings.clear();
    }

    /// The time of the write.
    pub(crate) fn time(&self, now: impl FnOnce() -> Timestamp) -> Timestamp {
        *self.state().time.get_or_insert_with(now)
    }

    /// The uid of a new object.
    pub(crate) fn uid(&self, draw: impl FnOnce() -> String) -> String {
        self.state().uid.get_or_insert_with(draw).clone()
    }

    /// The name of a new object, made up at the `attempt`th time (0 is the first).
    pub(crate) fn name(&self, attempt: usize, draw: impl FnOnce() -> String) -> String {
        let mut state = self.state();
        if let Some(name) = state.names.get(attempt) {
            return name.clone();
        }
        let name = draw();
        state.names.push(name.clone());
        name
    }

    /// The name of the volume with a new Pod's token.
    pub(crate) fn volume(&self, draw: impl FnOnce() -> String) -> String {
        self.state().volume.get_or_insert_with(draw).clone()
    }

    /// Tells the client something, whatever becomes of the write.
    pub(crate) fn warn(&self, warning: String) {
        self.state().warnings.push(warning);
    }

    /// Keeps what was given and is empty.
    pub(crate) fn note_empty(&self, emptied: Emptied) {
        self.state().emptied = emptied;
    }

    /// The object with what was given and is empty, where that is wanted, if there was something.
    pub(crate) fn restored(
        &self,
        object: &Value,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Option<Value> {
        self.state().emptied.restored(object, is_wanted)
    }

    /// Whether that list or map was given and is empty.
    pub(crate) fn is_given_empty(&self, pointer: &str) -> bool {
        self.state().emptied.has(pointer)
    }

    /// The answer, if it is known; otherwise the question is open from now on.
    pub(crate) fn ask(&self, mut question: Question) -> Option<Answer> {
        let mut state = self.state();
        if question.topic != Topic::Conversion {
            let times = state.asked.entry(key(&question)).or_default();
            question.repeated = *times;
            *times += 1;
        }
        let answer = state.answers.get(&key(&question)).cloned();
        if answer.is_none() {
            state.open.push(question);
        }
        answer
    }

    /// A write that waits for answers; nobody sees it.
    pub(crate) fn unanswered() -> Status {
        Status::internal("a webhook has not answered")
    }

    /// What the rules of a custom resource say to an object. What takes long is left for later, if
    /// somebody runs the write again then.
    pub(crate) fn judge(
        &self,
        kind: &Kind,
        object: &Value,
        old: Option<&Value>,
    ) -> Option<Verdict> {
        let may_wait = {
            let state = self.state();
            if let Some((case, verdict)) = &state.decided
                && case.object == *object
                && case.old.as_ref() == old
            {
                return Some(verdict.clone());
            }
            state.may_wait()
        };
        let mut forgiven = Vec::new();
        let refused = match may_wait {
            true => validate::short_rules(kind, object, old, &mut forgiven),
            false => Some(validate::rules(kind, object, old, &mut forgiven)),
        };
        if refused.is_none() {
            let (kind, object, old) = (kind.clone(), object.clone(), old.cloned());
            self.state().case = Some(Box::new(Case { kind, object, old }));
        }
        refused.map(|refused| Verdict { refused, forgiven })
    }

    /// What must be judged before the write can be tried again.
    pub(crate) fn case(&self) -> Option<Box<Case>> {
        self.state().case.take()
    }

    /// Asks the rules, however long that takes.
    pub(crate) fn decide(&self, case: Box<Case>) {
        let mut forgiven = Vec::new();
        let refused = validate::rules(&case.kind, &case.object, case.old.as_ref(), &mut forgiven);
        self.state().decided = Some((case, Verdict { refused, forgiven }));
    }

    /// The opinion of those who are to be heard. What takes long is left for later, if somebody runs
    /// the write again then.
    pub(super) fn hear(&self, rules: &Rbac, hearing: Hearing) -> Option<Opinion> {
        let (turn, may_wait) = {
            let mut state = self.state();
            (state.docket.turn(rules, &hearing), state.may_wait())
        };
        match turn {
            Turn::Known(opinion) => Some(opinion),
            Turn::Short(_) if !may_wait => Some(hearing::long(rules, &hearing).0),
            Turn::Short(left) => match hearing::short(rules, &hearing, left) {
                Some((opinion, left)) => {
                    self.state().docket.spent(left);
                    Some(opinion)
                }
                None => {
                    self.state().docket.put_off(hearing);
                    None
                }
            },
        }
    }

    /// Who must be heard before the write can be tried again.
    pub(crate) fn hearings(&self) -> Vec<Hearing> {
        self.state().docket.open()
    }

    /// Hears them, however long that takes.
    pub(crate) fn hold(&self, rules: &Rbac, hearing: Hearing) {
        let heard = hearing::long(rules, &hearing);
        self.state().docket.heard(hearing, heard);
    }

    /// Whether something is open.
    pub(crate) fn waits(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// Says that the object may still come: the write is tried again once it is there, or once it
    /// has been waited for long enough. That happens once; then the write is as good as decided.
    pub(crate) fn may_come(&self, resource: &'static str, key: Key) {
        let mut state = self.state();
        if !state.has_waited {
            state.missing = Some(Missing { resource, key });
        }
    }

    /// What must be waited for before the write can be tried again.
    pub(crate) fn missing(&self) -> Option<Missing> {
        let mut state = self.state();
        let missing = state.missing.take();
        state.has_waited |= missing.is_some();
        missing
    }

    /// What must be asked before the write can be tried again.
    pub(crate) fn open(&self) -> Vec<Question> {
        std::mem::take(&mut self.state().open)
    }

    /// Records an answer.
    pub(crate) fn answered(&self, question: &Question, answer: Answer) {
        self.state().answers.insert(key(question), answer);
    }

    /// What the client is told.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.state().warnings.clone()
    }
}

fn key(question: &Question) -> String {
    let Question { webhook, client, review, topic, repeated, .. } = question;
    format!("{webhook} {topic:?} {repeated} {client} {review}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Inquiry;
    use crate::custom;
    use crate::kinds::Kind;

    /// A kind whose rule looks at every pair of items.
    fn kind() -> Kind {
        let rule = json!({"rule": "self.all(a, self.all(b, a + b < 100))"});
        let items = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]});
        let schema = json!({"type": "object", "properties": {"items": items}});
        custom::rows(&definition(&schema)).remove(0)
    }

    fn definition(schema: &Value) -> Value {
        let mut definition = json!({
            "metadata": {"name": "qs.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": "qs", "kind": "Q"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            },
        });
        custom::defaults(&mut definition);
        definition
    }

    fn object(items: &[i64]) -> Value {
        json!({"items": items})
    }

    #[test]
    fn rules_that_take_long_are_asked_while_nobody_waits() {
        let (kind, inquiry) = (kind(), Inquiry::default());
        let mut last = [0; 100];
        last[99] = 50;
        let (good, bad) = (object(&[1; 100]), object(&last));
        inquiry.begin();
        for (object, refused) in [(&good, 0), (&bad, 1)] {
            assert!(inquiry.judge(&kind, object, None).is_none());
            let case = inquiry.case().unwrap();
            inquiry.decide(case);
            assert_eq!(inquiry.judge(&kind, object, None).unwrap().refused.len(), refused);
        }
        // What was decided is about that object only.
        assert!(inquiry.judge(&kind, &good, None).is_none());
    }

    #[test]
    fn definitions_whose_rules_are_about_their_defaults_are_judged_while_nobody_waits() {
        let builtin = crate::kinds::builtin();
        let kind = builtin.iter().find(|kind| kind.kind == "CustomResourceDefinition").unwrap();
        let definition = |default: i64| {
            let rule = json!({"rule": "self > 1"});
            let field =
                json!({"type": "integer", "default": default, "x-kubernetes-validations": [rule]});
            let schema = json!({"type": "object", "properties": {"field": field}});
            definition(&schema)
        };
        let inquiry = Inquiry::default();
        inquiry.begin();
        for (default, refused) in [(2, 0), (1, 1)] {
            let definition = definition(default);
            assert!(inquiry.judge(kind, &definition, None).is_none());
            inquiry.decide(inquiry.case().unwrap());
            let verdict = inquiry.judge(kind, &definition, None).unwrap();
            assert_eq!(verdict.refused.len(), refused, "{:?}", verdict.refused);
        }
    }

    #[test]
    fn rules_that_take_a_moment_are_asked_at_once() {
        let (kind, inquiry) = (kind(), Inquiry::default());
        inquiry.begin();
        assert_eq!(inquiry.judge(&kind, &object(&[50, 50]), None).unwrap().refused.len(), 1);
        assert!(inquiry.case().is_none());
    }

    #[test]
    fn a_write_that_nobody_runs_again_is_judged_to_the_end() {
        let (kind, inquiry) = (kind(), Inquiry::default());
        assert!(inquiry.judge(&kind, &object(&[1; 100]), None).is_some());
    }
}

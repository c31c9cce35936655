//! Hearings: the expressions of one policy or webhook, asked about one request.
//!
//! While a write is decided, everybody else who writes waits, so expressions get a moment only.
//! Those that take longer go on the docket: they are heard while others write, and the write, tried
//! again from its start, finds their opinion there. An opinion is good for what it was formed on:
//! the same expressions, the same object, and an authorizer that still says the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_cel::{Decision, Question};
use serde_json::Value;

use super::access::Access;
use super::configuration::{Policy, Webhook};
use super::expression::{Given, Pace, conditions_hold};
use super::policy::Judgement;
use super::{Review, mutating_policy, policy};
use crate::aside;
use crate::auth::{Rbac, User};
use crate::kinds::Kind;
use crate::status::Status;

/// Whose expressions are asked, by their place among all.
#[derive(Debug)]
pub(super) enum Panel {
    /// All that a validating policy has to say.
    Policy(Arc<Vec<Policy>>, usize),
    /// One mutation of a mutating policy; the first one comes with the conditions.
    Mutation(Arc<Vec<Policy>>, usize, usize),
    /// The conditions of a webhook.
    Webhook(Arc<Vec<Webhook>>, usize),
}

impl Panel {
    /// Whether they are the same expressions, and nobody configured anything since.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Policy(a, at), Self::Policy(b, there)) => Arc::ptr_eq(a, b) && at == there,
            (Self::Mutation(a, at, place), Self::Mutation(b, there, position)) => {
                Arc::ptr_eq(a, b) && (at, place) == (there, position)
            }
            (Self::Webhook(a, at), Self::Webhook(b, there)) => Arc::ptr_eq(a, b) && at == there,
            _ => false,
        }
    }

    fn ask(&self, given: &Given<'_>) -> Opinion {
        let (conditions, is_first) = match self {
            Self::Policy(all, at) => (&all[*at].conditions, true),
            Self::Mutation(all, at, place) => (&all[*at].conditions, *place == 0),
            Self::Webhook(all, at) => (&all[*at].conditions, true),
        };
        let holds = if is_first { conditions_hold(conditions, given) } else { Ok(true) };
        let mut opinion =
            Opinion { holds, judgement: Judgement::default(), change: Ok(Value::Null) };
        if opinion.holds == Ok(true) {
            match self {
                Self::Policy(all, at) => opinion.judgement = policy::evaluate(&all[*at], given),
                Self::Mutation(all, at, place) => {
                    opinion.change = mutating_policy::evaluate(&all[*at], *place, given);
                }
                Self::Webhook(..) => {}
            }
        }
        opinion
    }
}

/// The object and the one before it, as whoever is asked sees them.
pub(super) type Shown = Arc<(Value, Value)>;

/// Everything about a request that expressions may speak of.
#[derive(Debug, PartialEq)]
pub(super) struct Evidence {
    pub(super) shown: Shown,
    pub(super) request: Value,
    pub(super) params: Value,
    pub(super) namespace: Value,
    /// Who makes the request.
    pub(super) user: Arc<User>,
    /// What it is about, for whoever asks the authorizer.
    pub(super) own: Question,
}

impl Evidence {
    fn is_small(&self) -> bool {
        let (object, old_object) = &*self.shown;
        [object, old_object, &self.params].into_iter().all(aside::is_small)
    }
}

/// The object in the versions in which somebody wanted to see it.
#[derive(Default)]
pub(super) struct Views(BTreeMap<String, Shown>);

impl Views {
    pub(super) fn of(&mut self, review: &Review<'_>, kind: &Kind) -> Result<Shown, Status> {
        let version = kind.api_version();
        if let Some(shown) = self.0.get(&version) {
            return Ok(Arc::clone(shown));
        }
        let shown = Arc::new(review.shown(kind)?);
        self.0.insert(version, Arc::clone(&shown));
        Ok(shown)
    }
}

impl Review<'_> {
    /// What expressions see of the request; there are no parameters and no namespace.
    pub(super) fn evidence(&self, kind: &Kind, shown: Shown) -> Evidence {
        let own = Question {
            group: self.kind.group.clone(),
            resource: self.kind.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.request_namespace().to_owned(),
            name: self.name.to_owned(),
            ..Question::default()
        };
        Evidence {
            shown,
            request: self.request(kind),
            params: Value::Null,
            namespace: Value::Null,
            user: self.wish.asker().unwrap_or_else(User::admin),
            own,
        }
    }

    /// The opinion of a panel; none yet if it takes long.
    pub(super) fn hear(&self, panel: Panel, evidence: Evidence) -> Option<Opinion> {
        self.wish.inquiry().hear(&self.writer.registry.rbac, Hearing { panel, evidence })
    }
}

/// What came of a hearing.
#[derive(Debug, Clone)]
pub(crate) struct Opinion {
    /// Whether the conditions hold; without them nobody was asked more.
    pub(super) holds: Result<bool, String>,
    pub(super) judgement: Judgement,
    /// What a mutation makes, or why it makes nothing.
    pub(super) change: Result<Value, String>,
}

/// Something to be heard.
#[derive(Debug)]
pub(crate) struct Hearing {
    panel: Panel,
    evidence: Evidence,
}

impl Hearing {
    fn is(&self, other: &Self) -> bool {
        self.panel.is(&other.panel) && self.evidence == other.evidence
    }

    /// The opinion, and what the authorizer was asked and said.
    fn hold(&self, rules: &Rbac, pace: &Pace) -> (Opinion, Vec<(Question, Decision)>) {
        let access = Access::new(rules, &self.evidence.user, &self.evidence.own);
        let opinion = self.panel.ask(&Given::new(&self.evidence, &access, pace));
        (opinion, access.asked())
    }
}

/// A hearing that took place.
#[derive(Debug)]
struct Heard {
    hearing: Hearing,
    asked: Vec<(Question, Decision)>,
    opinion: Opinion,
    /// Whether the last attempt needed it.
    is_needed: bool,
}

/// What one write has to hear, and what it heard.
#[derive(Debug, Default)]
pub(super) struct Docket {
    open: Vec<Hearing>,
    heard: Vec<Heard>,
    /// What expressions may still cost in this attempt.
    left: u64,
}

/// What is to be done about a hearing.
pub(super) enum Turn {
    /// Nothing: there is an opinion.
    Known(Opinion),
    /// It may take a moment.
    Short(u64),
}

impl Docket {
    /// Begins another attempt. What the last one did not come across was about something else.
    pub(super) fn begin(&mut self) {
        self.open.clear();
        self.heard.retain_mut(|heard| std::mem::take(&mut heard.is_needed));
        self.left = aside::SHORT_IN_ALL;
    }

    pub(super) fn turn(&mut self, rules: &Rbac, hearing: &Hearing) -> Turn {
        let Some(heard) = self.heard.iter_mut().find(|heard| heard.hearing.is(hearing)) else {
            return Turn::Short(self.left);
        };
        let Hearing { evidence, .. } = hearing;
        let access = Access::new(rules, &evidence.user, &evidence.own);
        if heard.asked.iter().any(|(question, said)| access.decide(question) != *said) {
            return Turn::Short(self.left);
        }
        heard.is_needed = true;
        Turn::Known(heard.opinion.clone())
    }

    /// What a short hearing left of the time.
    pub(super) fn spent(&mut self, left: u64) {
        self.left = left;
    }

    /// Puts off a hearing.
    pub(super) fn put_off(&mut self, hearing: Hearing) {
        self.open.push(hearing);
    }

    /// What is to be heard before the write can be tried again.
    pub(super) fn open(&mut self) -> Vec<Hearing> {
        std::mem::take(&mut self.open)
    }

    pub(super) fn heard(
        &mut self,
        hearing: Hearing,
        (opinion, asked): (Opinion, Vec<(Question, Decision)>),
    ) {
        self.heard.push(Heard { hearing, asked, opinion, is_needed: true });
    }
}

/// A hearing that takes a moment, and what is left of the time; nothing if it takes longer.
pub(super) fn short(rules: &Rbac, hearing: &Hearing, left: u64) -> Option<(Opinion, u64)> {
    if !hearing.evidence.is_small() {
        return None;
    }
    let pace = Pace::short(left);
    let (opinion, _) = hearing.hold(rules, &pace);
    Some((opinion, pace.left()?))
}

/// A hearing to its end, however long that takes.
pub(super) fn long(rules: &Rbac, hearing: &Hearing) -> (Opinion, Vec<(Question, Decision)>) {
    aside::judge(&hearing.evidence.shown.0, || hearing.hold(rules, &Pace::unhurried()))
}

#[cfg(test)]
mod tests;

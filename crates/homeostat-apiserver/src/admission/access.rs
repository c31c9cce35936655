//! `authorizer` in expressions: the rules of the cluster answer, about whoever makes the request or
//! about a service account.

use std::cell::RefCell;

use homeostat_cel::{Decision, Question};

use crate::auth::{Attributes, Rbac, User, service_account_groups, service_account_name};

/// What expressions may ask of one request.
pub(super) struct Access<'a> {
    rules: &'a Rbac,
    user: &'a User,
    /// What the request is about.
    pub(super) own: &'a Question,
    asked: RefCell<Vec<(Question, Decision)>>,
}

impl<'a> Access<'a> {
    pub(super) fn new(rules: &'a Rbac, user: &'a User, own: &'a Question) -> Self {
        Self { rules, user, own, asked: RefCell::default() }
    }

    /// The answer to an expression, which is remembered.
    pub(super) fn answer(&self, question: &Question) -> Decision {
        let decision = self.decide(question);
        self.asked.borrow_mut().push((question.clone(), decision.clone()));
        decision
    }

    /// What was asked, and what the answers were.
    pub(super) fn asked(self) -> Vec<(Question, Decision)> {
        self.asked.into_inner()
    }

    pub(super) fn decide(&self, question: &Question) -> Decision {
        let account = question.account.as_ref().map(|(namespace, name)| {
            let name = service_account_name(namespace, name);
            User::new(name, service_account_groups(namespace))
        });
        let wanted = Attributes {
            verb: question.verb.clone(),
            group: question.group.clone(),
            resource: question.resource.clone(),
            subresource: question.subresource.clone(),
            namespace: question.namespace.clone(),
            name: question.name.clone(),
            path: question.path.clone(),
        };
        let found = self.rules.authorize(account.as_ref().unwrap_or(self.user), &wanted);
        Decision { allowed: found.allowed, reason: found.reason, error: None }
    }
}

//! `authorizer` in expressions: the rules of the cluster answer, about whoever makes the request or
//! about a service account.

use std::sync::Arc;

use homeostat_cel::{Decision, Question};

use super::Review;
use crate::auth::{Attributes, Rbac, User, service_account_groups, service_account_name};

/// What expressions may ask of one request.
#[derive(Clone)]
pub(super) struct Access<'a> {
    rules: &'a Rbac,
    user: Arc<User>,
    /// What the request is about.
    pub(super) own: Question,
}

impl Review<'_> {
    /// Whom expressions ask who may do what.
    pub(super) fn access(&self) -> Access<'_> {
        let own = Question {
            group: self.kind.group.clone(),
            resource: self.kind.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.request_namespace().to_owned(),
            name: self.name.to_owned(),
            ..Question::default()
        };
        let user = self.wish.asker().unwrap_or_else(User::admin);
        Access { rules: &self.writer.registry.rbac, user, own }
    }
}

impl Access<'_> {
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
        let found = self.rules.authorize(account.as_ref().unwrap_or(&self.user), &wanted);
        Decision { allowed: found.allowed, reason: found.reason, error: None }
    }
}

//! Reviews: questions that are posted and answered, never stored.

use serde_json::{Map, Value, json};

use super::create::place;
use super::options::WriteOptions;
use super::token::texts;
use super::update::Area;
use super::{Registry, Target, access_rules, metadata, rules, seconds};
use crate::admission::{self, Operation, Review, Wish};
use crate::auth::{Attributes, ISSUER, Identity, Refused, User};
use crate::kinds::Kind;
use crate::status::Status;

/// Whom a review is asked of.
pub(crate) struct Asked<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) identity: Option<&'a Identity>,
    /// Who asks.
    pub(crate) user: &'a User,
    /// The kind of the review and its namespace, which most have not.
    pub(crate) target: &'a Target,
}

impl Asked<'_> {
    /// The answer to a review. Admission sees the question, as anything that is made.
    pub(crate) fn answer(
        &self,
        mut question: Value,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let kind = &*self.target.kind;
        place(self.target, &mut question)?;
        let writer = self.registry.writer_at(&options.inquiry);
        crate::default::fill_blanks(kind.schema.root(), &mut question);
        rules::track(&writer, kind, None, &mut question, &options.manager, Area::Main)?;
        let name = metadata::name(&question).to_owned();
        let mut review = Review {
            namespace: &self.target.namespace,
            name: &name,
            object: question,
            ..Review::new(&writer, kind, Operation::Create, Wish::Write(options))
        };
        admission::mutate(&mut review)?;
        self.check(&review.object)?;
        admission::validate(&review)?;
        let mut question = review.object;
        drop(writer);
        let created = seconds(self.registry.env.now());
        let whole = |metadata: Value, parts: Value| {
            let mut answer = Map::new();
            answer.insert("kind".into(), kind.kind.clone().into());
            answer.insert("apiVersion".into(), kind.api_version().into());
            answer.insert("metadata".into(), metadata);
            if let Value::Object(parts) = parts {
                answer.extend(parts);
            }
            Value::Object(answer)
        };
        match kind.kind.as_str() {
            "SelfSubjectReview" => {
                let status = json!({"userInfo": self.user.to_value()});
                return Ok(whole(json!({"creationTimestamp": created}), json!({"status": status})));
            }
            "SelfSubjectRulesReview" => {
                let status = self.rules(&question);
                return Ok(whole(json!({}), json!({"spec": {}, "status": status})));
            }
            _ => {}
        }
        let status = match kind.kind.as_str() {
            "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
                self.access(kind, &question)
            }
            "TokenReview" => self.token(&question),
            _ => return Err(Status::method_not_allowed()),
        };
        metadata::set_top(&mut question, "status", Some(status));
        Ok(question)
    }

    /// Refuses what is no question.
    fn check(&self, question: &Value) -> Result<(), Status> {
        let text = |pointer: &str| question.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        match self.target.kind.kind.as_str() {
            "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
                access_rules::check(self.target, question)
            }
            "SelfSubjectRulesReview" if text("/spec/namespace").is_empty() => {
                Err(Status::bad_request("no namespace on request"))
            }
            "TokenReview" if text("/spec/token").is_empty() => {
                let words = "token is required for TokenReview in authentication";
                Err(Status::bad_request(words))
            }
            _ => Ok(()),
        }
    }

    /// Whether somebody may do something.
    fn access(&self, kind: &Kind, question: &Value) -> Value {
        let spec = &question["spec"];
        let text = |path: &str| spec.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        let other = (kind.kind != "SelfSubjectAccessReview").then(|| User {
            name: text("/user"),
            uid: text("/uid"),
            groups: texts(spec.get("groups")),
            extra: serde_json::from_value(spec["extra"].clone()).unwrap_or_default(),
        });
        let wanted = if spec["resourceAttributes"].is_object() {
            let text = |field: &str| text(&format!("/resourceAttributes/{field}"));
            Attributes {
                verb: text("verb"),
                group: text("group"),
                resource: text("resource"),
                subresource: text("subresource"),
                namespace: text("namespace"),
                name: text("name"),
                path: String::new(),
            }
        } else {
            Attributes {
                verb: text("/nonResourceAttributes/verb"),
                path: text("/nonResourceAttributes/path"),
                ..Attributes::default()
            }
        };
        let decision = self.registry.rbac.authorize(other.as_ref().unwrap_or(self.user), &wanted);
        let mut status = json!({"allowed": decision.allowed});
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        status
    }

    /// All that whoever asks may do in a namespace.
    fn rules(&self, question: &Value) -> Value {
        let namespace = question.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or("");
        let (rules, problems) = self.registry.rbac.rules_for(self.user, namespace);
        let (mut resources, mut paths) = (Vec::new(), Vec::new());
        for rule in rules {
            if !rule.non_resource_urls.is_empty() {
                let urls = &rule.non_resource_urls;
                paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": urls}));
            }
            if !rule.resources.is_empty() {
                let mut shown = json!({
                    "verbs": rule.verbs,
                    "apiGroups": rule.api_groups,
                    "resources": rule.resources,
                });
                if !rule.resource_names.is_empty() {
                    shown["resourceNames"] = rule.resource_names.into();
                }
                resources.push(shown);
            }
        }
        let mut status =
            json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
        if !problems.is_empty() {
            status["evaluationError"] = problems.into();
        }
        status
    }

    /// Whom a token proves.
    fn token(&self, question: &Value) -> Value {
        let token = question.pointer("/spec/token").and_then(Value::as_str).unwrap_or("");
        let mut audiences = texts(question.pointer("/spec/audiences"));
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        let proven = |user: &User, audiences: &[String]| json!({"authenticated": true, "user": user.to_value(), "audiences": audiences});
        let is_ours = audiences.iter().any(|audience| audience == ISSUER);
        if is_ours && self.identity.is_some_and(|identity| identity.is_admin(token)) {
            return proven(&User::admin(), &[ISSUER.to_owned()]);
        }
        let refused = match self.registry.tokens.user(self.registry, token, &audiences) {
            Ok((user, audiences)) => return proven(&user, &audiences),
            Err(Refused::Foreign) => "invalid bearer token".to_owned(),
            Err(Refused::Invalid(why)) => format!("[invalid bearer token, {why}]"),
        };
        json!({"user": {}, "error": refused})
    }
}

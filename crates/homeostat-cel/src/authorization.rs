//! `authorizer`: expressions put a question together, step by step, and ask it.
//!
//! Values hold only what is asked. Who answers is whoever runs the expression:
//! [`Scope::decide`](super::Scope::decide).

use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::objects::Opaque;

use super::operators::NO_OVERLOAD;
use super::program::Scope;
use super::{functions, values};

/// Whether somebody may do something to a resource, or at a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Namespace and name of the service account it is about; otherwise whoever makes the request.
    pub account: Option<(String, String)>,
    /// What is to be done.
    pub verb: String,
    /// Empty when it is about a resource.
    pub path: String,
    /// The group of the resource.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// A part of it; empty for the whole.
    pub subresource: String,
    /// Empty for the cluster.
    pub namespace: String,
    /// Empty for all objects.
    pub name: String,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why; often empty.
    pub reason: String,
    /// What kept an answer from being found.
    pub error: Option<String>,
}

/// How far a question has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
}

#[derive(Debug, PartialEq, Eq)]
struct Asking {
    stage: Stage,
    question: Question,
}

impl Opaque for Asking {
    fn runtime_type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
        }
    }
}

impl Opaque for Decision {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }
}

fn asking(stage: Stage, question: Question) -> Value {
    Value::Opaque(Arc::new(Asking { stage, question }))
}

/// The value of `authorizer`.
#[must_use]
pub fn authorizer() -> Value {
    asking(Stage::Authorizer, Question::default())
}

/// The value of `authorizer.requestResource`: a question that lacks only its verb.
#[must_use]
pub fn about_resource(question: Question) -> Value {
    asking(Stage::Resource, question)
}

/// The result of a call on a value of this library, which nothing is equal to; `None` for all
/// others.
pub(super) fn call(
    name: &str,
    given: &[Value],
    scope: &dyn Scope,
) -> Option<Result<Value, String>> {
    let Some((Value::Opaque(first), rest)) = given.split_first() else { return None };
    if let Some(decision) = first.downcast_ref::<Decision>() {
        return Some(decision.part(name));
    }
    let asked = first.downcast_ref::<Asking>()?;
    let texts = rest.iter().map(|value| match value {
        Value::String(text) => Ok(text.as_str()),
        _ => Err(NO_OVERLOAD.to_owned()),
    });
    let texts: Result<Vec<&str>, String> = texts.collect();
    Some(texts.and_then(|texts| asked.next(name, &texts, scope)))
}

impl Decision {
    fn part(&self, name: &str) -> Result<Value, String> {
        Ok(match name {
            "allowed" => Value::Bool(self.allowed),
            "reason" => values::string(&self.reason),
            "errored" => Value::Bool(self.error.is_some()),
            "error" => values::string(self.error.as_deref().unwrap_or_default()),
            _ => return Err(NO_OVERLOAD.to_owned()),
        })
    }
}

impl Asking {
    fn next(&self, name: &str, given: &[&str], scope: &dyn Scope) -> Result<Value, String> {
        let mut question = self.question.clone();
        let is_blank = given.first().is_none_or(|text| text.trim().is_empty());
        let stage = match (self.stage, name, given) {
            (Stage::Authorizer, "serviceAccount", [namespace, name]) => {
                if !fits("dns1123Subdomain", name) {
                    return Err("Invalid service account name".to_owned());
                }
                if !fits("dns1123Label", namespace) {
                    return Err("Invalid service account namespace".to_owned());
                }
                question.account = Some(((*namespace).to_owned(), (*name).to_owned()));
                Stage::Authorizer
            }
            (Stage::Authorizer, "path", [_]) | (Stage::Group, "resource", [_]) if is_blank => {
                return Err(format!("{name} must not be empty"));
            }
            (Stage::Authorizer, "path", [path]) => {
                question.path = (*path).to_owned();
                Stage::Path
            }
            (Stage::Authorizer, "group", [group]) => {
                question.group = (*group).to_owned();
                Stage::Group
            }
            (Stage::Group, "resource", [resource]) => {
                question.resource = (*resource).to_owned();
                Stage::Resource
            }
            (Stage::Resource, "subresource", [part]) => {
                question.subresource = (*part).to_owned();
                Stage::Resource
            }
            (Stage::Resource, "namespace", [namespace]) => {
                question.namespace = (*namespace).to_owned();
                Stage::Resource
            }
            (Stage::Resource, "name", [name]) => {
                question.name = (*name).to_owned();
                Stage::Resource
            }
            // Roles know no selectors: what allows all of them allows these.
            (Stage::Resource, "fieldSelector" | "labelSelector", [_]) => Stage::Resource,
            (Stage::Resource | Stage::Path, "check", [verb]) => {
                question.verb = (*verb).to_owned();
                return Ok(Value::Opaque(Arc::new(scope.decide(&question))));
            }
            _ => return Err(NO_OVERLOAD.to_owned()),
        };
        Ok(asking(stage, question))
    }
}

/// Whether a text is of a format that expressions know by name.
fn fits(format: &str, text: &str) -> bool {
    let format = functions::call("format.named", false, vec![values::string(format)]);
    let format = format.ok().and_then(|found| values::optional(&found).flatten().cloned());
    let Some(format) = format else { return false };
    let problems = functions::call("validate", true, vec![format, values::string(text)]);
    problems.is_ok_and(|found| values::optional(&found) == Some(None) || found == Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, admission};

    struct Clerk;

    impl Scope for Clerk {
        fn variable(&self, name: &str) -> Option<Value> {
            match name {
                "authorizer" => Some(authorizer()),
                "authorizer.requestResource" => Some(about_resource(Question {
                    resource: "pods".to_owned(),
                    name: "p".to_owned(),
                    ..Question::default()
                })),
                _ => None,
            }
        }

        fn decide(&self, question: &Question) -> Decision {
            let shown = format!("{question:?}");
            Decision { allowed: question.verb == "get", reason: shown, error: None }
        }
    }

    fn run(text: &str) -> (Result<Value, String>, u64) {
        let program = Program::compile(text, &admission::variables(false, true)).unwrap();
        let run = program.run(&Clerk);
        (run.result.map_err(|fault| fault.to_string()), run.cost)
    }

    #[test]
    fn a_question_is_put_together_and_answered() {
        let check = "authorizer.group('apps').resource('deployments').subresource('scale')\
                     .namespace('a').name('b').check('get')";
        assert_eq!(run(&format!("{check}.allowed()")), (Ok(Value::Bool(true)), 350_007));
        let (Ok(Value::String(reason)), _) = run(&format!("{check}.reason()")) else { panic!() };
        let asked = Question {
            account: None,
            verb: "get".into(),
            path: String::new(),
            group: "apps".into(),
            resource: "deployments".into(),
            subresource: "scale".into(),
            namespace: "a".into(),
            name: "b".into(),
        };
        assert_eq!(*reason, format!("{asked:?}"));
        let own = "authorizer.requestResource.check('patch').allowed()";
        assert_eq!(run(own), (Ok(Value::Bool(false)), 350_002));
        assert_eq!(run("authorizer.path('/healthz').check('get').errored()").0, Ok(false.into()));
    }

    #[test]
    fn nobody_asks_about_what_has_no_name() {
        let asked = |text: &str| run(&format!("authorizer.{text}.check('get').allowed()")).0;
        assert_eq!(asked("path(' ')"), Err("path must not be empty".to_owned()));
        assert_eq!(asked("group('').resource('')"), Err("resource must not be empty".to_owned()));
        let account = |namespace: &str, name: &str| {
            asked(&format!("serviceAccount('{namespace}', '{name}').path('/a')"))
        };
        assert_eq!(account("a", "b.c"), Ok(Value::Bool(true)));
        assert_eq!(account("a", "B"), Err("Invalid service account name".to_owned()));
        assert_eq!(account("a.b", "b"), Err("Invalid service account namespace".to_owned()));
        assert_eq!(run("authorizer == authorizer").0, Err("no such overload".to_owned()));
    }

    #[test]
    fn two_checks_fit_into_an_expression_and_a_third_does_not() {
        let check = "authorizer.path('/a').check('get').allowed()";
        assert!(run(&format!("{check} && {check}")).0.is_ok());
        let third = run(&format!("{check} && {check} && {check}")).0;
        assert_eq!(third, Err("operation cancelled: actual cost limit exceeded".to_owned()));
    }
}

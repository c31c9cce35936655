//! What a service account's token says, and whether that is still true.
//!
//! A token is bound to its account, and perhaps to a Pod, a Secret or a Node: it ends when any of
//! them is gone, not only when its time is over.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::user::{AUTHENTICATED, User, service_account_groups, service_account_name};
use crate::registry::{Registry, metadata};

/// Clocks may disagree by this many seconds.
const LEEWAY: i64 = 60;

/// The body of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) bound: Bound,
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

/// The objects a token is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    pub(crate) serviceaccount: Reference,
    /// When the client should have asked for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// One version of the object of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

impl Reference {
    pub(crate) fn to(object: &Value) -> Self {
        Self { name: metadata::name(object).to_owned(), uid: metadata::uid(object).to_owned() }
    }
}

impl Claims {
    /// The user behind the token, if everything it says still holds; else why not.
    pub(crate) fn user(&self, registry: &Registry) -> Result<User, String> {
        let now = registry.env.now();
        self.in_time(now)?;
        let namespace = &self.bound.namespace;
        let account = &self.bound.serviceaccount;
        let Some(live) = registry.peek("serviceaccounts", namespace, &account.name) else {
            return Err(format!("serviceaccounts {:?} not found", account.name));
        };
        let uid = metadata::uid(&live);
        if uid != account.uid {
            let claimed = &account.uid;
            return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
        }
        if was_deleted(&live, now) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name));
        }
        let node = self.bound.node.as_ref().filter(|_| self.bound.pod.is_none());
        for (what, resource, namespace, bound) in [
            ("secret", "secrets", namespace.as_str(), self.bound.secret.as_ref()),
            ("pod", "pods", namespace.as_str(), self.bound.pod.as_ref()),
            ("node", "nodes", "", node),
        ] {
            let Some(bound) = bound else { continue };
            let live = registry.peek(resource, namespace, &bound.name);
            let Some(live) = live.filter(|live| !was_deleted(live, now)) else {
                return Err("service account token has been invalidated".to_owned());
            };
            let uid = metadata::uid(&live);
            if uid != bound.uid {
                return Err(format!(
                    "{what} UID ({uid}) does not match service account {what} ref claim ({})",
                    bound.uid
                ));
            }
        }
        let mut user = User::new(
            service_account_name(namespace, &account.name),
            service_account_groups(namespace),
        );
        user.join(AUTHENTICATED);
        user.uid.clone_from(&account.uid);
        user.extra = self.extra();
        Ok(user)
    }

    fn in_time(&self, now: Timestamp) -> Result<(), String> {
        let now = now.as_second();
        if now - LEEWAY > self.exp {
            return Err("service account token has expired".to_owned());
        }
        if now + LEEWAY < self.nbf {
            return Err("service account token is not valid yet".to_owned());
        }
        Ok(())
    }

    fn extra(&self) -> BTreeMap<String, Vec<String>> {
        let mut extra = BTreeMap::new();
        let mut say = |key: &str, value: &str| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}");
                extra.insert(key, vec![value.to_owned()]);
            }
        };
        say("credential-id", &format!("JTI={}", self.jti));
        if let Some(pod) = &self.bound.pod {
            say("pod-name", &pod.name);
            say("pod-uid", &pod.uid);
        }
        if let Some(node) = &self.bound.node {
            say("node-name", &node.name);
            say("node-uid", &node.uid);
        }
        extra
    }
}

/// Whether the object has been on its way out for longer than clocks disagree.
fn was_deleted(object: &Value, now: Timestamp) -> bool {
    let at: Option<Timestamp> = metadata::text(object, "deletionTimestamp").parse().ok();
    at.is_some_and(|at| at.as_second() < now.as_second() - LEEWAY)
}

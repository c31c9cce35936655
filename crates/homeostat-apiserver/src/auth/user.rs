//! Who somebody is, once that was proven: a name, groups, and what the proof said besides.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of everybody who proved who they are.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody else.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of everybody else.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
/// What the user names of service accounts begin with.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Whoever makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name that rules and logs know.
    pub name: String,
    /// Tells users of the same name apart; may be empty.
    pub uid: String,
    /// The groups, in the order in which the proof named them.
    pub groups: Vec<String>,
    /// What else the proof said.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of these groups, without more.
    pub fn new<G: Into<String>>(
        name: impl Into<String>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { name: name.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// The administrator: callers in this process and whoever shows the token of the kubeconfig.
    #[must_use]
    pub fn admin() -> Arc<Self> {
        static ADMIN: LazyLock<Arc<User>> =
            LazyLock::new(|| Arc::new(User::new("kubernetes-admin", [MASTERS, AUTHENTICATED])));
        ADMIN.clone()
    }

    /// Whoever shows nothing at all.
    #[must_use]
    pub fn anonymous() -> Arc<Self> {
        static ANONYMOUS_USER: LazyLock<Arc<User>> =
            LazyLock::new(|| Arc::new(User::new(ANONYMOUS, [UNAUTHENTICATED])));
        ANONYMOUS_USER.clone()
    }

    /// Whether rules do not apply to this user.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Adds the group unless the user is in it.
    pub(crate) fn join(&mut self, group: &str) {
        if !self.groups.iter().any(|known| known == group) {
            self.groups.push(group.to_owned());
        }
    }

    /// `UserInfo`, as reviews show it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut info = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(field.to_owned(), text.clone().into());
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), self.groups.clone().into());
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// The user name of a service account.
pub(crate) fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// The groups every service account of the namespace is in.
pub(crate) fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name of the service account behind a user name.
pub(crate) fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_service_account_can_be_taken_apart() {
        let name = service_account_name("a", "b");
        assert_eq!(split_service_account(&name), Some(("a", "b")));
        assert_eq!(split_service_account("system:serviceaccount:a"), None);
        assert_eq!(split_service_account("system:serviceaccount:a:b:c"), None);
        assert_eq!(split_service_account("bob"), None);
    }
}

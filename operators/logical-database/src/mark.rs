//! Whose a database or a role in the server is: the comments on them that say so. Pure.
//!
//! What an object makes bears its uid. What it leaves behind (policy `Retain`) bears its namespace
//! and name instead: a later object of that namespace and name, with the same `databaseName` and
//! `owner`, takes it back. Everything else is a stranger's.

use kube::ResourceExt;

use crate::LogicalDatabase;
use crate::server::Found;

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This object made it, or took it back.
    Ours,
    /// An earlier object of our name left it to us.
    Retained,
    /// Hands off.
    Strangers,
}

/// The marks of one object.
#[derive(Debug)]
pub(crate) struct Marks {
    /// On what it made.
    pub(crate) made: String,
    /// On what it leaves behind.
    pub(crate) retained: String,
    role: String,
}

impl Marks {
    pub(crate) fn of(object: &LogicalDatabase) -> Self {
        let namespace = object.namespace().unwrap_or_default();
        Self {
            made: format!("homeostat.dev/uid={}", object.uid().unwrap_or_default()),
            retained: format!("homeostat.dev/retained={namespace}/{}", object.name_any()),
            role: object.spec.owner.clone(),
        }
    }

    /// Whose a role is.
    pub(crate) fn role(&self, found: &Found) -> Whose {
        match found.comment.as_deref() {
            Some(comment) if comment == self.made => Whose::Ours,
            Some(comment) if comment == self.retained => Whose::Retained,
            _ => Whose::Strangers,
        }
    }

    /// The same for a database, once its role is known to be no stranger's. A database cannot be
    /// made and marked in one transaction: one that has no mark yet and belongs to our role is half
    /// made.
    pub(crate) fn database(&self, found: &Found) -> Whose {
        let is_half_made = found.comment.is_none() && found.owner.as_ref() == Some(&self.role);
        if is_half_made { Whose::Ours } else { self.role(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeletionPolicy, LogicalDatabaseSpec};

    fn whose(owner: &str, comment: Option<&str>) -> Whose {
        let spec = LogicalDatabaseSpec {
            server_secret: "server".to_owned(),
            database_name: "orders".to_owned(),
            owner: "clerk".to_owned(),
            deletion_policy: DeletionPolicy::Delete,
        };
        let mut object = LogicalDatabase::new("orders", spec);
        object.metadata.uid = Some("1".to_owned());
        object.metadata.namespace = Some("shop".to_owned());
        let found = Found { owner: Some(owner.to_owned()), comment: comment.map(str::to_owned) };
        Marks::of(&object).database(&found)
    }

    #[test]
    fn a_database_is_ours_by_its_mark_or_half_made() {
        let changed_owner = whose("anybody", Some("homeostat.dev/uid=1"));
        assert_eq!(changed_owner, Whose::Ours, "somebody changed its owner");
        assert_eq!(whose("clerk", None), Whose::Ours, "we stopped between making and marking it");
        assert_eq!(whose("postgres", None), Whose::Strangers, "somebody made it by hand");
        let another = whose("clerk", Some("homeostat.dev/uid=2"));
        assert_eq!(another, Whose::Strangers, "another object made it");
    }

    #[test]
    fn what_was_left_behind_is_for_an_object_of_the_same_name_only() {
        assert_eq!(whose("clerk", Some("homeostat.dev/retained=shop/orders")), Whose::Retained);
        assert_eq!(whose("clerk", Some("homeostat.dev/retained=shop/other")), Whose::Strangers);
        assert_eq!(whose("clerk", Some("homeostat.dev/retained=other/orders")), Whose::Strangers);
    }
}

//! Whose child an object is: the owner reference a child gets, and whether it is ours already.
//!
//! Decided by uid. An object that names our name and another uid belongs to somebody who had our
//! name before.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::Kind;

/// The object in the way is followed, so nothing else has to be done.
const REMEDY: &str = "rename or remove it, and this object goes on by itself";

/// Makes `child` live where the owner may have it and names the owner as its controller.
pub(super) fn adopt(
    (owner_kind, owner_meta): (&Kind, &ObjectMeta),
    kind: &Kind,
    child: &mut ObjectMeta,
) -> Result<()> {
    let described = || format!("{kind} {}", child.name.as_deref().unwrap_or("without a name"));
    if kind.is_namespaced() {
        if child.namespace.is_none() {
            child.namespace.clone_from(&owner_meta.namespace);
        }
        let Some(namespace) = &child.namespace else {
            let what = described();
            return Err(Error::InvalidOwner(format!(
                "{what} needs a namespace: its owner has none"
            )));
        };
        if owner_meta.namespace.as_ref().is_some_and(|home| home != namespace) {
            return Err(Error::InvalidOwner(format!(
                "{} in namespace {namespace} cannot be owned by {owner_kind} {}: an owner must be \
                 in the same namespace",
                described(),
                key(owner_meta)
            )));
        }
    } else if owner_kind.is_namespaced() {
        return Err(Error::InvalidOwner(format!(
            "{} is cluster-scoped and cannot be owned by {owner_kind} {}, which has a namespace",
            described(),
            key(owner_meta)
        )));
    } else {
        // It has none, whatever it says: the API drops it, and so nobody would find it there.
        child.namespace = None;
    }
    let uid = owner_meta.uid.clone().unwrap_or_default();
    let references = child.owner_references.get_or_insert_default();
    if let Some(other) = references.iter().find(|r| r.controller == Some(true) && r.uid != uid) {
        let other = format!("{} {}", other.kind, other.name);
        return Err(Error::InvalidOwner(format!(
            "{kind} {} names {other} as its controller already",
            child.name.as_deref().unwrap_or_default()
        )));
    }
    references.retain(|reference| reference.uid != uid);
    references.push(OwnerReference {
        api_version: owner_kind.api_version(),
        kind: owner_kind.kind().to_owned(),
        name: owner_meta.name.clone().unwrap_or_default(),
        uid,
        controller: Some(true),
        block_owner_deletion: Some(true),
    });
    Ok(())
}

/// Checks that the child `found` is controlled by `owner`.
///
/// `orphan_is_ours` says whether a child without a controller may be taken over.
pub(super) fn check(
    (owner_kind, meta): (&Kind, &ObjectMeta),
    kind: &Kind,
    found: &ObjectMeta,
    orphan_is_ours: bool,
) -> Result<()> {
    let object = || {
        let name = found.name.as_deref().unwrap_or_default();
        match &found.namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    };
    let references = found.owner_references.iter().flatten();
    let Some(controller) = references.into_iter().find(|r| r.controller == Some(true)) else {
        if orphan_is_ours {
            return Ok(());
        }
        return Err(Error::NotOurs {
            object: object(),
            owner: "not owned by anyone".to_owned(),
            remedy: REMEDY,
        });
    };
    if Some(&controller.uid) == meta.uid.as_ref() {
        return Ok(());
    }
    let (kind, name, uid) = (&controller.kind, &controller.name, &controller.uid);
    let group = controller.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_our_kind = *kind == owner_kind.kind() && group == owner_kind.group();
    if is_our_kind && Some(name) == meta.name.as_ref() {
        // The garbage collector is about to remove it: worth waiting for.
        let object = object();
        return Err(Error::transient(format!(
            "{object} still belongs to an earlier {kind} {name} (uid {uid})"
        )));
    }
    Err(Error::NotOurs {
        object: object(),
        owner: format!("controlled by {kind} {name} (uid {uid})"),
        remedy: REMEDY,
    })
}

fn key(meta: &ObjectMeta) -> Key {
    Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    use super::*;

    fn owner() -> ObjectMeta {
        let some = |text: &str| Some(text.to_owned());
        ObjectMeta { name: some("web"), namespace: some("home"), uid: some("1"), ..<_>::default() }
    }

    fn adopt(owner: &ObjectMeta, kind: &Kind, child: &mut ObjectMeta) -> Result<()> {
        super::adopt((&Kind::of::<ConfigMap>(), owner), kind, child)
    }

    fn check(owner: &ObjectMeta, kind: &Kind, found: &ObjectMeta, orphan: bool) -> Result<()> {
        super::check((&Kind::of::<ConfigMap>(), owner), kind, found, orphan)
    }

    #[test]
    fn a_child_gets_its_owners_namespace_and_one_controller_reference() {
        let (kind, mut child) = (Kind::of::<ConfigMap>(), ObjectMeta::default());
        adopt(&owner(), &kind, &mut child).unwrap();
        adopt(&owner(), &kind, &mut child).unwrap();
        assert_eq!(child.namespace.as_deref(), Some("home"));
        let references = child.owner_references.clone().unwrap();
        assert_eq!((references.len(), references[0].controller), (1, Some(true)));
        check(&owner(), &kind, &child, false).unwrap();
    }

    #[test]
    fn owners_across_namespaces_or_scopes_are_refused() {
        let mut elsewhere = ObjectMeta { namespace: Some("away".into()), ..Default::default() };
        let error = adopt(&owner(), &Kind::of::<ConfigMap>(), &mut elsewhere).unwrap_err();
        assert!(error.is_terminal() && error.to_string().contains("same namespace"), "{error}");
        let error = adopt(&owner(), &Kind::of::<Namespace>(), &mut ObjectMeta::default());
        assert!(error.unwrap_err().to_string().contains("cluster-scoped"));
    }

    #[test]
    fn a_stranger_is_named_and_an_earlier_self_is_waited_for() {
        let (kind, mut child) = (Kind::of::<ConfigMap>(), ObjectMeta::default());
        adopt(&owner(), &kind, &mut child).unwrap();
        let mut later = owner();
        later.uid = Some("2".into());
        assert!(!check(&later, &kind, &child, true).unwrap_err().is_terminal());
        // Another group may use our kind's word and know somebody of our name.
        let mut theirs = child.clone();
        theirs.owner_references.as_mut().unwrap()[0].api_version = "example.com/v1".to_owned();
        assert!(check(&later, &kind, &theirs, true).unwrap_err().is_terminal());
        later.name = Some("other".into());
        let error = check(&later, &kind, &child, true).unwrap_err();
        assert!(error.is_terminal() && error.to_string().contains("ConfigMap web"), "{error}");
        assert!(check(&later, &kind, &ObjectMeta::default(), false).is_err());
        assert!(check(&later, &kind, &ObjectMeta::default(), true).is_ok());
    }
}

//! What the volumes of a Database were made with. A data directory is of one major version and a
//! volume of one size for as long as they live: a spec that asks for something else is refused, and
//! the servers go on as they are. Pure: a spec and what is there in, a spec to carry out out.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::k8s_openapi::api::apps::v1::StatefulSet;
use homeostat::k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::DatabaseSpec;

/// The annotations of the claim template, which cannot change, that remember it.
const MAJOR: &str = "homeostat.dev/postgresql-major";
const STORAGE: &str = "homeostat.dev/storage";

/// An edit that the data does not allow.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "version {wanted} cannot read the data directory, which PostgreSQL {made} made; set version back to {made}, \
         or make another Database with version {wanted} and move the data there with pg_dump and psql"
    )]
    Version { made: String, wanted: String },
    #[error(
        "storage {wanted} does not fit the volumes, which were made with {made} and neither shrink nor grow; \
         set storage back to {made}, or make another Database with storage {wanted} and move the data there with pg_dump and psql"
    )]
    Storage { made: String, wanted: String },
}

/// The major part of a version: `15` of `15.4`.
fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// What to remember of the volumes that this spec makes.
pub(crate) fn annotations(spec: &DatabaseSpec) -> BTreeMap<String, String> {
    [(MAJOR, major(&spec.version)), (STORAGE, &spec.storage)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// What is remembered, and the image that runs.
#[derive(Debug, Default)]
pub(crate) struct Made {
    major: Option<String>,
    storage: Option<String>,
    image: Option<String>,
}

impl Made {
    /// Reads the StatefulSet, or a claim where somebody deleted the StatefulSet.
    pub(crate) fn read(set: Option<&StatefulSet>, claims: &[Arc<PersistentVolumeClaim>]) -> Self {
        let set = set.and_then(|set| set.spec.as_ref());
        let template = set.and_then(|set| set.volume_claim_templates.as_ref()?.first());
        let claim = template.or(claims.first().map(AsRef::as_ref));
        let remembered = |key| claim?.metadata.annotations.as_ref()?.get(key).cloned();
        let pod = set.and_then(|set| set.template.spec.as_ref());
        Self {
            major: remembered(MAJOR),
            storage: remembered(STORAGE),
            image: pod.and_then(|pod| pod.containers.first()?.image.clone()),
        }
    }

    /// The spec to carry out: the one given, except for what the volumes do not allow.
    pub(crate) fn settle(self, mut spec: DatabaseSpec) -> (DatabaseSpec, Option<Refused>) {
        let mut refused = None;
        if let Some(made) = self.storage.filter(|made| *made != spec.storage) {
            let wanted = std::mem::replace(&mut spec.storage, made.clone());
            refused = Some(Refused::Storage { made, wanted });
        }
        if let Some(made) = self.major.filter(|made| made != major(&spec.version)) {
            // The minor version that runs, unless somebody put another major there by hand.
            let running = self.image.as_deref().and_then(|image| image.rsplit_once(':'));
            let kept = running.map(|(_, tag)| tag).filter(|running| major(running) == made);
            let kept = kept.unwrap_or(&made).to_owned();
            let wanted = std::mem::replace(&mut spec.version, kept);
            refused = Some(Refused::Version { made, wanted });
        }
        (spec, refused)
    }
}

#[cfg(test)]
mod tests {
    use homeostat::k8s_openapi::api::core::v1::PodSpec;

    use super::*;
    use crate::{Database, children};

    fn spec(version: &str, storage: &str) -> DatabaseSpec {
        DatabaseSpec {
            version: version.to_owned(),
            storage: storage.to_owned(),
            replicas: 1,
            database_name: "app".to_owned(),
        }
    }

    fn made(version: &str, storage: &str) -> StatefulSet {
        children::stateful_set(&Database::new("x", spec(version, storage)), "secret")
    }

    fn settle(wanted: DatabaseSpec, set: &StatefulSet) -> (DatabaseSpec, Option<Refused>) {
        Made::read(Some(set), &[]).settle(wanted)
    }

    #[test]
    fn another_minor_version_is_carried_out() {
        let wanted = spec("15.6", "1Gi");
        assert_eq!(settle(wanted.clone(), &made("15.4", "1Gi")), (wanted.clone(), None));
        assert_eq!(Made::default().settle(wanted.clone()), (wanted, None), "nothing is there yet");
    }

    #[test]
    fn another_major_version_is_refused_and_the_running_one_kept() {
        let (settled, refused) = settle(spec("16", "1Gi"), &made("15.4", "1Gi"));
        assert_eq!(settled, spec("15.4", "1Gi"));
        let words = refused.unwrap().to_string();
        assert!(words.contains("set version back to 15") && words.contains("pg_dump"), "{words}");
    }

    #[test]
    fn a_major_version_put_there_by_hand_is_put_right() {
        let mut present = made("15", "1Gi");
        let pod: &mut PodSpec = present.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pod.containers[0].image = Some("postgres:16".to_owned());
        assert_eq!(settle(spec("15", "1Gi"), &present), (spec("15", "1Gi"), None));
        assert_eq!(settle(spec("16", "1Gi"), &present).0, spec("15", "1Gi"));
    }

    #[test]
    fn the_claims_remember_when_the_stateful_set_is_gone() {
        let set = made("15", "1Gi");
        let claim = set.spec.unwrap().volume_claim_templates.unwrap().remove(0);
        let (settled, refused) = Made::read(None, &[Arc::new(claim)]).settle(spec("16", "1Gi"));
        assert_eq!(settled, spec("15", "1Gi"));
        assert!(matches!(refused, Some(Refused::Version { .. })));
    }

    #[test]
    fn another_size_is_refused_and_the_rest_carried_out() {
        let (settled, refused) = settle(spec("15.6", "500Mi"), &made("15", "1Gi"));
        assert_eq!(settled, spec("15.6", "1Gi"));
        assert!(refused.unwrap().to_string().contains("set storage back to 1Gi"));
    }
}

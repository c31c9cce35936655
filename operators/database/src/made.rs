//! What the volumes of a Database were made with. A data directory is of one major version and a
//! volume of one size for as long as they live: a spec that asks for something else is refused, and
//! the servers go on as they are. Pure: a spec and what is there in, a spec to carry out out.
//!
//! The size is remembered from the first StatefulSet on. The major version is not before a server
//! of it has been ready: until then there may be no data directory, and a version that cannot be
//! had must be open to an edit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use homeostat::k8s_openapi::api::apps::v1::StatefulSet;
use homeostat::k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use homeostat_quota::Quantity;

use crate::DatabaseSpec;

/// The annotation of the claim template, which cannot change, and so of every claim.
const STORAGE: &str = "homeostat.dev/storage";

/// The annotation of the claims once a server has been ready.
const MAJOR: &str = "homeostat.dev/postgresql-major";

/// Everything in an edit that the data does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal(Vec<Refused>);

impl Refusal {
    /// One word for the condition.
    pub(crate) fn reason(&self) -> &'static str {
        match &*self.0 {
            [Refused::Version { .. }] => "MajorVersionChanged",
            [Refused::Storage { .. }] => "StorageChanged",
            _ => "MajorVersionAndStorageChanged",
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("; and "))
    }
}

/// One thing that the data does not allow.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
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

/// The version in an image: `15.4` of `postgres:15.4`.
fn version_of(image: &str) -> Option<&str> {
    image.rsplit_once(':').map(|(_, tag)| tag)
}

/// Whether two sizes are the same, however they are written.
fn is_same_size(one: &str, other: &str) -> bool {
    let read = |text: &str| text.parse::<Quantity>().map(Quantity::rounded_up);
    match (read(one), read(other)) {
        (Ok(one), Ok(other)) => one.cmp(&other).is_eq(),
        _ => one == other,
    }
}

/// What to remember of the volumes that this spec makes.
pub(crate) fn of_template(spec: &DatabaseSpec) -> BTreeMap<String, String> {
    [(STORAGE.to_owned(), spec.storage.clone())].into()
}

/// What is known of the volumes, and the image that runs.
#[derive(Debug, Default)]
pub(crate) struct Made {
    major: Option<String>,
    storage: Option<String>,
    image: Option<String>,
}

impl Made {
    /// Reads the StatefulSet, its claims (also where somebody deleted the StatefulSet) and its Pods.
    pub(crate) fn read(
        set: Option<&StatefulSet>,
        claims: &[Arc<PersistentVolumeClaim>],
        pods: &[Arc<Pod>],
    ) -> Self {
        let set = set.and_then(|set| set.spec.as_ref());
        let template = set.and_then(|set| set.volume_claim_templates.as_ref()?.first());
        let mut known = template.into_iter().chain(claims.iter().map(AsRef::as_ref));
        let storage = known.find_map(|claim| annotation(claim, STORAGE));
        let remembered = claims.iter().find_map(|claim| annotation(claim, MAJOR));
        let pod = set.and_then(|set| set.template.spec.as_ref());
        Self {
            major: remembered.or_else(|| pods.iter().find_map(|pod| ready_major(pod))),
            storage,
            image: pod.and_then(|pod| pod.containers.first()?.image.clone()),
        }
    }

    /// What the claims are to remember.
    pub(crate) fn of_claims(&self) -> Option<BTreeMap<String, String>> {
        let major = self.major.clone()?;
        Some([(MAJOR.to_owned(), major)].into())
    }

    /// The spec to carry out: the one given, except for what the volumes do not allow.
    pub(crate) fn settle(self, mut spec: DatabaseSpec) -> (DatabaseSpec, Option<Refusal>) {
        let mut refused = Vec::new();
        if let Some(made) = self.storage {
            let fits = is_same_size(&made, &spec.storage);
            // As the template has it, which cannot change, not even in the way it is written.
            let wanted = std::mem::replace(&mut spec.storage, made.clone());
            refused.extend((!fits).then_some(Refused::Storage { made, wanted }));
        }
        if let Some(made) = self.major.filter(|made| made != major(&spec.version)) {
            // The minor version that runs, unless somebody put another major there by hand.
            let running = self.image.as_deref().and_then(version_of);
            let kept = running.filter(|running| major(running) == made);
            let kept = kept.unwrap_or(&made).to_owned();
            let wanted = std::mem::replace(&mut spec.version, kept);
            refused.push(Refused::Version { made, wanted });
        }
        (spec, (!refused.is_empty()).then_some(Refusal(refused)))
    }
}

fn annotation(claim: &PersistentVolumeClaim, key: &str) -> Option<String> {
    claim.metadata.annotations.as_ref()?.get(key).cloned()
}

/// The major version of a server that is ready.
fn ready_major(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let mut ready = conditions.filter(|one| one.type_ == "Ready" && one.status == "True");
    ready.next()?;
    let image = pod.spec.as_ref()?.containers.first()?.image.as_deref()?;
    Some(major(version_of(image)?).to_owned())
}

#[cfg(test)]
mod tests {
    use homeostat::k8s_openapi::api::core::v1::PodSpec;
    use serde_json::json;

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

    fn pod(set: &StatefulSet, ready: &str) -> Arc<Pod> {
        let spec = &set.spec.as_ref().unwrap().template.spec;
        let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        Arc::new(serde_json::from_value(json!({ "spec": spec, "status": status })).unwrap())
    }

    /// The claim of a server that has been ready.
    fn claim(set: &StatefulSet) -> Arc<PersistentVolumeClaim> {
        let known = Made::read(Some(set), &[], &[pod(set, "True")]);
        let database = Database::new("x", spec("15", "1Gi"));
        Arc::new(children::owned_claim(&database, "data-x-0".to_owned(), &known))
    }

    /// What becomes of an edit once a server has been ready.
    fn settle(wanted: DatabaseSpec, set: &StatefulSet) -> (DatabaseSpec, Option<Refusal>) {
        Made::read(Some(set), &[claim(set)], &[]).settle(wanted)
    }

    fn reason(refused: Option<Refusal>) -> &'static str {
        refused.map_or("", |refused| refused.reason())
    }

    #[test]
    fn everything_that_the_data_does_not_allow_is_named() {
        let (settled, refused) = settle(spec("16", "2Gi"), &made("15", "1Gi"));
        assert_eq!(settled, spec("15", "1Gi"));
        let refused = refused.unwrap();
        let words = refused.to_string();
        assert!(words.contains("set version back to 15"), "{words}");
        assert!(words.contains("set storage back to 1Gi"), "{words}");
        assert_eq!(refused.reason(), "MajorVersionAndStorageChanged");
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
    fn another_major_version_is_carried_out_until_a_server_has_been_ready() {
        let (set, wanted) = (made("99", "1Gi"), spec("15", "1Gi"));
        let known = Made::read(Some(&set), &[], &[pod(&set, "False")]);
        assert_eq!(known.of_claims(), None, "there may be no data directory");
        assert_eq!(known.settle(wanted.clone()), (wanted.clone(), None));
        let refused = Made::read(Some(&set), &[], &[pod(&set, "True")]).settle(wanted).1;
        assert_eq!(reason(refused), "MajorVersionChanged", "a ready one has data");
    }

    #[test]
    fn a_major_version_put_there_by_hand_is_put_right() {
        let mut present = made("15", "1Gi");
        let known = claim(&present);
        let pod: &mut PodSpec = present.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pod.containers[0].image = Some("postgres:16".to_owned());
        let settle =
            |wanted| Made::read(Some(&present), std::slice::from_ref(&known), &[]).settle(wanted);
        assert_eq!(settle(spec("15", "1Gi")), (spec("15", "1Gi"), None));
        assert_eq!(settle(spec("16", "1Gi")).0, spec("15", "1Gi"));
    }

    #[test]
    fn the_claims_remember_when_the_stateful_set_is_gone() {
        let known = claim(&made("15", "1Gi"));
        let (settled, refused) = Made::read(None, &[known], &[]).settle(spec("16", "1Gi"));
        assert_eq!(settled, spec("15", "1Gi"));
        assert_eq!(reason(refused), "MajorVersionChanged");
    }

    #[test]
    fn another_size_is_refused_and_the_rest_carried_out() {
        let (settled, refused) = settle(spec("15.6", "500Mi"), &made("15", "1Gi"));
        assert_eq!(settled, spec("15.6", "1Gi"));
        assert!(refused.as_ref().unwrap().to_string().contains("set storage back to 1Gi"));
        assert_eq!(reason(refused), "StorageChanged");
    }

    #[test]
    fn the_same_size_in_other_words_is_no_other_size() {
        for same in ["1024Mi", "1073741824", "1.0Gi", "1048576Ki"] {
            let settled = settle(spec("15", same), &made("15", "1Gi"));
            assert_eq!(settled, (spec("15", "1Gi"), None), "{same}");
        }
        assert!(settle(spec("15", "1G"), &made("15", "1Gi")).1.is_some());
    }
}

//! What a Database is made of. Pure: a spec in, objects out.

use std::collections::BTreeMap;

use homeostat::k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
};
use homeostat::k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, ExecAction, Lifecycle, LifecycleHandler,
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PodSpec, PodTemplateSpec, Probe, Secret,
    SecretKeySelector, Service, ServicePort, ServiceSpec, VolumeMount, VolumeResourceRequirements,
};
use homeostat::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use homeostat::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use homeostat::labels;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use operator_credentials::Credentials;

use crate::made::{self, Made};
use crate::{Database, NAME, OPERATOR, PORT, credentials};

const VOLUME: &str = "data";
const MOUNT: &str = "/var/lib/postgresql/data";

/// The annotation of the Pods that changes with the password.
const CREDENTIALS_MARK: &str = "homeostat.dev/credentials";

/// The image sets the password only when it makes the data directory. A server that finds one there
/// is told the password of the Secret through its own socket, as soon as it is ready, so that the
/// `uri` works also after the Secret was lost or changed. Not before, since it writes everybody whom
/// it turns away into its log; the file of its pid says when. It gives up after a minute: a server
/// that lets nobody in that way keeps the password it has.
const TELL_PASSWORD: &str = r#"
command -v psql >/dev/null || exit 0
for try in $(seq 120); do
  grep -qs '^ready' "$PGDATA/postmaster.pid" &&
  psql -qX -v ON_ERROR_STOP=1 -h /var/run/postgresql -U "$POSTGRES_USER" -d postgres <<'END' 2>/dev/null && exit 0
\set role `printenv POSTGRES_USER`
\set password `printenv POSTGRES_PASSWORD`
ALTER ROLE :"role" PASSWORD :'password';
END
  sleep 0.5
done
"#;

pub(crate) fn secret_name(database: &Database) -> String {
    format!("{}-credentials", database.name_any())
}

/// The labels that select the Pods.
pub(crate) fn selector(database: &Database) -> BTreeMap<String, String> {
    labels::selector(NAME, &database.name_any())
}

fn all_labels(database: &Database) -> BTreeMap<String, String> {
    labels::recommended(NAME, &database.name_any(), OPERATOR)
}

fn metadata(database: &Database, name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), labels: Some(all_labels(database)), ..ObjectMeta::default() }
}

/// The address of the first server: replication is not set up, so the others hold other data.
pub(crate) fn service(database: &Database) -> Service {
    let first = format!("{}-0", database.name_any());
    let mut selector = selector(database);
    selector.insert("statefulset.kubernetes.io/pod-name".to_owned(), first);
    Service {
        metadata: metadata(database, database.name_any()),
        spec: Some(ServiceSpec {
            selector: Some(selector),
            ports: Some(vec![ServicePort {
                name: Some("postgresql".to_owned()),
                port: PORT.into(),
                target_port: Some(IntOrString::Int(PORT.into())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

pub(crate) fn secret(database: &Database, administrator: &Credentials) -> Secret {
    Secret {
        metadata: metadata(database, secret_name(database)),
        data: Some(administrator.data()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

/// `password` decides nothing but a mark: when it changes, the servers start again with the new one.
pub(crate) fn stateful_set(database: &Database, password: &str) -> StatefulSet {
    let mark = credentials::mark(&database.uid().unwrap_or_default(), password);
    StatefulSet {
        metadata: metadata(database, database.name_any()),
        spec: Some(StatefulSetSpec {
            replicas: Some(database.spec.replicas),
            service_name: Some(database.name_any()),
            selector: LabelSelector {
                match_labels: Some(selector(database)),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(all_labels(database)),
                    annotations: Some([(CREDENTIALS_MARK.to_owned(), mark)].into()),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec { containers: vec![container(database)], ..PodSpec::default() }),
            },
            volume_claim_templates: Some(vec![claim(database)]),
            // The data is the Database's: a StatefulSet that somebody deletes comes back to it.
            persistent_volume_claim_retention_policy: Some(
                StatefulSetPersistentVolumeClaimRetentionPolicy {
                    when_deleted: Some("Retain".to_owned()),
                    when_scaled: Some("Retain".to_owned()),
                },
            ),
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

/// Whether the servers of a StatefulSet that is there have another password than those of the wish.
pub(crate) fn password_differs(present: &StatefulSet, wish: &StatefulSet) -> bool {
    let mark = |set: &StatefulSet| {
        let template = set.spec.as_ref()?.template.metadata.as_ref()?;
        template.annotations.as_ref()?.get(CREDENTIALS_MARK).cloned()
    };
    mark(present).is_some_and(|before| Some(before) != mark(wish))
}

/// What the server says of itself: it has an address that others reach, which it has not while it is
/// being set up, and it takes logins, which it does not while it recovers.
const ACCEPTS_CLIENTS: &str = r#"
pid="$PGDATA/postmaster.pid"
test -n "$(sed -n 6p "$pid" 2>/dev/null)" && sed -n 8p "$pid" | grep -q '^ready' && exit
echo 'PostgreSQL does not take logins yet'
exit 1
"#;

fn container(database: &Database) -> Container {
    let from_secret = |name: &str, key: &str| EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret_name(database),
                key: key.to_owned(),
                ..SecretKeySelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    };
    // A folder below the mount: the volume's root may hold a lost+found that initdb refuses.
    let folder = EnvVar {
        name: "PGDATA".to_owned(),
        value: Some(format!("{MOUNT}/pgdata")),
        ..EnvVar::default()
    };
    Container {
        name: "postgresql".to_owned(),
        image: Some(format!("postgres:{}", database.spec.version)),
        env: Some(vec![
            from_secret("POSTGRES_USER", "username"),
            from_secret("POSTGRES_PASSWORD", "password"),
            from_secret("POSTGRES_DB", "database"),
            folder,
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("postgresql".to_owned()),
            container_port: PORT.into(),
            ..ContainerPort::default()
        }]),
        lifecycle: Some(Lifecycle {
            post_start: Some(LifecycleHandler {
                exec: Some(ExecAction {
                    command: Some(["sh", "-c", TELL_PASSWORD].map(str::to_owned).into()),
                }),
                ..LifecycleHandler::default()
            }),
            ..Lifecycle::default()
        }),
        readiness_probe: Some(Probe {
            exec: Some(ExecAction {
                command: Some(["sh", "-c", ACCEPTS_CLIENTS].map(str::to_owned).into()),
            }),
            period_seconds: Some(1),
            // A machine that has much to do may take a while to run it: that says nothing about the server.
            timeout_seconds: Some(10),
            ..Probe::default()
        }),
        volume_mounts: Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: MOUNT.to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// A claim that the StatefulSet made, as the Database's own: it goes with the Database, and
/// remembers what is known of the data.
pub(crate) fn owned_claim(database: &Database, name: String, made: &Made) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: ObjectMeta { annotations: made.of_claims(), ..metadata(database, name) },
        ..PersistentVolumeClaim::default()
    }
}

fn claim(database: &Database) -> PersistentVolumeClaim {
    let size = Quantity(database.spec.storage.clone());
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(VOLUME.to_owned()),
            annotations: Some(made::of_template(&database.spec)),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), size)].into()),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

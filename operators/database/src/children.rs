//! What a Database is made of. Pure: a spec in, objects out.

use std::collections::BTreeMap;

use homeostat::k8s_openapi::ByteString;
use homeostat::k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
};
use homeostat::k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, PersistentVolumeClaim,
    PersistentVolumeClaimSpec, PodSpec, PodTemplateSpec, Probe, Secret, SecretKeySelector, Service,
    ServicePort, ServiceSpec, TCPSocketAction, VolumeMount, VolumeResourceRequirements,
};
use homeostat::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use homeostat::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use crate::{Database, OPERATOR, PORT};

const VOLUME: &str = "data";
const MOUNT: &str = "/var/lib/postgresql/data";

pub(crate) fn secret_name(database: &Database) -> String {
    format!("{}-credentials", database.name_any())
}

/// The labels that select the Pods; a selector cannot change, so neither can these.
fn selector(database: &Database) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "database".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), database.name_any()),
    ])
}

fn labels(database: &Database) -> BTreeMap<String, String> {
    let mut labels = selector(database);
    labels.insert("app.kubernetes.io/managed-by".to_owned(), OPERATOR.to_owned());
    labels
}

fn metadata(database: &Database, name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), labels: Some(labels(database)), ..ObjectMeta::default() }
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
                port: PORT,
                target_port: Some(IntOrString::Int(PORT)),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

pub(crate) fn secret(database: &Database, data: BTreeMap<String, ByteString>) -> Secret {
    Secret {
        metadata: metadata(database, secret_name(database)),
        data: Some(data),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

pub(crate) fn stateful_set(database: &Database) -> StatefulSet {
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
                    labels: Some(labels(database)),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec { containers: vec![container(database)], ..PodSpec::default() }),
            },
            volume_claim_templates: Some(vec![claim(database)]),
            // A deleted Database takes its data with it; a smaller one keeps what it had.
            persistent_volume_claim_retention_policy: Some(
                StatefulSetPersistentVolumeClaimRetentionPolicy {
                    when_deleted: Some("Delete".to_owned()),
                    when_scaled: Some("Retain".to_owned()),
                },
            ),
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

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
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::Int(PORT),
                ..TCPSocketAction::default()
            }),
            period_seconds: Some(1),
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

fn claim(database: &Database) -> PersistentVolumeClaim {
    let size = Quantity(database.spec.storage.clone());
    PersistentVolumeClaim {
        metadata: ObjectMeta { name: Some(VOLUME.to_owned()), ..ObjectMeta::default() },
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

//! Volumes: binds claims to volumes, makes local volumes on demand, and cleans up after them.
//!
//! [`claim`] follows PersistentVolumeClaims, [`reclaim`] PersistentVolumes, [`attributes`] the
//! VolumeAttributesClasses that both may name. A local volume is a
//! directory under the data root; only directories this crate made are ever removed.

mod attributes;
mod claim;
mod matching;
mod reclaim;

use homeostat::kube::Client;
use homeostat::kube::api::ObjectMeta;
use homeostat::{Key, Kind, Result};
use k8s_openapi::api::storage::v1::StorageClass;

use crate::write;

pub(crate) use self::attributes::controller as attributes_controller;
pub(crate) use self::claim::controller as claim_controller;
pub(crate) use self::reclaim::controller as volume_controller;

/// The name of the default class.
const CLASS: &str = "local";
/// Who makes its volumes.
const PROVISIONER: &str = "homeostat.dev/local";
/// The annotation of a volume that was made on demand.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The annotation of the class for claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Makes the default StorageClass `local` unless there is one of that name.
pub(crate) async fn install_class(client: &Client) -> Result<()> {
    let key = Key::cluster(CLASS);
    if write::read(client, &Kind::of::<StorageClass>(), &key).await?.is_some() {
        return Ok(());
    }
    let class = StorageClass {
        metadata: ObjectMeta {
            name: Some(CLASS.into()),
            annotations: Some([(DEFAULT_CLASS.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.into(),
        reclaim_policy: Some("Delete".into()),
        volume_binding_mode: Some("Immediate".into()),
        ..StorageClass::default()
    };
    write::create(client, None, &class).await?;
    Ok(())
}

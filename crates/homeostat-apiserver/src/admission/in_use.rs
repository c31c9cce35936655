//! `StorageObjectInUseProtection`: what may be in use gets a finalizer, which a controller takes
//! away once it no longer is.

use super::{Operation, Review};
use crate::registry::metadata;
use crate::status::Status;

/// The finalizer by resource.
const PROTECTED: &[(&str, &str)] = &[
    ("persistentvolumes", "kubernetes.io/pv-protection"),
    ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("volumeattributesclasses.storage.k8s.io", "kubernetes.io/vac-protection"),
];

pub(super) fn protect(review: &mut Review<'_>) -> Result<(), Status> {
    if review.operation != Operation::Create {
        return Ok(());
    }
    let Some((_, finalizer)) = PROTECTED.iter().find(|(resource, _)| review.is_for(resource))
    else {
        return Ok(());
    };
    let finalizers = metadata::finalizers(&review.object);
    if !finalizers.contains(finalizer) {
        let all: Vec<String> =
            finalizers.into_iter().chain([*finalizer]).map(str::to_owned).collect();
        metadata::set_finalizers(&mut review.object, &all);
    }
    Ok(())
}

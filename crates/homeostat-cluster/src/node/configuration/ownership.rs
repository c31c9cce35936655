//! `fsGroup`: gives a volume to a group, as the kubelet does.
//!
//! Only root can: the programs of an ordinary user's agent are all that user, who owns the volumes.

use std::fs::{self, Metadata, Permissions};
use std::io::Result;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use nix::unistd::geteuid;

/// What the group may do with a file, and with one that nobody is to change.
const WRITE: u32 = 0o660;
const READ: u32 = 0o440;
/// With a directory, beside that: go in, and have what is made in it be the group's.
const DIRECTORY: u32 = 0o2110;

/// The group that a Pod's volumes are to belong to, where that can be done.
pub(super) fn group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.as_ref()?.security_context.as_ref()?;
    let group = context.fs_group.and_then(|group| u32::try_from(group).ok())?;
    geteuid().is_root().then_some(group)
}

/// Whether a Pod wants a volume to be gone through only if its top is not the group's yet.
pub(super) fn trusts_the_top(pod: &Pod) -> bool {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let policy = context.and_then(|context| context.fs_group_change_policy.as_deref());
    policy == Some("OnRootMismatch")
}

/// Whether the top of a volume is the group's already.
pub(super) fn is_given(volume: &Path, group: u32) -> bool {
    fs::metadata(volume).is_ok_and(|top| top.gid() == group && wanted(&top, false) == top.mode())
}

/// Gives a file, or a directory with everything in it, to the group.
///
/// # Errors
/// When something cannot be looked at or changed; the rest may be changed then.
pub(super) fn give(path: &Path, group: u32, read_only: bool) -> Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.gid() != group {
        lchown(path, None, Some(group))?;
    }
    if found.is_symlink() {
        return Ok(());
    }
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), group, read_only)?;
        }
    }
    let mode = wanted(&found, read_only);
    if mode != found.mode() {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn wanted(found: &Metadata, read_only: bool) -> u32 {
    let may = if read_only { READ } else { WRITE };
    found.mode() | may | if found.is_dir() { DIRECTORY } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_volume_is_the_groups_to_the_last_file_and_links_lead_nowhere() {
        let (volume, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (inner, file) = (volume.path().join("d"), volume.path().join("d/f"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        symlink(other.path(), inner.join("link")).unwrap();
        let before = fs::metadata(other.path()).unwrap().mode();
        // One's own group is one that everybody may give to.
        let group = nix::unistd::getegid().as_raw();
        assert!(!is_given(volume.path(), group));
        give(volume.path(), group, false).unwrap();
        assert!(is_given(volume.path(), group));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&file), 0o660);
        assert_eq!(mode(&inner) & 0o2070, 0o2070);
        assert_eq!(fs::metadata(other.path()).unwrap().mode(), before);
        fs::set_permissions(&file, Permissions::from_mode(0o400)).unwrap();
        give(&file, group, true).unwrap();
        assert_eq!(mode(&file), 0o440);
    }
}

//! Writes the files of Secret, ConfigMap, downward API and projected volumes.
//!
//! All files of a volume change at once: they are links through `..data`, which is replaced by a
//! rename.

use std::collections::BTreeMap;
use std::fs;
use std::io::Result;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path};
use std::sync::{Mutex, PoisonError};

/// Content and mode by path inside the volume.
pub(super) type Files = BTreeMap<String, (Vec<u8>, u32)>;

const CURRENT: &str = "..data";

/// Held while a volume is written.
static PUBLISHING: Mutex<()> = Mutex::new(());

/// Makes `directory` hold exactly `files`; touches nothing when it does already.
pub(super) fn publish(directory: &Path, files: &Files) -> Result<()> {
    // Containers of a Pod start at the same time and share their volumes.
    let _one_at_a_time = PUBLISHING.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(directory)?;
    let current = directory.join(CURRENT);
    let old = fs::read_link(&current).ok();
    if old.is_some() && holds(&current, files) {
        return Ok(());
    }
    let number = old
        .as_ref()
        .and_then(|name| name.to_str()?.strip_prefix("..version-")?.parse::<u64>().ok())
        .map_or(0, |number| number + 1);
    let version = format!("..version-{number}");
    let fresh = directory.join(&version);
    if fresh.exists() {
        // Left behind by an attempt that failed half-way.
        fs::remove_dir_all(&fresh)?;
    }
    fs::create_dir(&fresh)?;
    for (path, (content, mode)) in files {
        let file = fresh.join(inner(path));
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&file, content)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(*mode))?;
    }
    let next = directory.join("..data-next");
    let _ = fs::remove_file(&next);
    symlink(&version, &next)?;
    fs::rename(&next, &current)?;
    link_names(directory, files)?;
    if let Some(old) = old {
        fs::remove_dir_all(directory.join(old))?;
    }
    Ok(())
}

/// One link per first part of a path, and none that leads nowhere.
fn link_names(directory: &Path, files: &Files) -> Result<()> {
    let names: Vec<&str> = files.keys().filter_map(|path| inner(path).split('/').next()).collect();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let stale =
            name.to_str().is_some_and(|name| !name.starts_with("..") && !names.contains(&name));
        if stale {
            fs::remove_file(directory.join(name))?;
        }
    }
    for name in names {
        let link = directory.join(name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(CURRENT).join(name), link)?;
        }
    }
    Ok(())
}

fn holds(current: &Path, files: &Files) -> bool {
    files.iter().all(|(path, (content, _))| {
        fs::read(current.join(inner(path))).is_ok_and(|there| there == *content)
    }) && count(current) == files.len()
}

fn count(directory: &Path) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.flatten().map(|one| if one.path().is_dir() { count(&one.path()) } else { 1 }).sum()
}

/// The path, or nothing when it would leave the volume.
fn inner(path: &str) -> &str {
    let climbs = Path::new(path).components().any(|part| !matches!(part, Component::Normal(_)));
    if climbs { "" } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_that_start_together_share_one_volume() {
        let root = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let volume = root.path().join(round.to_string());
            let files: Files = [("key".into(), (b"value".to_vec(), 0o644))].into();
            std::thread::scope(|scope| {
                let together: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| publish(&volume, &files))).collect();
                together.into_iter().for_each(|one| one.join().unwrap().unwrap());
            });
            assert_eq!(fs::read_to_string(volume.join("key")).unwrap(), "value");
        }
    }

    #[test]
    fn an_attempt_that_failed_does_not_stand_in_the_way_of_the_next() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        let files = |path: &str| -> Files { [(path.into(), (b"1".to_vec(), 0o644))].into() };
        assert!(publish(&volume, &files("../climbs")).is_err());
        publish(&volume, &files("a")).unwrap();
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "1");
    }

    #[test]
    fn a_changed_source_replaces_all_files_at_once() {
        let root = tempfile::tempdir().unwrap();
        let volume = root.path().join("v");
        let files = |pairs: &[(&str, &str)]| -> Files {
            let one = |(path, text): &(&str, &str)| ((*path).into(), ((*text).into(), 0o644));
            pairs.iter().map(one).collect()
        };
        publish(&volume, &files(&[("a", "1"), ("d/b", "2")])).unwrap();
        assert_eq!(fs::read_to_string(volume.join("d/b")).unwrap(), "2");
        let before = fs::read_link(volume.join(CURRENT)).unwrap();
        publish(&volume, &files(&[("a", "1"), ("d/b", "2")])).unwrap();
        assert_eq!(fs::read_link(volume.join(CURRENT)).unwrap(), before, "nothing to do");
        publish(&volume, &files(&[("a", "3")])).unwrap();
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "3");
        assert!(!volume.join("d").exists() && !volume.join(before).exists());
    }
}

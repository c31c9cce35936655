//! The kubeconfig file: written for its owner only, removed at the end.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A written kubeconfig; dropping it removes the file, which would name a server that is gone,
/// unless another cluster has written its own there since.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    text: String,
}

impl Kubeconfig {
    /// Where it goes unless told otherwise.
    pub(crate) fn default_path() -> Result<PathBuf, Failure> {
        let folder =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        Ok(config.ok_or(Failure::NoHome)?.join("homeostat").join("kubeconfig"))
    }

    /// Writes the file, mode 0600, replacing what is there.
    pub(crate) fn write(path: &Path, text: &str) -> Result<Self, Failure> {
        let failure = |source| Failure::Kubeconfig { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failure)?;
        }
        // A token must never be readable by others, not even for a moment: beside, then in place.
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let written = write_private(&beside, text).and_then(|()| fs::rename(&beside, path));
        written.map_err(|source| {
            let _ = fs::remove_file(&beside);
            failure(source)
        })?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(Self { path, text: text.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A new file that only its owner can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("folder");
        fs::create_dir(&taken).unwrap();
        assert!(matches!(Kubeconfig::write(&taken, "a"), Err(Failure::Kubeconfig { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_end_of_one_cluster_does_not_take_the_file_of_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let first = Kubeconfig::write(&path, "first").unwrap();
        let second = Kubeconfig::write(&path, "second").unwrap();
        drop(first);
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        drop(second);
        assert!(!path.exists());
    }
}

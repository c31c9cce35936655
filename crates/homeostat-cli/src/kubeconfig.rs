//! The kubeconfig file: written for its owner only, removed at the end.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A written kubeconfig; dropping it removes the file, which would name a server that is gone.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
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
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .map_err(failure)?;
        file.write_all(text.as_bytes()).map_err(failure)?;
        fs::rename(&beside, path).map_err(failure)?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

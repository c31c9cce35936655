//! The kubeconfig file: written for its owner only, locked while its cluster runs, removed at the
//! end, with the folders that were made for it. Never takes the file of a running cluster, nor one
//! that somebody else wrote, nor a folder that was there or holds anything.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A written kubeconfig; dropping it removes the file, which would name a server that is gone,
/// unless somebody has written to it since.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    text: String,
    /// Tells others that the cluster it names is running; the system lets go however we end.
    _lock: File,
    /// Go after the file.
    _folders: Folders,
}

impl Kubeconfig {
    /// Writes the file that was asked for, mode 0600.
    pub(crate) fn write(path: &Path, text: &str) -> Result<Self, Failure> {
        match found(path, text) {
            Found::Nothing | Found::Left => put(path, text),
            Found::Running => Err(Failure::KubeconfigTaken { path: path.to_owned() }),
            Found::Another => Err(Failure::KubeconfigOfAnother { path: path.to_owned() }),
        }
    }

    /// Writes the default file, or one beside it, named by the port, while another cluster runs
    /// that has the default one.
    pub(crate) fn write_default(text: &str, port: u16) -> Result<Self, Failure> {
        Self::write_below(&folder()?, text, port)
    }

    fn write_below(folder: &Path, text: &str, port: u16) -> Result<Self, Failure> {
        let usual = folder.join("kubeconfig");
        match found(&usual, text) {
            Found::Running => put(&folder.join(format!("kubeconfig-{port}")), text),
            Found::Nothing | Found::Left | Found::Another => put(&usual, text),
        }
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

fn folder() -> Result<PathBuf, Failure> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    Ok(config.ok_or(Failure::NoHome)?.join("homeostat"))
}

/// What is where a kubeconfig is to be written.
enum Found {
    Nothing,
    /// The file of a cluster that runs.
    Running,
    /// One of ours, of a cluster that is gone.
    Left,
    /// Somebody else's.
    Another,
}

fn found(path: &Path, text: &str) -> Found {
    let file = match File::open(path) {
        Ok(file) => file,
        // Whoever keeps it to himself does not want it replaced.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Found::Another,
        Err(_) => return Found::Nothing,
    };
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Found::Running;
    }
    // What differs between two of ours begins with the address.
    let ours = text.split_once("server:").map_or(text, |(head, _)| head);
    match fs::read(path) {
        Ok(there) if !there.is_empty() && !there.starts_with(ours.as_bytes()) => Found::Another,
        _ => Found::Left,
    }
}

fn put(path: &Path, text: &str) -> Result<Kubeconfig, Failure> {
    let attempt = || -> io::Result<_> {
        let folders = Folders::above(path)?;
        Ok((folders, put_in_place(path, text)?))
    };
    let put = match attempt() {
        // Another cluster has just ended, and its folder went with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => attempt(),
        put => put,
    };
    let failure = |source| Failure::Kubeconfig { path: path.to_owned(), source };
    let (folders, lock) = put.map_err(failure)?;
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(Kubeconfig { path, text: text.to_owned(), _lock: lock, _folders: folders })
}

fn put_in_place(path: &Path, text: &str) -> io::Result<File> {
    // A token must never be readable by others, not even for a moment: beside, then in place.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write_locked(&beside, text).and_then(|lock| {
        fs::rename(&beside, path)?;
        Ok(lock)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// The folders that were made for a file, the outermost first; dropping them removes those that are
/// empty.
#[derive(Debug, Default)]
struct Folders(Vec<PathBuf>);

impl Folders {
    /// Makes those that the file needs and that are not there.
    fn above(path: &Path) -> io::Result<Self> {
        // Wherever it is relative to, it is so now.
        let path = std::path::absolute(path)?;
        let mut made = Self::default();
        let folders = path.ancestors().skip(1);
        let missing: Vec<&Path> = folders.take_while(|folder| !folder.is_dir()).collect();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.0.push(folder.to_owned()),
                // Somebody else has made it meanwhile, and keeps it.
                Err(_) if folder.is_dir() => {}
                Err(_) if folder.exists() => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // One that is not empty stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A new file that only its owner can read.
fn write_locked(path: &Path, text: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.try_lock()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "kind: Config\nserver: first\n";
    const SECOND: &str = "kind: Config\nserver: second\n";

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("folder");
        fs::create_dir(&taken).unwrap();
        assert!(matches!(Kubeconfig::write(&taken, FIRST), Err(Failure::Kubeconfig { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_that_were_made_for_the_file_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("there");
        fs::create_dir(&there).unwrap();
        let file = Kubeconfig::write(&there.join("new/sub/kubeconfig"), FIRST).unwrap();
        assert!(there.join("new/sub/kubeconfig").is_file());
        drop(file);
        assert_eq!(fs::read_dir(&there).unwrap().count(), 0);

        let file = Kubeconfig::write(&there.join("new/sub/kubeconfig"), FIRST).unwrap();
        fs::write(there.join("new/notes"), "somebody's own").unwrap();
        drop(file);
        assert!(there.join("new/notes").is_file() && !there.join("new/sub").exists());
    }

    #[test]
    fn folders_go_too_when_the_file_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let unwritable = folder.path().join("new").join("x".repeat(300));
        assert!(matches!(Kubeconfig::write(&unwritable, FIRST), Err(Failure::Kubeconfig { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_file_of_a_running_cluster_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let first = Kubeconfig::write_below(folder.path(), FIRST, 1).unwrap();
        let second = Kubeconfig::write_below(folder.path(), SECOND, 2).unwrap();
        assert_eq!(second.path().file_name().unwrap(), "kubeconfig-2");
        let refused = Kubeconfig::write(first.path(), SECOND);
        assert!(matches!(refused, Err(Failure::KubeconfigTaken { .. })));
        assert_eq!(fs::read_to_string(first.path()).unwrap(), FIRST);
        let path = first.path().to_owned();
        drop((first, second));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // As a killed cluster leaves it.
        fs::write(&path, FIRST).unwrap();
        assert_eq!(Kubeconfig::write(&path, SECOND).unwrap().path(), path);
    }

    #[test]
    fn a_file_that_somebody_else_wrote_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for theirs in [b"the way to production".as_slice(), b"\xff no text at all"] {
            fs::write(&path, theirs).unwrap();
            let refused = Kubeconfig::write(&path, FIRST);
            assert!(matches!(refused, Err(Failure::KubeconfigOfAnother { .. })));
            assert_eq!(fs::read(&path).unwrap(), theirs);
        }
    }
}

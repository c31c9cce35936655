//! The kubeconfig file: written for its owner only, locked while its cluster runs, removed at the
//! end, with the folders that were made for it. It stays ours when its user chooses another namespace
//! or context in it. Never takes the file of a running cluster, nor one that names any other cluster
//! or user, nor a folder that was there or holds anything.

mod whose;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use whose::{Found, Named, found};

/// How the files are named whose clusters have not got the default one; a port follows.
const BESIDE: &str = "kubeconfig-";

/// A written kubeconfig; dropping it removes the file, which would name a server that is gone,
/// unless somebody has added to it since.
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
        match found(path) {
            Found::Nothing | Found::Left => put(path, text),
            Found::Running => Err(Failure::KubeconfigTaken { path: path.to_owned() }),
            Found::Another => Err(Failure::KubeconfigOfAnother { path: path.to_owned() }),
        }
    }

    /// Writes the default file, or one beside it, named by the port, while somebody else has the
    /// default one: another cluster that runs, or a user who keeps other clusters in it.
    pub(crate) fn write_default(text: &str, port: u16) -> Result<Self, Failure> {
        Self::write_below(&folder()?, text, port)
    }

    fn write_below(folder: &Path, text: &str, port: u16) -> Result<Self, Failure> {
        let (usual, beside) = (folder.join("kubeconfig"), folder.join(format!("{BESIDE}{port}")));
        // A cluster that was killed, and that kept its port, goes on where terminals look for it.
        if matches!(found(&beside), Found::Left) {
            return put(&beside, text);
        }
        sweep(folder);
        match found(&usual) {
            Found::Nothing | Found::Left => put(&usual, text),
            Found::Running | Found::Another => Self::write(&beside, text),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let ours = Named::in_text(&self.text);
        // Not if another cluster has taken it meanwhile: an editor may have put a new file in place.
        if Named::in_file(&self.path).is_some_and(|named| Some(named) == ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn folder() -> Result<PathBuf, Failure> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    Ok(config.ok_or(Failure::NoHome)?.join("homeostat"))
}

/// Removes the files beside the default one whose clusters were killed.
fn sweep(folder: &Path) {
    let is_beside = |name: &str| {
        let port = name.strip_prefix(BESIDE);
        port.is_some_and(|port| port.parse::<u16>().is_ok())
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(is_beside) {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else { continue };
        let locked = file.try_lock().is_ok();
        // What was just put in its place is another file, which nobody has locked here.
        let same = file
            .metadata()
            .is_ok_and(|held| entry.path().metadata().is_ok_and(|there| held.ino() == there.ino()));
        if locked && same && Named::in_file(&entry.path()).is_some() {
            let _ = fs::remove_file(entry.path());
        }
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

    const OURS: &str = "apiVersion: v1
kind: Config
clusters: [{name: homeostat, cluster: {server: 'https://127.0.0.1:PORT'}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: homeostat, context: {cluster: homeostat, user: admin, namespace: default}}]
current-context: homeostat
";

    fn ours(port: &str) -> String {
        OURS.replace("PORT", port)
    }

    #[test]
    fn a_file_that_cannot_be_put_in_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("folder");
        fs::create_dir(&taken).unwrap();
        assert!(matches!(Kubeconfig::write(&taken, &ours("1")), Err(Failure::Kubeconfig { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_that_were_made_for_the_file_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("there");
        fs::create_dir(&there).unwrap();
        let file = Kubeconfig::write(&there.join("new/sub/kubeconfig"), &ours("1")).unwrap();
        assert!(there.join("new/sub/kubeconfig").is_file());
        drop(file);
        assert_eq!(fs::read_dir(&there).unwrap().count(), 0);

        let file = Kubeconfig::write(&there.join("new/sub/kubeconfig"), &ours("1")).unwrap();
        fs::write(there.join("new/notes"), "somebody's own").unwrap();
        drop(file);
        assert!(there.join("new/notes").is_file() && !there.join("new/sub").exists());
    }

    #[test]
    fn folders_go_too_when_the_file_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let unwritable = folder.path().join("new").join("x".repeat(300));
        assert!(matches!(
            Kubeconfig::write(&unwritable, &ours("1")),
            Err(Failure::Kubeconfig { .. })
        ));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_file_of_a_running_cluster_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let first = Kubeconfig::write_below(folder.path(), &ours("1"), 1).unwrap();
        let second = Kubeconfig::write_below(folder.path(), &ours("2"), 2).unwrap();
        assert_eq!(second.path().file_name().unwrap(), "kubeconfig-2");
        let refused = Kubeconfig::write(first.path(), &ours("2"));
        assert!(matches!(refused, Err(Failure::KubeconfigTaken { .. })));
        assert_eq!(fs::read_to_string(first.path()).unwrap(), ours("1"));
        let path = first.path().to_owned();
        drop((first, second));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // As a killed cluster leaves it.
        fs::write(&path, ours("1")).unwrap();
        assert_eq!(Kubeconfig::write(&path, &ours("2")).unwrap().path(), path);
    }

    #[test]
    fn another_namespace_or_context_leaves_the_file_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let file = Kubeconfig::write(&path, &ours("1")).unwrap();
        let edited = ours("1").replace("namespace: default", "namespace: x");
        fs::write(&path, edited.replace("current-context: homeostat", "current-context: ''"))
            .unwrap();
        drop(file);
        assert!(!path.exists(), "it goes with its cluster");
        // As a killed cluster leaves it.
        fs::write(&path, edited).unwrap();
        drop(Kubeconfig::write(&path, &ours("2")).unwrap());
    }

    #[test]
    fn a_file_that_names_another_cluster_or_user_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let cluster = "{name: production, cluster: {server: 'https://127.0.0.1:1'}}";
        for theirs in [
            "the way to production".to_owned(),
            ours("1").replace("}}]\nusers", &format!("}}}}, {cluster}]\nusers")),
            ours("1").replace("clusters: [{name: homeostat", "clusters: [{name: production"),
            ours("1").replace("127.0.0.1:", "10.0.0.1:"),
            ours("1").replace("}}]\ncontexts", "}}, {name: me, user: {token: mine}}]\ncontexts"),
        ] {
            let file = Kubeconfig::write(&path, &ours("1")).unwrap();
            fs::write(&path, &theirs).unwrap();
            drop(file);
            assert_eq!(fs::read_to_string(&path).unwrap(), theirs, "it stays at the end");
            let refused = Kubeconfig::write(&path, &ours("2"));
            assert!(matches!(refused, Err(Failure::KubeconfigOfAnother { .. })));
            assert_eq!(fs::read_to_string(&path).unwrap(), theirs, "it is not overwritten");
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, b"\xff no text at all").unwrap();
        let refused = Kubeconfig::write(&path, &ours("1"));
        assert!(matches!(refused, Err(Failure::KubeconfigOfAnother { .. })));
    }

    #[test]
    fn a_default_file_with_other_clusters_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join("kubeconfig");
        fs::write(&usual, "the way to production").unwrap();
        let file = Kubeconfig::write_below(folder.path(), &ours("7"), 7).unwrap();
        assert_eq!(file.path().file_name().unwrap(), "kubeconfig-7");
        assert_eq!(fs::read_to_string(&usual).unwrap(), "the way to production");
    }

    #[test]
    fn a_killed_cluster_that_keeps_its_port_goes_on_in_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("kubeconfig-2");
        fs::write(&own, ours("2")).unwrap();
        let again = Kubeconfig::write_below(folder.path(), &ours("2"), 2).unwrap();
        assert_eq!(again.path().file_name(), own.file_name());
    }

    #[test]
    fn files_of_killed_clusters_go_when_the_next_one_starts_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let first = Kubeconfig::write_below(folder.path(), &ours("1"), 1).unwrap();
        let second = Kubeconfig::write_below(folder.path(), &ours("2"), 2).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("kubeconfig-3", &ours("3"));
        write("kubeconfig-4", "the way to production");
        write("kubeconfig-old", &ours("5"));
        let third = Kubeconfig::write_below(folder.path(), &ours("6"), 6).unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there("kubeconfig-3"), "its cluster is gone");
        assert!(there("kubeconfig-4") && there("kubeconfig-old"), "nobody's business");
        assert!([&first, &second, &third].iter().all(|file| file.path().exists()));
    }
}

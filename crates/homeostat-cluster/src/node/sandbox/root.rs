//! The root file system of a container: the host's own, with a private layer for what is written.
//!
//! An overlay whose upper layer lies in memory lets a mount point be made anywhere and keeps every
//! write away from the host, except those into volumes. An ordinary user may not overlay a
//! directory that other file systems are mounted in, so `/` is put together from its entries then.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{chdir, pivot_root, sethostname};

use super::{Mount, Spec, Tier};

const NOTHING: Option<&str> = None;

/// Device nodes that programs expect.
const DEVICES: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "ptmx"];

/// More links than this in one path are a circle.
const MOST_LINKS: usize = 40;

/// Builds the root of `spec` and moves into it.
pub(super) fn build(spec: &Spec) -> Result<()> {
    let host_mounts = host_mounts()?;
    let root = overlay(spec.tier, &spec.scratch)?;
    for host_mount in host_mounts {
        let inside = below(&root, &host_mount);
        // A file system of the host that cannot be shown is no reason to refuse the container.
        let _ = bind(&host_mount, &inside, true);
    }
    devices(&root)?;
    recursive_bind(Path::new("/proc"), &root.join("proc"))?;
    recursive_bind(Path::new("/sys"), &root.join("sys"))?;
    // All mount points are made before the first mount: making one may cover what is above it.
    for volume in &spec.mounts {
        make_way(&root, volume).map_err(|error| refusal(volume, &error))?;
    }
    for volume in &spec.mounts {
        bind(&volume.source, &below(&root, &volume.target), volume.read_only)
            .map_err(|error| refusal(volume, &error))?;
    }
    sethostname(&spec.hostname)?;
    // Who may not write there has the name from the system call alone.
    let _ = fs::write(root.join("etc/hostname"), format!("{}\n", spec.hostname));
    chdir(&root)?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    Ok(())
}

/// Mounts the overlay below `scratch` and says where it is.
pub(super) fn overlay(tier: Tier, scratch: &Path) -> Result<PathBuf> {
    // Nothing mounted from here on may be seen by the host.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    mount(Some("tmpfs"), scratch, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
    let root = scratch.join("root");
    fs::create_dir(&root)?;
    if layer(tier, Path::new("/"), scratch, "all", &root).is_ok() {
        return Ok(root);
    }
    assemble(tier, scratch, &root)
        .map_err(|error| Error::other(format!("the host's root cannot be overlaid: {error}")))?;
    Ok(root)
}

/// Shows `lower` at `target` with a private layer, kept under `name`, for what is written.
fn layer(tier: Tier, lower: &Path, scratch: &Path, name: &str, target: &Path) -> Result<()> {
    let (upper, work) = (scratch.join("upper").join(name), scratch.join("work").join(name));
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    // The top of the upper layer is what is seen: it must look like what it covers.
    fs::set_permissions(&upper, fs::metadata(lower)?.permissions())?;
    let own_attributes = if tier == Tier::User { ",userxattr" } else { "" };
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{own_attributes}");
    let kind = Some("overlay");
    Ok(mount(kind, target, kind, MsFlags::empty(), Some(options.as_str()))?)
}

/// Puts `/` together from a layer per entry; what cannot be layered is shown as it is.
fn assemble(tier: Tier, scratch: &Path, root: &Path) -> Result<()> {
    // Only a mount of its own can become the root.
    mount(Some("tmpfs"), root, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
    for entry in fs::read_dir("/")? {
        let entry = entry?;
        let (name, host) = (entry.file_name(), entry.path());
        let inside = root.join(&name);
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&host)?, &inside)?;
        } else if kind.is_dir() {
            fs::create_dir(&inside)?;
            let own = ["proc", "sys", "dev", "run"].iter().any(|own| name == *own);
            if !own && layer(tier, &host, scratch, &name.to_string_lossy(), &inside).is_err() {
                recursive_bind(&host, &inside)?;
            }
        } else {
            bind(&host, &inside, false)?;
        }
    }
    Ok(())
}

/// The mount points of real file systems below `/`, which an overlay of `/` does not show.
fn host_mounts() -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let hidden = ["/proc", "/sys", "/dev", "/run", "/tmp", "/mnt"];
    Ok(table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|at| *at != "/" && !hidden.iter().any(|hide| Path::new(at).starts_with(hide)))
        .filter(|at| !at.contains('\\'))
        .map(PathBuf::from)
        .filter(|at| at.is_dir())
        .collect())
}

fn devices(root: &Path) -> Result<()> {
    let dev = root.join("dev");
    mount(Some("tmpfs"), &dev, Some("tmpfs"), MsFlags::MS_NOSUID, Some("mode=0755"))?;
    for name in DEVICES {
        let host = Path::new("/dev").join(name);
        if host.exists() {
            bind(&host, &dev.join(name), false)?;
        }
    }
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
    {
        symlink(Path::new("/proc/self").join(target), dev.join(name))?;
    }
    fs::create_dir(dev.join("shm"))?;
    fs::set_permissions(dev.join("shm"), fs::Permissions::from_mode(0o1777))?;
    fs::create_dir(dev.join("pts"))?;
    recursive_bind(Path::new("/dev/pts"), &dev.join("pts"))
}

fn refusal(volume: &Mount, error: &Error) -> Error {
    let (source, target) = (volume.source.display(), volume.target.display());
    Error::other(format!("volume {source} cannot be mounted at {target}: {error}"))
}

/// Makes the mount point of a volume, where need be in a copy of the directory it belongs in.
fn make_way(root: &Path, volume: &Mount) -> Result<()> {
    let target = below(root, &volume.target);
    if mount_point(&volume.source, &target).is_ok() {
        return Ok(());
    }
    let taken = target.ancestors().find(|above| above.is_dir()).unwrap_or(root);
    let host = Path::new("/").join(taken.strip_prefix(root).map_err(Error::other)?);
    mirror(&host, taken)?;
    mount_point(&volume.source, &target)
}

/// Covers `inside` with a directory of our own that shows what `host` holds.
fn mirror(host: &Path, inside: &Path) -> Result<()> {
    let entries: Vec<fs::DirEntry> = fs::read_dir(host)?.collect::<Result<_>>()?;
    mount(Some("tmpfs"), inside, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
    for entry in entries {
        let shown = inside.join(entry.file_name());
        if entry.file_type()?.is_symlink() {
            symlink(fs::read_link(entry.path())?, shown)?;
        } else {
            bind(&entry.path(), &shown, false)?;
        }
    }
    Ok(())
}

fn recursive_bind(source: &Path, target: &Path) -> Result<()> {
    Ok(mount(Some(source), target, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?)
}

/// Binds `source` to `target`, making the mount point of the right sort when there is none.
fn bind(source: &Path, target: &Path, read_only: bool) -> Result<()> {
    mount_point(source, target)?;
    recursive_bind(source, target)?;
    if read_only {
        let flags =
            MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | restrictions(target)?;
        mount(NOTHING, target, NOTHING, flags, NOTHING)?;
    }
    Ok(())
}

/// Makes what `source` can be bound to: a directory for a directory, a file for anything else.
fn mount_point(source: &Path, target: &Path) -> Result<()> {
    if fs::metadata(source)?.is_dir() {
        return fs::create_dir_all(target);
    }
    if !target.exists() {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        File::create(target)?;
    }
    Ok(())
}

/// What is forbidden on a mount; an ordinary user may not lift it.
fn restrictions(path: &Path) -> Result<MsFlags> {
    let now = statvfs(path)?.flags();
    let pairs = [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    Ok(pairs
        .iter()
        .filter(|(is, _)| now.contains(*is))
        .fold(MsFlags::empty(), |all, (_, one)| all | *one))
}

/// The absolute path `inside`, as a path below `root` that cannot climb out of it: links lead
/// where they will lead once `root` is the root, as `/var/run` does to `/run` on most hosts.
fn below(root: &Path, inside: &Path) -> PathBuf {
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let (mut path, mut left, mut links) = (root.to_owned(), parts(inside), 0);
    while let Some(part) = left.pop() {
        match part.components().next() {
            Some(Component::ParentDir) if path != root => drop(path.pop()),
            Some(Component::Normal(name)) => {
                path.push(name);
                if links < MOST_LINKS
                    && let Ok(link) = fs::read_link(&path)
                {
                    links += 1;
                    path.pop();
                    if link.is_absolute() {
                        root.clone_into(&mut path);
                    }
                    left.extend(parts(&link));
                }
            }
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_place_below_the_root_and_never_out_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::create_dir(root.join("var")).unwrap();
        symlink("/run", root.join("var/run")).unwrap();
        symlink("../../../etc", root.join("var/up")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let place = |inside: &str| below(root, Path::new(inside));
        assert_eq!(place("/var/run/secrets/token"), root.join("run/secrets/token"));
        assert_eq!(place("/var/up/passwd"), root.join("etc/passwd"));
        assert_eq!(place("/../../data"), root.join("data"));
        assert!(place("/round/data").starts_with(root));
    }
}

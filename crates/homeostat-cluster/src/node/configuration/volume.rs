//! Volumes: directories of this host, and where a container sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{
    Container, DownwardAPIVolumeFile, HostPathVolumeSource, KeyToPath, Pod, Volume,
    VolumeProjection,
};

use super::environment::{Place, Variables};
use super::files::{Files, publish};
use super::token::Wanted;
use super::{Problem, Sources, downward, ownership};
use crate::node::image::Image;
use crate::node::sandbox::Mount;

const DEFAULT_MODE: i32 = 0o644;

/// Volumes that have been given to the Pod's group since it began here.
pub type Given = BTreeSet<String>;

/// Makes, or brings up to date, every volume of a Pod below `root`; answers with where each is.
///
/// # Errors
/// When a source is missing or a directory cannot be made.
pub fn volumes(
    root: &Path,
    pod: &Pod,
    sources: &Sources,
    place: &Place,
    given: &mut Given,
) -> Result<BTreeMap<String, PathBuf>, Problem> {
    let Some(spec) = &pod.spec else { return Ok(BTreeMap::new()) };
    let mut all = BTreeMap::new();
    for volume in spec.volumes.iter().flatten() {
        let made = one(root, pod, volume, sources, place)
            .and_then(|path| share(pod, volume, &path, given).map(|()| path));
        let path = made.map_err(|Problem(why)| {
            Problem(format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name))
        })?;
        all.insert(volume.name.clone(), path);
    }
    Ok(all)
}

/// Gives a volume to the Pod's group: one that programs write to once, files that the agent writes
/// each time.
fn share(pod: &Pod, volume: &Volume, path: &Path, given: &mut Given) -> Result<(), Problem> {
    let Some(group) = ownership::group(pod).filter(|_| volume.host_path.is_none()) else {
        return Ok(());
    };
    let programs = volume.persistent_volume_claim.is_some() || volume.empty_dir.is_some();
    if programs {
        let trusted = ownership::trusts_the_top(pod) && ownership::is_given(path, group);
        if !given.insert(volume.name.clone()) || trusted || is_read_only(volume) {
            return Ok(());
        }
    }
    ownership::give(path, group, !programs)
        .map_err(|error| Problem(format!("it cannot be given to group {group}: {error}")))
}

fn is_read_only(volume: &Volume) -> bool {
    let claim = volume.persistent_volume_claim.as_ref();
    claim.and_then(|claim| claim.read_only) == Some(true)
}

fn one(
    root: &Path,
    pod: &Pod,
    volume: &Volume,
    sources: &Sources,
    place: &Place,
) -> Result<PathBuf, Problem> {
    let path = root.join(&volume.name);
    let failed = |error: std::io::Error| Problem(error.to_string());
    if let Some(claim) = &volume.persistent_volume_claim {
        let path = sources.claims.get(&claim.claim_name).cloned();
        let missing = || Problem(format!("persistentvolumeclaim {:?} not found", claim.claim_name));
        let path = path.ok_or_else(missing)?;
        if !path.exists() {
            // As provisioners of directories do it: who may write there is not known yet.
            fs::create_dir_all(&path).map_err(failed)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(failed)?;
        }
        return Ok(path);
    }
    if let Some(host) = &volume.host_path {
        return host_path(host).map_err(failed);
    }
    if volume.empty_dir.is_some() {
        if !path.exists() {
            fs::create_dir_all(&path).map_err(failed)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(failed)?;
        }
        return Ok(path);
    }
    let mut files = Files::new();
    let mut into = Collector { pod, sources, place, files: &mut files, mode: DEFAULT_MODE };
    if let Some(secret) = &volume.secret {
        into.mode = secret.default_mode.unwrap_or(DEFAULT_MODE);
        let name = secret.secret_name.as_deref().unwrap_or_default();
        into.secret(name, secret.items.as_deref(), secret.optional)?;
    } else if let Some(map) = &volume.config_map {
        into.mode = map.default_mode.unwrap_or(DEFAULT_MODE);
        into.config_map(&map.name, map.items.as_deref(), map.optional)?;
    } else if let Some(downward) = &volume.downward_api {
        into.mode = downward.default_mode.unwrap_or(DEFAULT_MODE);
        into.downward(downward.items.iter().flatten())?;
    } else if let Some(projected) = &volume.projected {
        into.mode = projected.default_mode.unwrap_or(DEFAULT_MODE);
        for source in projected.sources.iter().flatten() {
            into.projection(source)?;
        }
    } else {
        return Err(Problem(String::from(
            "this node has no volumes of that sort; use emptyDir, hostPath, secret, configMap, \
             downwardAPI, projected or persistentVolumeClaim",
        )));
    }
    publish(&path, &files).map_err(failed)?;
    Ok(path)
}

fn host_path(host: &HostPathVolumeSource) -> std::io::Result<PathBuf> {
    let path = PathBuf::from(&host.path);
    match host.type_.as_deref() {
        Some("DirectoryOrCreate") => fs::create_dir_all(&path)?,
        Some("FileOrCreate") if !path.exists() => fs::write(&path, "")?,
        _ if path.exists() => {}
        _ => return Err(std::io::Error::other(format!("hostPath {} does not exist", host.path))),
    }
    Ok(path)
}

struct Collector<'a> {
    pod: &'a Pod,
    sources: &'a Sources,
    place: &'a Place,
    files: &'a mut Files,
    mode: i32,
}

impl Collector<'_> {
    fn put(&mut self, path: &str, content: Vec<u8>, mode: Option<i32>) {
        let mode = mode.unwrap_or(self.mode).cast_unsigned();
        self.files.insert(path.to_owned(), (content, mode));
    }

    fn secret(
        &mut self,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
    ) -> Result<(), Problem> {
        let Some(secret) = self.sources.secret(name, optional.unwrap_or(false))? else {
            return Ok(());
        };
        let data = secret.data.iter().flatten();
        let all = data.map(|(key, value)| (key.clone(), value.0.clone())).collect();
        self.keys("secret", name, all, items, optional)
    }

    fn config_map(
        &mut self,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
    ) -> Result<(), Problem> {
        let Some(map) = self.sources.config_map(name, optional.unwrap_or(false))? else {
            return Ok(());
        };
        let text =
            map.data.iter().flatten().map(|(key, value)| (key.clone(), value.clone().into()));
        let bytes = map.binary_data.iter().flatten();
        let bytes = bytes.map(|(key, value)| (key.clone(), value.0.clone()));
        self.keys("configmap", name, text.chain(bytes).collect(), items, optional)
    }

    fn keys(
        &mut self,
        kind: &str,
        name: &str,
        mut all: BTreeMap<String, Vec<u8>>,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
    ) -> Result<(), Problem> {
        let Some(items) = items else {
            for (key, content) in all {
                self.put(&key, content, None);
            }
            return Ok(());
        };
        for item in items {
            match all.remove(&item.key) {
                Some(content) => self.put(&item.path, content, item.mode),
                None if optional == Some(true) => {}
                None => {
                    let key = &item.key;
                    return Err(Problem(format!(
                        "references non-existent {kind} key: {name}/{key}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn downward<'a>(
        &mut self,
        items: impl Iterator<Item = &'a DownwardAPIVolumeFile>,
    ) -> Result<(), Problem> {
        for item in items {
            let text = if let Some(field) = &item.field_ref {
                downward::field(self.pod, field, self.place)?
            } else if let Some(field) = &item.resource_field_ref {
                downward::resource(self.pod, None, field, self.place)?
            } else {
                String::new()
            };
            self.put(&item.path, text.into(), item.mode);
        }
        Ok(())
    }

    fn projection(&mut self, source: &VolumeProjection) -> Result<(), Problem> {
        if let Some(secret) = &source.secret {
            self.secret(&secret.name, secret.items.as_deref(), secret.optional)?;
        }
        if let Some(map) = &source.config_map {
            self.config_map(&map.name, map.items.as_deref(), map.optional)?;
        }
        if let Some(downward) = &source.downward_api {
            self.downward(downward.items.iter().flatten())?;
        }
        if let Some(at) = &source.service_account_token
            && let Some(token) = self.sources.tokens.get(&Wanted::by(at))
        {
            let token = token.clone().map_err(Problem)?;
            self.put(&at.path, token.into_bytes(), None);
        }
        Ok(())
    }
}

/// Where a container sees its volumes; the image's own volumes are made below `own`.
///
/// # Errors
/// When a mount names no volume of the Pod, or leaves its volume.
pub fn mounts(
    pod: &Pod,
    container: &Container,
    image: &Image,
    volumes: &BTreeMap<String, PathBuf>,
    env: &[(String, String)],
    own: &Path,
) -> Result<Vec<Mount>, Problem> {
    let variables = Variables::of(env);
    let volumes_of_pod = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let never_written: Vec<&String> =
        volumes_of_pod.filter(|volume| is_read_only(volume)).map(|volume| &volume.name).collect();
    let mut all = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let name = &mount.name;
        let volume = volumes
            .get(name)
            .ok_or_else(|| Problem(format!("volumeMount {name:?} names no volume of the Pod")))?;
        let within = mount
            .sub_path_expr
            .as_deref()
            .map(|text| variables.expand(text))
            .or_else(|| mount.sub_path.clone())
            .unwrap_or_default();
        let source = below(volume, &within)
            .ok_or_else(|| Problem(format!("subPath {within:?} leaves its volume")))?;
        if !source.exists() {
            fs::create_dir_all(&source)
                .map_err(|error| Problem(format!("subPath {within:?}: {error}")))?;
        }
        all.push(Mount {
            source,
            target: Path::new("/").join(&mount.mount_path),
            read_only: mount.read_only.unwrap_or(false) || never_written.contains(&name),
        });
    }
    for path in &image.volumes {
        let target = PathBuf::from(path);
        if all.iter().any(|mount| target.starts_with(&mount.target)) {
            continue;
        }
        let source = own.join(path.trim_matches('/').replace('/', "-"));
        fs::create_dir_all(&source).map_err(|error| Problem(format!("{path}: {error}")))?;
        all.push(Mount { source, target, read_only: false });
    }
    // Outer mounts come first, or they would hide the inner ones.
    all.sort_by_key(|mount| mount.target.components().count());
    Ok(all)
}

fn below(volume: &Path, within: &str) -> Option<PathBuf> {
    let mut path = volume.to_owned();
    for part in Path::new(within).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

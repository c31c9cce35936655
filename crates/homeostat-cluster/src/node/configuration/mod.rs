//! What a Pod's containers are configured with: environment and volumes.
//!
//! [`Sources::gather`] reads everything the Pod names from the API, once; the rest is a function
//! of the Pod and what was gathered.

mod downward;
mod environment;
mod files;
mod links;
mod ownership;
mod token;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use homeostat_env::Env;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use kube::api::Api;

pub(crate) use environment::hostname;
pub use environment::{Place, command, environment};
pub(crate) use links::links;
pub use token::Tokens;
use token::Wanted;
pub use volume::{Given, mounts, volumes};

/// Something that is missing or wrong in a container's configuration, for `kubectl describe`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Problem(pub String);

/// The objects that a Pod's environment and volumes come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    secrets: BTreeMap<String, Secret>,
    config_maps: BTreeMap<String, ConfigMap>,
    claims: BTreeMap<String, PathBuf>,
    /// Each token that a volume asks for, or why there is none.
    tokens: BTreeMap<Wanted, Result<String, String>>,
}

/// Names of the objects a Pod refers to.
#[derive(Debug, Default, PartialEq, Eq)]
struct References {
    secrets: BTreeSet<String>,
    config_maps: BTreeSet<String>,
    claims: BTreeSet<String>,
    tokens: BTreeSet<Wanted>,
}

impl Sources {
    /// Reads what `pod` refers to. What does not exist is left out: whether that matters is
    /// decided where it is used.
    ///
    /// # Errors
    /// When the API cannot be read, or a claim has no volume on this host.
    pub async fn gather(
        client: &kube::Client,
        env: &Env,
        pod: &Pod,
        tokens: &mut Tokens,
    ) -> Result<Self, Problem> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let names = References::of(pod);
        let mut sources = Self::default();
        let failed = |error: kube::Error| Problem(error.to_string());
        for name in names.secrets {
            let found = Api::<Secret>::namespaced(client.clone(), namespace).get_opt(&name).await;
            sources.secrets.extend(found.map_err(failed)?.map(|secret| (name, secret)));
        }
        for name in names.config_maps {
            let found =
                Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(&name).await;
            sources.config_maps.extend(found.map_err(failed)?.map(|map| (name, map)));
        }
        for name in names.claims {
            let path = claimed(client, namespace, &name).await?;
            sources.claims.insert(name, path);
        }
        for wanted in names.tokens {
            let token = tokens.get(client, env, pod, &wanted).await;
            sources.tokens.insert(wanted, token);
        }
        Ok(sources)
    }

    fn secret(&self, name: &str, optional: bool) -> Result<Option<&Secret>, Problem> {
        present("secret", self.secrets.get(name), name, optional)
    }

    fn config_map(&self, name: &str, optional: bool) -> Result<Option<&ConfigMap>, Problem> {
        present("configmap", self.config_maps.get(name), name, optional)
    }
}

fn present<'a, T>(
    kind: &str,
    found: Option<&'a T>,
    name: &str,
    optional: bool,
) -> Result<Option<&'a T>, Problem> {
    match found {
        None if !optional => Err(Problem(format!("{kind} {name:?} not found"))),
        found => Ok(found),
    }
}

impl References {
    fn of(pod: &Pod) -> Self {
        let mut names = Self::default();
        let Some(spec) = &pod.spec else { return names };
        let own = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        let own = own.map(|container| (&container.env_from, &container.env));
        let added = spec.ephemeral_containers.iter().flatten();
        let added = added.map(|container| (&container.env_from, &container.env));
        for (env_from, env) in own.chain(added) {
            for from in env_from.iter().flatten() {
                names.secrets.extend(from.secret_ref.iter().map(|one| one.name.clone()));
                names.config_maps.extend(from.config_map_ref.iter().map(|one| one.name.clone()));
            }
            for from in env.iter().flatten().filter_map(|one| one.value_from.as_ref()) {
                names.secrets.extend(from.secret_key_ref.iter().map(|one| one.name.clone()));
                names
                    .config_maps
                    .extend(from.config_map_key_ref.iter().map(|one| one.name.clone()));
            }
        }
        for volume in spec.volumes.iter().flatten() {
            names.secrets.extend(volume.secret.iter().filter_map(|one| one.secret_name.clone()));
            names.config_maps.extend(volume.config_map.iter().map(|one| one.name.clone()));
            names
                .claims
                .extend(volume.persistent_volume_claim.iter().map(|one| one.claim_name.clone()));
            let projected =
                volume.projected.iter().filter_map(|one| one.sources.as_ref()).flatten();
            for source in projected {
                names.secrets.extend(source.secret.iter().map(|one| one.name.clone()));
                names.config_maps.extend(source.config_map.iter().map(|one| one.name.clone()));
                names.tokens.extend(source.service_account_token.iter().map(Wanted::by));
            }
        }
        names
    }
}

/// The directory of this host that a claim stands for.
async fn claimed(client: &kube::Client, namespace: &str, name: &str) -> Result<PathBuf, Problem> {
    let unreadable = |error: kube::Error| Problem(error.to_string());
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let claim = claims.get_opt(name).await.map_err(unreadable)?;
    let claim =
        claim.ok_or_else(|| Problem(format!("persistentvolumeclaim {name:?} not found")))?;
    let volume = claim.spec.and_then(|spec| spec.volume_name).filter(|name| !name.is_empty());
    let volume = volume.ok_or_else(|| {
        Problem(format!("persistentvolumeclaim {name:?} is not bound to a volume yet"))
    })?;
    let found = Api::<PersistentVolume>::all(client.clone()).get_opt(&volume).await;
    let found = found.map_err(unreadable)?;
    let spec = found
        .and_then(|found| found.spec)
        .ok_or_else(|| Problem(format!("persistentvolume {volume:?} not found")))?;
    let path = spec.host_path.map(|one| one.path).or(spec.local.map(|one| one.path));
    path.map(PathBuf::from).ok_or_else(|| {
        Problem(format!(
            "persistentvolume {volume:?} is neither hostPath nor local: this node has no other sort"
        ))
    })
}

//! The custom resource definitions of a manager, at its start: installed, or used as they are where
//! this process may not write them. One that is missing ends no start, nor does an API that is away: its
//! source waits for it, and it is tried again in the background.
//!
//! What this process was not allowed at its start it installs later only where there is no such
//! definition yet: permissions often come after those who need them, and so do newer programs, whose
//! definition must not be replaced by an older one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;

use crate::Env;
use crate::crd;
use crate::error::{Error, Result};
use crate::kind::Kind;
use crate::queue::Backoff;

/// How long a start waits for the API to take its definitions, and then to serve them.
const ESTABLISH: Duration = Duration::from_secs(60);
/// So long one of several is tried at least, however long the others took.
const AT_LEAST: Duration = Duration::from_secs(5);
/// How long who may not write a definition waits before it tries again.
const AGAIN: Backoff = Backoff {
    first: Duration::from_secs(5),
    factor: 2.0,
    max: Duration::from_secs(10 * 60),
    jitter: 0.5,
};
/// The same where the API was away.
const SOON: Backoff = Backoff {
    first: Duration::from_secs(1),
    factor: 2.0,
    max: Duration::from_secs(30),
    jitter: 0.5,
};

/// The definitions of a manager, once they are established or known to be missing.
#[derive(Debug)]
pub(super) struct Definitions {
    installed: Vec<CustomResourceDefinition>,
    pub(super) missing: AllMissing,
}

/// The definitions that this process has not installed, as long as they are not there.
#[derive(Debug, Clone, Default)]
pub(super) struct AllMissing(Arc<Mutex<Vec<Missing>>>);

#[derive(Debug, Clone)]
struct Missing {
    definition: CustomResourceDefinition,
    /// This process was refused it once, so what is there is not its to change any more.
    is_refused: bool,
    /// What the API said.
    why: String,
}

/// What the API has of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    /// One that does not serve all of our versions: an older or a newer one.
    Another,
    Ours,
}

impl Definitions {
    /// Installs all of them, but for those that somebody else has to, and those for which the API has
    /// no time.
    ///
    /// # Errors
    /// As [`crd::establish`], when a definition is refused for what it says.
    pub(super) async fn establish(
        client: &kube::Client,
        env: &Env,
        definitions: Vec<CustomResourceDefinition>,
    ) -> Result<Self> {
        let mut all = Self { installed: Vec::new(), missing: AllMissing::default() };
        let began = env.instant();
        for definition in definitions {
            let left = left(env, began);
            match crd::establish(client, env, &definition, left).await {
                Ok(()) => all.installed.push(definition),
                Err(error) if error.is_forbidden() => {
                    let (why, name) = (error.chain(), name(&definition));
                    if look(client, &definition).await.is_ok_and(|it| it == There::Ours) {
                        tracing::warn!(
                            definition = name,
                            why,
                            "this process may not bring it up to date: it is used as it is installed"
                        );
                        continue;
                    }
                    tracing::warn!(
                        definition = name,
                        why,
                        "this process may not install it: it is waited for"
                    );
                    all.missing.lock().push(Missing { definition, is_refused: true, why });
                }
                Err(error @ Error::Transient(_)) => {
                    let why = error.chain();
                    let name = name(&definition);
                    tracing::warn!(definition = name, why, "it is installed as soon as may be");
                    all.missing.lock().push(Missing { definition, is_refused: false, why });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Waits until those that were installed are served, or for a minute: their sources wait on.
    ///
    /// # Errors
    /// As [`crd::serve`].
    pub(super) async fn serve(&self, client: &kube::Client, env: &Env) -> Result<()> {
        let began = env.instant();
        for definition in &self.installed {
            match crd::serve(client, env, definition, left(env, began)).await {
                Err(error @ Error::Transient(_)) => {
                    let (definition, why) = (name(definition), error.chain());
                    tracing::warn!(definition, why, "installed and not served yet");
                }
                ended => ended?,
            }
        }
        Ok(())
    }
}

impl AllMissing {
    /// Tries to install them, until none is left.
    pub(super) async fn insist(self, client: kube::Client, env: Env) {
        let all = self.lock().clone();
        join_all(all.into_iter().map(|one| self.insist_on(one, &client, &env))).await;
    }

    async fn insist_on(&self, mut one: Missing, client: &kube::Client, env: &Env) {
        let mut failures = 0;
        loop {
            let pace = if one.is_refused { AGAIN } else { SOON };
            env.sleep(pace.delay(failures, env.random_unit())).await;
            failures += 1;
            if one.is_refused {
                match look(client, &one.definition).await {
                    Ok(There::Nothing) => {}
                    Ok(There::Ours) => {
                        let definition = name(&one.definition);
                        tracing::info!(definition, "installed by somebody else, and used as it is");
                        break;
                    }
                    // Nobody is asked to replace it, and who cannot look does not write either.
                    Ok(There::Another) | Err(_) => continue,
                }
            }
            match crd::establish(client, env, &one.definition, ESTABLISH).await {
                Ok(()) => {
                    tracing::info!(definition = name(&one.definition), "installed after all");
                    break;
                }
                Err(error) => {
                    if error.is_forbidden() && !one.is_refused {
                        (one.is_refused, failures) = (true, 0);
                    }
                    one.why = error.chain();
                    self.note_down(&one);
                }
            }
        }
        self.lock().retain(|other| name(&other.definition) != name(&one.definition));
    }

    fn note_down(&self, one: &Missing) {
        let mut all = self.lock();
        let same = |other: &&mut Missing| name(&other.definition) == name(&one.definition);
        all.iter_mut().filter(same).for_each(|other| other.clone_from(one));
    }

    /// What there is to say of a source of that kind that does not work: whoever may not install its
    /// definition waits for others.
    pub(super) fn note(&self, kind: &Kind) -> Option<String> {
        let all = self.lock();
        let is_it = |Missing { definition, is_refused, .. }: &&Missing| {
            let names = &definition.spec.names;
            *is_refused && definition.spec.group == kind.group() && names.kind == kind.kind()
        };
        let Missing { definition, why, .. } = all.iter().find(is_it)?;
        Some(format!("this process may not install {}: {why}", name(definition)))
    }

    /// Those that this process is about to install, and why it has not yet.
    pub(super) fn due(&self) -> Vec<(String, String)> {
        let all = self.lock();
        let due = all.iter().filter(|one| !one.is_refused);
        due.map(|one| (name(&one.definition).to_owned(), one.why.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Missing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(definition: &CustomResourceDefinition) -> &str {
    definition.metadata.name.as_deref().unwrap_or_default()
}

/// What is left of a minute that began then.
fn left(env: &Env, began: tokio::time::Instant) -> Duration {
    ESTABLISH.saturating_sub(env.instant().saturating_duration_since(began)).max(AT_LEAST)
}

/// What the API has of it. Whoever may read no definitions may still ask what is served.
///
/// # Errors
/// When the API does not say.
async fn look(client: &kube::Client, definition: &CustomResourceDefinition) -> Result<There> {
    let spec = &definition.spec;
    let mut is_ours = true;
    for version in spec.versions.iter().filter(|version| version.served) {
        let version = format!("{}/{}", spec.group, version.name);
        is_ours = is_ours && is_served(client, &version, definition).await?;
    }
    if is_ours {
        return Ok(There::Ours);
    }
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let is_there = match api.get_opt(name(definition)).await.map_err(Error::from) {
        Ok(found) => found.is_some(),
        Err(error) if error.is_forbidden() => {
            let groups = client.list_api_groups().await?.groups.into_iter();
            let versions = groups.filter(|group| group.name == spec.group);
            let mut is_there = false;
            for version in versions.flat_map(|group| group.versions) {
                is_there =
                    is_there || is_served(client, &version.group_version, definition).await?;
            }
            is_there
        }
        Err(error) => return Err(error),
    };
    Ok(if is_there { There::Another } else { There::Nothing })
}

/// Whether the API knows the kind in that `group/version`.
async fn is_served(
    client: &kube::Client,
    version: &str,
    definition: &CustomResourceDefinition,
) -> Result<bool> {
    let kind = &definition.spec.names.kind;
    match client.list_api_group_resources(version).await {
        Ok(known) => Ok(known.resources.iter().any(|resource| resource.kind == *kind)),
        Err(kube::Error::Api(no)) if no.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

//! The custom resource definitions of a manager, at its start: installed, or used as they are where
//! this process may not write them. One that is missing ends no start: its source waits for it, and who
//! may not write tries again, ever more seldom: permissions often come after those who need them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::Env;
use crate::crd;
use crate::error::Result;
use crate::kind::Kind;
use crate::queue::Backoff;

/// How long a start waits for the API to serve a definition.
const ESTABLISH: Duration = Duration::from_secs(60);
/// How long who may not write a definition waits before it tries again.
const AGAIN: Backoff = Backoff {
    first: Duration::from_secs(5),
    factor: 2.0,
    max: Duration::from_secs(10 * 60),
    jitter: 0.5,
};

/// The definitions of a manager, once they are established.
#[derive(Debug)]
pub(super) struct Definitions {
    installed: Vec<CustomResourceDefinition>,
    pub(super) refused: AllRefused,
}

/// The definitions that the API did not let this process write, as long as it does not.
#[derive(Debug, Clone, Default)]
pub(super) struct AllRefused(Arc<Mutex<Vec<Refused>>>);

#[derive(Debug, Clone)]
struct Refused {
    definition: CustomResourceDefinition,
    /// What the API said.
    why: String,
}

impl Definitions {
    /// Installs all of them, but for those that somebody else has to.
    ///
    /// # Errors
    /// As [`crd::establish`], unless this process is not allowed to.
    pub(super) async fn establish(
        client: &kube::Client,
        env: &Env,
        definitions: Vec<CustomResourceDefinition>,
    ) -> Result<Self> {
        let mut all = Self { installed: Vec::new(), refused: AllRefused::default() };
        for definition in definitions {
            match crd::establish(client, env, &definition, ESTABLISH).await {
                Ok(()) => all.installed.push(definition),
                Err(error) if error.answer().is_some_and(|no| no.code == 403) => {
                    let why = error.chain();
                    let name = name(&definition);
                    if is_served(client, &definition).await {
                        tracing::warn!(
                            definition = name,
                            why,
                            "this process may not bring it up to date: it is used as it is installed"
                        );
                    } else {
                        tracing::warn!(
                            definition = name,
                            why,
                            "this process may not install it: it is waited for"
                        );
                    }
                    all.refused.lock().push(Refused { definition, why });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Waits until those that were installed are served.
    ///
    /// # Errors
    /// As [`crd::serve`].
    pub(super) async fn serve(&self, client: &kube::Client, env: &Env) -> Result<()> {
        for definition in &self.installed {
            crd::serve(client, env, definition, ESTABLISH).await?;
        }
        Ok(())
    }
}

impl AllRefused {
    /// Tries to install them, until none is left.
    pub(super) async fn insist(self, client: kube::Client, env: Env) {
        for failures in 0_u32.. {
            let left = self.lock().clone();
            if left.is_empty() {
                return;
            }
            env.sleep(AGAIN.delay(failures, env.random_unit())).await;
            let mut refused = Vec::new();
            for Refused { definition, .. } in left {
                match crd::establish(&client, &env, &definition, ESTABLISH).await {
                    Ok(()) => tracing::info!(definition = name(&definition), "installed after all"),
                    Err(error) => refused.push(Refused { definition, why: error.chain() }),
                }
            }
            *self.lock() = refused;
        }
    }

    /// What there is to say of a source of that kind that does not work.
    pub(super) fn note(&self, kind: &Kind) -> Option<String> {
        let all = self.lock();
        let is_it = |Refused { definition, .. }: &&Refused| {
            definition.spec.group == kind.group() && definition.spec.names.kind == kind.kind()
        };
        let Refused { definition, why } = all.iter().find(is_it)?;
        Some(format!("this process may not install {}: {why}", name(definition)))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Refused>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(definition: &CustomResourceDefinition) -> &str {
    definition.metadata.name.as_deref().unwrap_or_default()
}

/// Whether the API knows every version of it. Whoever may read no objects may still ask what there is.
async fn is_served(client: &kube::Client, definition: &CustomResourceDefinition) -> bool {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let found = Kind::discover(client, &spec.group, &version.name, &spec.names.kind).await;
        if found.is_err() {
            return false;
        }
    }
    true
}

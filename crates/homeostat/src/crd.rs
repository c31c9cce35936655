//! Installs custom resource definitions: applies one and waits until the API serves it.
//! [`crate::Manager::with_crd`] does so at the start of a program; this is for tests, and for programs
//! that install and nothing else.
//!
//! ```
//! use homeostat::kube::{CustomResource, CustomResourceExt};
//! use homeostat::{Kind, crd};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, CustomResource, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Lamp", namespaced)]
//! struct LampSpec {
//!     is_on: bool,
//! }
//!
//! # homeostat_testing::on_cluster(async |cluster| {
//! # let (client, env) = (cluster.client.clone(), cluster.env.clone());
//! crd::install::<Lamp>(&client).await.unwrap();
//! crd::wait_until_served(&client, &env, &Lamp::crd()).await.unwrap();
//! let found = Kind::discover(&client, "example.com", "v1", "Lamp").await.unwrap();
//! assert_eq!(found, Kind::of::<Lamp>());
//! # });
//! ```

use std::time::Duration;

use futures::TryStreamExt;
use homeostat_env::Env;
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::CustomResourceExt;
use kube::api::{Api, Patch, PatchParams, WatchEvent, WatchParams};

use crate::client::{is_told, told_to_wait};
use crate::error::{Error, Result};
use crate::kind::Kind;

/// The field manager that owns what [`install`] applies.
const MANAGER: &str = "homeostat";

/// Applies the definition of `K` and returns once it is established, however long that takes.
///
/// # Errors
/// The API refuses the definition (somebody may not, or another definition has its names), this process
/// may not watch definitions, or the connection fails. Nothing is retried here.
pub async fn install<K: CustomResourceExt>(client: &kube::Client) -> Result<()> {
    apply(client, K::crd()).await
}

/// Applies `definition` and returns once it is established.
///
/// # Errors
/// As [`install`].
pub async fn apply(client: &kube::Client, definition: CustomResourceDefinition) -> Result<()> {
    let definition = pointing_at_names(definition);
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::apply(MANAGER).force();
    let mut current = api.patch(&name, &params, &Patch::Apply(&definition)).await?;
    loop {
        if established(&current)? {
            tracing::debug!(definition = name, "served");
            return Ok(());
        }
        let revision = current.metadata.resource_version.clone().unwrap_or_default();
        match next_change(&api, &name, &revision).await.map_err(unseen)? {
            Some(changed) => current = changed,
            // The watch ended without a change (its time was up, or its start is too old).
            None => current = api.get(&name).await.map_err(|error| unseen(error.into()))?,
        }
    }
}

/// What became of a definition that was written cannot be seen: no refusal of the definition.
#[derive(Debug, thiserror::Error)]
#[error("it is written, and this process may not see whether it is established: {0}")]
struct Unseen(String);

/// An error of looking at a definition that was written.
fn unseen(error: Error) -> Error {
    if error.is_forbidden() { Error::transient(Unseen(error.chain())) } else { error }
}

/// The same definition, where a rule about the name of an object says so: without a `fieldPath`, whoever
/// breaks it is told of `<nil>`. The path has to be part of the schema, which may restrict of the metadata
/// only the name.
fn pointing_at_names(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas = definition
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for schema in schemas {
        let rules = schema.x_kubernetes_validations.iter_mut().flatten();
        let about_names: Vec<_> = rules
            .filter(|rule| rule.rule.contains("self.metadata.name") && rule.field_path.is_none())
            .map(|rule| rule.field_path = Some(".metadata.name".to_owned()))
            .collect();
        if !about_names.is_empty() {
            let of = |type_: &str| JSONSchemaProps {
                type_: Some(type_.to_owned()),
                ..JSONSchemaProps::default()
            };
            let fields = schema.properties.get_or_insert_default();
            let metadata = fields.entry("metadata".to_owned()).or_insert_with(|| of("object"));
            let fields = metadata.properties.get_or_insert_default();
            fields.entry("name".to_owned()).or_insert_with(|| of("string"));
        }
    }
    definition
}

/// Applies `definition` and waits until it is established. An API that cannot be reached, or has no
/// time, is asked again: a process that starts before its API is no broken one. Who may not watch
/// definitions applies it again and looks at the answer.
///
/// # Errors
/// As [`install`]; a transient one once `limit` is over, with what the API said last.
pub(crate) async fn establish(
    client: &kube::Client,
    env: &Env,
    definition: &CustomResourceDefinition,
    limit: Duration,
) -> Result<()> {
    let apply = || apply(client, definition.clone());
    until(env, definition, limit, "established", apply).await
}

/// Waits until an established definition is served. Whoever converts its objects has to answer by
/// now: kube-apiserver serves a version once it has read all objects in it.
///
/// # Errors
/// When the connection fails for good; a transient one once `limit` is over, with what the API said last.
pub(crate) async fn serve(
    client: &kube::Client,
    env: &Env,
    definition: &CustomResourceDefinition,
    limit: Duration,
) -> Result<()> {
    let wait = || wait_until_served(client, env, definition);
    until(env, definition, limit, "served", wait).await
}

/// Tries until it works, fails for good, or `limit` is over.
async fn until<F: Future<Output = Result<()>>>(
    env: &Env,
    definition: &CustomResourceDefinition,
    limit: Duration,
    what: &str,
    attempt: impl Fn() -> F,
) -> Result<()> {
    let name = definition.metadata.name.as_deref().unwrap_or_default();
    let mut last = None;
    let done = async {
        loop {
            match Box::pin(attempt()).await {
                Err(error) if error.may_pass() || is_unseen(&error) => {
                    let why = error.chain();
                    if is_told(&error) {
                        tracing::debug!(definition = name, error = why, "not {what} yet");
                    } else {
                        tracing::warn!(definition = name, error = why, "not {what} yet");
                    }
                    last = Some(why);
                    let told = match &error {
                        Error::Api(error) => told_to_wait(error),
                        _ => Duration::ZERO,
                    };
                    env.sleep(told.max(Duration::from_secs(1))).await;
                }
                ended => return ended,
            }
        }
    };
    env.timeout(limit, done).await.unwrap_or_else(|_| {
        let why = last.map(|last| format!(": {last}")).unwrap_or_default();
        Err(Error::transient(format!("{name} was not {what} within {limit:?}{why}")))
    })
}

fn is_unseen(error: &Error) -> bool {
    matches!(error, Error::Transient(cause) if cause.is::<Unseen>())
}

/// Waits until the API answers for every version of an established definition. kube-apiserver does
/// so a moment after it says that it does, and no event tells of it: it is asked until then.
///
/// # Errors
/// When the connection fails.
pub async fn wait_until_served(
    client: &kube::Client,
    env: &Env,
    definition: &CustomResourceDefinition,
) -> Result<()> {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let (names, namespaced) = (&spec.names, spec.scope == "Namespaced");
        let kind = Kind::new(&spec.group, &version.name, &names.kind, &names.plural, namespaced);
        let mut delay = Duration::from_millis(10);
        while !is_served(client, &kind).await? {
            env.sleep(delay).await;
            delay = (delay * 2).min(Duration::from_secs(1));
        }
    }
    Ok(())
}

/// Whether the API knows the kind; that somebody may not list it is an answer too. It is asked out
/// of its cache, which watches need and which it fills last; and for one object, which need not be
/// there, because a cache takes no limits.
async fn is_served(client: &kube::Client, kind: &Kind) -> Result<bool> {
    let query = "resourceVersion=0&fieldSelector=metadata.name%3Dnobody";
    let request = Request::get(format!("{}?{query}", kind.path(None))).body(Vec::new());
    match client.request_text(request.map_err(Error::terminal)?).await {
        Err(kube::Error::Api(status)) => Ok(!matches!(status.code, 404 | 429 | 503)),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

async fn next_change(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    revision: &str,
) -> Result<Option<CustomResourceDefinition>> {
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(api.watch(&params, revision).await?);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(changed) | WatchEvent::Modified(changed) => return Ok(Some(changed)),
            WatchEvent::Deleted(_) => {
                return Err(Error::transient(format!("definition {name} was deleted")));
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    Ok(None)
}

fn established(definition: &CustomResourceDefinition) -> Result<bool> {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_ref());
    let status_of =
        |type_: &str| conditions.into_iter().flatten().find(|condition| condition.type_ == type_);
    if let Some(refused) = status_of("NamesAccepted").filter(|c| c.status == "False") {
        let message = refused.message.clone().unwrap_or_default();
        return Err(Error::terminal(format!("definition not accepted: {message}")));
    }
    Ok(status_of("Established").is_some_and(|condition| condition.status == "True"))
}

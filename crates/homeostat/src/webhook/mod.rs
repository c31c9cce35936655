//! Webhooks: the API asks before it writes (admission), and when a kind has several versions
//! (conversion). The server is HTTPS, begins to answer before any cache is filled (a list of a kind
//! that is converted asks it), and answers until the caches are stopped.
//!
//! It serves; who is to ask it is said in a `ValidatingWebhookConfiguration`, a
//! `MutatingWebhookConfiguration` or a `CustomResourceDefinition`, with the paths of
//! [`validate_path`], [`mutate_path`] and [`CONVERT_PATH`]: those of controller-runtime. Whom they are
//! to trust is said there too, by hand, by another operator, or by this one ([`SelfSigned`]).
//!
//! ```no_run
//! use homeostat::k8s_openapi::api::core::v1::ConfigMap;
//! use homeostat::webhook::{Answer, Certificate, Review, Webhooks};
//! use homeostat::{Manager, Result};
//!
//! async fn not_empty(review: Review<ConfigMap>) -> Result<Answer> {
//!     Ok(match review.object {
//!         Some(config) if config.data.is_none() => Answer::deny("say something"),
//!         _ => Answer::allow(),
//!     })
//! }
//!
//! # async fn example() -> Result<()> {
//! let webhooks = Webhooks::new(([0, 0, 0, 0], 9443), Certificate::folder("/certificates"))
//!     .validates(not_empty);
//! Manager::from_env().await?.webhooks(webhooks).run().await
//! # }
//! ```

mod bundle;
mod certificate;
mod converse;
mod conversion;
mod current;
mod keep;
mod papers;
mod review;
mod self_signed;
mod serve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

pub use certificate::Certificate;
use converse::Site;
pub use conversion::Conversion;
use conversion::Ways;
use current::Current;
pub use review::{Answer, Operation, Review};
pub use self_signed::SelfSigned;
pub(crate) use serve::{Observer, Serving};

use crate::Env;
use crate::cache::Caches;
use crate::error::{Error, Result};
use crate::kind::{Kind, Object};
use crate::metrics::Metrics;

/// Where conversions are asked for.
pub const CONVERT_PATH: &str = "/convert";

/// From the body of a question to that of its answer.
type Handler = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// Where the API asks whether a write of `K` may happen: `/validate-<group>-<version>-<kind>`.
#[must_use]
pub fn validate_path<K: Object>() -> String {
    path("validate", &Kind::of::<K>())
}

/// Where the API asks how a write of `K` should happen: `/mutate-<group>-<version>-<kind>`.
#[must_use]
pub fn mutate_path<K: Object>() -> String {
    path("mutate", &Kind::of::<K>())
}

fn path(verb: &str, kind: &Kind) -> String {
    let group = kind.group().replace('.', "-");
    let api_version = kind.api_version();
    let version = api_version.rsplit('/').next().unwrap_or_default();
    format!("/{verb}-{group}-{version}-{}", kind.kind().to_lowercase())
}

/// What a manager answers to the API, for [`crate::Manager::webhooks`].
#[derive(Clone)]
pub struct Webhooks {
    address: SocketAddr,
    certificate: Certificate,
    handlers: Vec<(String, Handler)>,
    conversions: Vec<Ways>,
}

impl Webhooks {
    /// Answers nothing yet. Port 0 takes any free one; see [`crate::Running::webhook_address`].
    pub fn new(address: impl Into<SocketAddr>, certificate: Certificate) -> Self {
        let (handlers, conversions) = (Vec::new(), Vec::new());
        Self { address: address.into(), certificate, handlers, conversions }
    }

    /// Says whether a write may happen, at [`validate_path`]. An error is no answer: the API does
    /// what the configuration's `failurePolicy` says. An answer that changes the object is an error.
    #[must_use]
    pub fn validates<K, F, Fut>(self, handler: F) -> Self
    where
        K: Object,
        F: Fn(Review<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Answer>> + Send + 'static,
    {
        self.handles(validate_path::<K>(), false, handler)
    }

    /// Says how a write should happen, at [`mutate_path`]. It is not asked about deletions, which
    /// have nothing to change.
    #[must_use]
    pub fn mutates<K, F, Fut>(self, handler: F) -> Self
    where
        K: Object,
        F: Fn(Review<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Answer>> + Send + 'static,
    {
        self.handles(mutate_path::<K>(), true, handler)
    }

    /// Converts the versions of a kind, at [`CONVERT_PATH`].
    #[must_use]
    pub fn converts<Hub>(mut self, conversion: Conversion<Hub>) -> Self {
        self.conversions.push(conversion.ways);
        self
    }

    fn handles<K, F, Fut>(mut self, path: String, mutating: bool, handler: F) -> Self
    where
        K: Object,
        F: Fn(Review<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Answer>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let ask = move |body: Bytes| {
            let handler = handler.clone();
            async move {
                let question = review::Question::parse(&body)?;
                if mutating && !question.has_object() {
                    return question.answer::<K>(Answer::allow());
                }
                let answer = handler(question.review::<K>()?).await?;
                if !mutating && answer.is_change() {
                    return Err(Error::terminal("a validating webhook cannot change the object"));
                }
                question.answer::<K>(answer)
            }
            .boxed()
        };
        self.handlers.push((path, Arc::new(ask)));
        self
    }

    /// Begins to answer.
    pub(crate) async fn serve(
        self,
        client: &kube::Client,
        caches: &Caches,
        env: &Env,
        metrics: &Metrics,
    ) -> Result<Serving> {
        let Self { address, certificate, .. } = self.clone();
        let handlers = Arc::new(self.site()?);
        let certificate = Current::load(certificate, client, env.clone()).await?;
        let certificate = Arc::new(certificate);
        let site = Site { handlers, env: env.clone(), metrics: metrics.clone() };
        let serving = serve::listen(address, certificate.clone(), site).await?;
        if let Some(own) = certificate.self_signed().cloned() {
            let (client, caches, env) = (client.clone(), caches.clone(), env.clone());
            serving.beside(own.keep(client, caches, env, certificate));
        }
        Ok(serving)
    }

    /// Every path and what answers there.
    fn site(self) -> Result<BTreeMap<String, Handler>> {
        let mut site = BTreeMap::new();
        for (path, handler) in self.handlers {
            if site.insert(path.clone(), handler).is_some() {
                return Err(Error::terminal(format!("two webhooks answer at {path}")));
            }
        }
        let kinds = self.conversions.iter().map(|ways| (&ways.group, &ways.kind));
        let mut seen = std::collections::BTreeSet::new();
        if let Some((group, kind)) = kinds.clone().find(|kind| !seen.insert(*kind)) {
            return Err(Error::terminal(format!("{kind}.{group} is converted twice")));
        }
        if !self.conversions.is_empty() {
            let all = Arc::new(self.conversions);
            let convert = move |body: Bytes| {
                let all = all.clone();
                async move { conversion::answer(&all, &body) }.boxed()
            };
            site.insert(CONVERT_PATH.to_owned(), Arc::new(convert));
        }
        Ok(site)
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<&String> = self.handlers.iter().map(|(path, _)| path).collect();
        f.debug_struct("Webhooks")
            .field("address", &self.address)
            .field("paths", &paths)
            .field("conversions", &self.conversions)
            .finish_non_exhaustive()
    }
}

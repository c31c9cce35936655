//! Certificates that the webhook server makes for itself: kept in a Secret that all replicas share,
//! renewed in time, and told to whoever is to ask the server. Here is what a user says of them, and
//! how the Secret is read and written; it never does so by itself, see [`super::keep`].

use std::fmt;
use std::time::Duration;

use homeostat_env::Env;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};

use super::papers::{Papers, Terms};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kind::Kind;

/// How long a certificate is good unless told otherwise.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// So often a write that met somebody else's is tried again at once.
const TRIES: u32 = 5;

/// A certificate that the server makes for itself, signed by an authority of its own; opt in with
/// [`super::Certificate::self_signed`].
///
/// Authority and certificate are in a Secret, so that replicas share them and restarts keep them.
/// A certificate is renewed when a third of its life is left. The authority, which lives four times
/// as long, is renewed likewise; the one before it stays trusted for its time. The authority is
/// written into the `caBundle` of every webhook of the configurations named here, and put back
/// when somebody takes it out: at once, and further and further apart when it is taken out again and
/// again.
///
/// Replicas that are reached by different names, as in a rolling update that adds one, share a
/// certificate for all of them: each one's own, and 64 of the others'.
///
/// While the API is away at the start, the server has no certificate and answers nobody, and the
/// readiness says so. Later it says so when Secret and configurations could not be followed for two
/// minutes; the certificate stays in use.
///
/// It takes the permission to get, list, watch, create and update the Secret, and to get, list, watch
/// and update the configurations; the readiness says what is missing.
///
/// ```
/// use homeostat::webhook::{Certificate, SelfSigned, Webhooks};
///
/// let certificate = SelfSigned::in_secret("operators", "web-webhook")
///     .service("operators", "web")
///     .validating("web.example.com");
/// let webhooks = Webhooks::new(([0, 0, 0, 0], 9443), Certificate::self_signed(certificate));
/// ```
#[derive(Clone)]
pub struct SelfSigned {
    pub(super) secret: Key,
    names: Vec<String>,
    lifetime: Duration,
    /// Who is told whom to trust.
    pub(super) told: Vec<(Kind, String)>,
}

/// Papers that are good now.
pub(super) struct Kept {
    pub(super) papers: Papers,
    /// When they are to be renewed.
    pub(super) due: Timestamp,
    /// Whether they were renewed just now, and so written into the Secret.
    pub(super) is_renewed: bool,
}

impl SelfSigned {
    /// Keeps its papers in that Secret, which is made when it is not there.
    #[must_use]
    pub fn in_secret(namespace: &str, name: &str) -> Self {
        let secret = Key::namespaced(namespace, name);
        Self { secret, names: Vec::new(), lifetime: LIFETIME, told: Vec::new() }
    }

    /// The server is reached through that Service.
    #[must_use]
    pub fn service(self, namespace: &str, name: &str) -> Self {
        let inside = format!("{name}.{namespace}.svc");
        let outside = format!("{inside}.cluster.local");
        self.host(&inside).host(&outside)
    }

    /// The server is reached by that host name or address. One that a restart changes, as a Pod's
    /// address, takes a new certificate each time.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// How long a certificate is good; 90 days by default.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Tells that ValidatingWebhookConfiguration whom to trust; one that is not there yet is told
    /// when it comes.
    #[must_use]
    pub fn validating(self, name: &str) -> Self {
        self.tells(Kind::of::<ValidatingWebhookConfiguration>(), name)
    }

    /// The same for a MutatingWebhookConfiguration.
    #[must_use]
    pub fn mutating(self, name: &str) -> Self {
        self.tells(Kind::of::<MutatingWebhookConfiguration>(), name)
    }

    /// The same for a CustomResourceDefinition whose versions are converted by a webhook.
    #[must_use]
    pub fn converting(self, name: &str) -> Self {
        self.tells(Kind::of::<CustomResourceDefinition>(), name)
    }

    fn tells(mut self, kind: Kind, name: &str) -> Self {
        self.told.push((kind, name.to_owned()));
        self
    }

    /// Papers that are good now, from the Secret or into it.
    ///
    /// # Errors
    /// When the Secret cannot be read or written, or no certificate can be made for these names.
    pub(super) async fn papers(&self, client: &kube::Client, env: &Env) -> Result<Kept> {
        if self.names.is_empty() {
            return Err(Error::terminal("a self-signed certificate needs a service or a host"));
        }
        let namespace = self.secret.namespace().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let terms = Terms { names: &self.names, lifetime: self.lifetime };
        for _ in 0..TRIES {
            let secret = api.get_opt(self.secret.name()).await?;
            let data = secret.as_ref().and_then(|secret| secret.data.as_ref());
            let old = data.and_then(Papers::read);
            let (papers, due) =
                Papers::renewed(old.clone(), &terms, env).map_err(Error::terminal)?;
            if old.as_ref() == Some(&papers) {
                return Ok(Kept { papers, due, is_renewed: false });
            }
            let is_new = secret.is_none();
            let mut secret = secret.unwrap_or_default();
            secret.metadata.name = Some(self.secret.name().to_owned());
            secret.data.get_or_insert_default().extend(papers.write());
            let params = PostParams::default();
            let written = if is_new {
                secret.type_ = Some("kubernetes.io/tls".to_owned());
                api.create(&params, &secret).await
            } else {
                // Guarded by the version that was read: of two replicas one renews.
                api.replace(self.secret.name(), &params, &secret).await
            };
            match written.map_err(Error::from) {
                Ok(_) => {
                    tracing::info!(secret = %self.secret, "the certificate was renewed");
                    return Ok(Kept { papers, due, is_renewed: true });
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::transient(format!("Secret {} is written by others all the time", self.secret)))
    }
}

impl fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfSigned")
            .field("secret", &format_args!("{}", self.secret))
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

//! Service account tokens: asked for once, kept until most of their life is over.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_env::Env;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use kube::api::{Api, PostParams};

/// The life of a token whose volume names none, in seconds.
const DEFAULT_LIFE: i64 = 3600;
/// No token is kept longer than this.
const LONGEST_USE: SignedDuration = SignedDuration::from_hours(24);
/// How long to wait before a renewal is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// A token as a volume asks for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanted {
    audience: Option<String>,
    seconds: i64,
}

impl Wanted {
    pub(super) fn by(source: &ServiceAccountTokenProjection) -> Self {
        let audience = source.audience.clone().filter(|audience| !audience.is_empty());
        Self { audience, seconds: source.expiration_seconds.unwrap_or(DEFAULT_LIFE) }
    }
}

/// The tokens of one Pod.
#[derive(Debug, Default)]
pub struct Tokens(BTreeMap<Wanted, Held>);

#[derive(Debug)]
struct Held {
    token: String,
    renew: Timestamp,
    expires: Timestamp,
}

impl Tokens {
    /// When the first of them is to be renewed.
    #[must_use]
    pub fn renewal(&self) -> Option<Timestamp> {
        self.0.values().map(|held| held.renew).min()
    }

    /// A token that is good for a while; `Err` says why there is none.
    pub(super) async fn get(
        &mut self,
        client: &kube::Client,
        env: &Env,
        pod: &Pod,
        wanted: &Wanted,
    ) -> Result<String, String> {
        let asked = env.now();
        if let Some(held) = self.0.get(wanted).filter(|held| asked < held.renew) {
            return Ok(held.token.clone());
        }
        match (request(client, pod, wanted).await, self.0.get_mut(wanted)) {
            (Ok((token, expires)), _) => {
                let renew = renewal(asked, expires);
                self.0.insert(wanted.clone(), Held { token: token.clone(), renew, expires });
                Ok(token)
            }
            (Err(error), Some(held)) if asked < held.expires => {
                tracing::warn!(%error, "a service account token could not be renewed yet");
                held.renew = asked.saturating_add(RETRY).unwrap_or(Timestamp::MAX);
                Ok(held.token.clone())
            }
            (Err(error), _) => {
                self.0.remove(wanted);
                Err(format!("failed to fetch token: {error}"))
            }
        }
    }
}

/// When four fifths of a token's life are over, or a day.
fn renewal(issued: Timestamp, expires: Timestamp) -> Timestamp {
    let use_for = (expires.duration_since(issued) * 4 / 5).min(LONGEST_USE);
    issued.saturating_add(use_for).unwrap_or(Timestamp::MAX)
}

/// Asks for a token that is good for as long as the Pod is there.
async fn request(
    client: &kube::Client,
    pod: &Pod,
    wanted: &Wanted,
) -> Result<(String, Timestamp), String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
    let spec = TokenRequestSpec {
        audiences: wanted.audience.clone().map(|audience| vec![audience]),
        expiration_seconds: Some(wanted.seconds),
        bound_object_ref: Some(BoundObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
        }),
    };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let status = answer.status.unwrap_or_default();
    let token = status.token.zip(status.expiration_timestamp.map(|time| time.0));
    token.ok_or_else(|| "the API answered without a token".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_life_and_at_least_daily() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert_eq!(renewal(at(0), at(1000)), at(800));
        assert_eq!(renewal(at(0), at(1_000_000)), at(86_400));
    }
}

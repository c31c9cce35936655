//! Tells a configuration whom its webhooks are to trust: the `caBundle` of each, and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::error::Result;
use crate::kind::Kind;

/// How a configuration was found.
pub(super) enum Told {
    /// There is none.
    Missing,
    /// It had the bundle already.
    Before,
    /// The bundle was written into it.
    Now,
}

/// Writes the bundle where it is not yet.
///
/// # Errors
/// What the API says; a conflict when somebody else wrote meanwhile.
pub(super) async fn tell(
    client: &kube::Client,
    kind: &Kind,
    name: &str,
    bundle: &str,
) -> Result<Told> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.api_resource());
    let Some(mut configuration) = api.get_opt(name).await? else { return Ok(Told::Missing) };
    if !put(&mut configuration.data, &STANDARD.encode(bundle)) {
        return Ok(Told::Before);
    }
    api.replace(name, &PostParams::default(), &configuration).await?;
    tracing::info!(%kind, name, "its webhooks trust the certificate");
    Ok(Told::Now)
}

/// Puts the bundle into every webhook; whether that changes anything.
fn put(configuration: &mut Value, bundle: &str) -> bool {
    let mut changed = false;
    let mut put = |client: &mut Value| {
        if client["caBundle"] != bundle {
            client["caBundle"] = json!(bundle);
            changed = true;
        }
    };
    if let Some(webhooks) = configuration.get_mut("webhooks").and_then(Value::as_array_mut) {
        webhooks.iter_mut().filter_map(|one| one.get_mut("clientConfig")).for_each(&mut put);
    }
    if let Some(client) = configuration.pointer_mut("/spec/conversion/webhook/clientConfig") {
        put(client);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_webhook_gets_the_bundle_once_and_nothing_else_changes() {
        let mut configuration = json!({ "webhooks": [
            { "name": "a", "clientConfig": { "url": "https://a" } },
            { "name": "b", "clientConfig": { "url": "https://b", "caBundle": "old" } },
        ] });
        assert!(put(&mut configuration, "new"));
        assert!(!put(&mut configuration, "new"));
        assert_eq!(configuration["webhooks"][1]["clientConfig"]["caBundle"], "new");
        assert_eq!(configuration["webhooks"][0]["clientConfig"]["url"], "https://a");

        let mut definition = json!({ "spec": { "conversion": { "strategy": "Webhook",
            "webhook": { "clientConfig": {} } } } });
        assert!(put(&mut definition, "new"));
        assert!(!put(&mut json!({ "spec": { "conversion": { "strategy": "None" } } }), "new"));
    }
}

//! Greeting: the operator that `docs/first-operator.md` builds step by step.

use std::sync::Arc;

use homeostat::condition::{self, Condition};
use homeostat::k8s_openapi::api::core::v1::ConfigMap;
use homeostat::{Context, Controller, Error, Outcome, Result};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom to greet.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus")]
pub struct GreetingSpec {
    /// The name to greet.
    pub who: String,
}

/// What was said.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GreetingStatus {
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// `Ready`, and `Degraded` when it is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One pass of the loop for one Greeting.
///
/// # Errors
/// A Greeting to nobody waits for an edit; all else is retried.
pub async fn reconcile(greeting: Arc<Greeting>, ctx: Context<Greeting>) -> Result<Outcome> {
    if greeting.spec.who.trim().is_empty() {
        return Err(Error::terminal("there is nobody to greet"));
    }
    let said = format!("Hello, {}!", greeting.spec.who);
    let mut card = ConfigMap::default();
    card.metadata.name = Some(greeting.name_any());
    card.data = Some([("greeting".to_owned(), said.clone())].into());
    ctx.apply(card).await?;

    let ready = condition::ready("Said", "the card is written");
    ctx.status(GreetingStatus { said: Some(said), conditions: vec![ready] }).await?;
    Ok(Outcome::Done)
}

/// The controller, ready to be given to a manager.
#[must_use]
pub fn controller() -> Controller<Greeting> {
    Controller::new(reconcile).owns::<ConfigMap>()
}

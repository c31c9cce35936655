//! All four operators in one manager, and what tests ask about their objects.

#![allow(dead_code, reason = "each test file uses its part")]

use homeostat::Manager;
use homeostat::k8s_openapi::api::core::v1::Event;
use homeostat_testing::World;
use operator_at::At;
use operator_database::Database;
use operator_logical_database::LogicalDatabase;
use operator_webapp::WebApp;

pub(crate) fn operators(manager: Manager) -> Manager {
    manager
        .with_crd::<At>()
        .with_crd::<WebApp>()
        .with_crd::<Database>()
        .with_crd::<LogicalDatabase>()
        .with(operator_at::controller())
        .with(operator_webapp::controller())
        .with(operator_database::controller())
        .with(operator_logical_database::controller())
}

pub(crate) fn is_ready(app: &WebApp) -> bool {
    app.status.as_ref().is_some_and(|status| status.ready)
}

/// The notes of the Events about an object, by reason.
pub(crate) async fn notes(world: &World, name: &str, reason: &str) -> Vec<String> {
    let mut notes: Vec<String> = world
        .list::<Event>("")
        .await
        .into_iter()
        .filter(|event| event.involved_object.name.as_deref() == Some(name))
        .filter(|event| event.reason.as_deref() == Some(reason))
        .filter_map(|event| event.message)
        .collect();
    notes.sort();
    notes
}

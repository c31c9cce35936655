//! What a key has failed for is put right: by an edit of its object, or by another object of the name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::kube::api::{DeleteParams, PostParams};
use homeostat::kube::{Resource, ResourceExt};
use homeostat::{Backoff, Context, Controller, Error, Object, Outcome};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::budget::{PodDisruptionBudget, budget, odd_budget};
use crate::cluster::{Cluster, config, endings, on_cluster};

/// A key that fails, and whose labels change until nobody is in a hurry any more; then something is
/// done about it.
async fn mending_of_a_failing<K>(cluster: &Cluster, object: &K, mend: impl AsyncFnOnce(&str))
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let name = object.name_any();
    cluster.create(object).await;
    let reconcile =
        async |_: Arc<K>, _: Context<K>| Err::<Outcome, _>(Error::transient("out of order"));
    let minutes = Duration::from_secs(300);
    let backoff = Backoff { first: minutes, max: minutes, ..Backoff::default().exact() };
    let running = cluster.start(Controller::new(reconcile).backoff(backoff)).await;
    let journal = running.journal();
    cluster.runs(&journal, 1).await;
    let label = async |value: String| {
        let patch = json!({ "metadata": { "labels": { "chatter": value } } });
        cluster.patch::<K>(&name, patch).await;
    };
    for word in 1..=5_usize {
        label(word.to_string()).await;
        cluster.runs(&journal, 1 + word).await;
    }
    label("enough".to_owned()).await;
    cluster.env.sleep(Duration::from_secs(2)).await;
    assert_eq!(journal.total(), 6, "a failing key that is chatty slows down");
    mend(&name).await;
    let records = cluster.runs(&journal, 7).await;
    let waited = records[6].time.duration_since(records[5].time);
    assert!(waited.as_secs() < 300, "it did not wait for its backoff: {waited}");
    running.stop().await.unwrap();
}

#[test]
fn an_edit_of_a_failing_object_is_heard_at_once_also_where_other_events_no_longer_are() {
    on_cluster(async |cluster| {
        let edit = json!({ "spec": { "minAvailable": 2 } });
        let edit = async |name: &str| {
            cluster.patch::<PodDisruptionBudget>(name, edit).await;
        };
        mending_of_a_failing(&cluster, &budget("a", 1), edit).await;
    });
}

#[test]
fn an_edit_of_a_failing_object_that_has_no_generation_is_heard_at_once_too() {
    on_cluster(async |cluster| {
        let edit = json!({ "data": { "value": "2" } });
        let edit = async |name: &str| {
            cluster.patch::<ConfigMap>(name, edit).await;
        };
        mending_of_a_failing(&cluster, &config("a", "1"), edit).await;
    });
}

#[test]
fn an_object_that_is_made_anew_does_not_wait_for_what_its_namesake_failed_for() {
    on_cluster(async |cluster| {
        let anew = async |name: &str| {
            cluster.api::<ConfigMap>().delete(name, &<_>::default()).await.unwrap();
            cluster.create(&config(name, "2")).await;
        };
        mending_of_a_failing(&cluster, &config("a", "1"), anew).await;
    });
}

#[test]
fn an_object_that_takes_the_place_of_another_in_the_middle_of_a_reconcile_has_all_its_attempts() {
    on_cluster(async |cluster| {
        cluster.create(&config("a", "old")).await;
        let gate = Arc::new(Semaphore::new(1));
        let goes_on = Arc::clone(&gate);
        // The old one fails once by itself, and once more when it is gone already.
        let fail = move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let gate = Arc::clone(&goes_on);
            async move {
                gate.acquire().await.unwrap().forget();
                Err::<Outcome, _>(Error::transient("out of order"))
            }
        };
        let told = Arc::new(AtomicUsize::new(0));
        let count = told.clone();
        let controller = Controller::new(fail).give_up_after(3, move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let running = cluster.start(controller).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        // Its second attempt is under way.
        cluster.env.sleep(Duration::from_secs(2)).await;
        cluster.api::<ConfigMap>().delete("a", &<_>::default()).await.unwrap();
        cluster.create(&config("a", "new")).await;
        cluster.env.sleep(Duration::from_secs(1)).await;
        gate.add_permits(4);
        cluster.runs(&journal, 4).await;
        assert_eq!(told.load(Ordering::SeqCst), 0, "{journal}");
        let records = cluster.runs(&journal, 5).await;
        assert_eq!(told.load(Ordering::SeqCst), 1, "{journal}");
        assert!(records[4].next.is_none(), "{journal}");
        running.stop().await.unwrap();
    });
}

#[test]
fn an_object_that_cannot_be_decoded_pays_for_nothing_that_its_namesake_failed_for() {
    on_cluster(async |cluster| {
        let (api, odd) = odd_budget(&cluster);
        let first = api.create(&PostParams::default(), &odd).await.unwrap();
        let gate = Arc::new(Semaphore::new(0));
        let goes_on = Arc::clone(&gate);
        let wait = move |_: Arc<PodDisruptionBudget>, _: Context<PodDisruptionBudget>| {
            let gate = Arc::clone(&goes_on);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(Outcome::Done)
            }
        };
        let running = cluster.start(Controller::new(wait).concurrency(1)).await;
        let journal = running.journal();
        cluster.runs(&journal, 1).await;
        // While the only worker is busy, so that nobody finds the name without an object.
        cluster.create(&budget("busy", 1)).await;
        cluster.env.sleep(Duration::from_secs(2)).await;
        api.delete("odd", &DeleteParams::default()).await.unwrap();
        let second = api.create(&PostParams::default(), &odd).await.unwrap();
        cluster.env.sleep(Duration::from_secs(2)).await;
        gate.add_permits(1);
        let records = cluster.runs(&journal, 3).await;
        assert!(endings(&records)[2].starts_with("terminal"), "{journal}");
        let is_told_of = |uid: Option<String>| {
            move |event: &Event| {
                let of = event.regarding.as_ref().and_then(|regarding| regarding.uid.clone());
                event.reason.as_deref() == Some("DecodeFailed") && of == uid
            }
        };
        let (of_first, of_second) = (is_told_of(first.uid()), is_told_of(second.uid()));
        let both = |all: &[Event]| all.iter().any(&of_first) && all.iter().any(&of_second);
        cluster.until::<Event>("an event about each", both).await;
        running.stop().await.unwrap();
    });
}

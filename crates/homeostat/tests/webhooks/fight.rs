//! Servers that sign for themselves and want different things of the same objects. They wake each
//! other by what they write, so without a pause virtual time would stand still.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::kube::Client;
use homeostat::kube::api::{Api, PostParams};
use homeostat::kube::client::Body;
use homeostat::webhook::{Certificate, SelfSigned, Webhooks};
use homeostat::{Manager, Running};
use homeostat_testing::{KUBECONFIG, TestCluster, on_cluster};
use http::{Method, Request};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use tokio::sync::Notify;

use super::untrusting;

/// More writes than these within a minute are a fight without pause.
const MANY: usize = 50;

/// Counts what is written, and tells when it is too much.
#[derive(Clone, Default)]
struct Referee {
    writes: Arc<AtomicUsize>,
    too_many: Arc<Notify>,
}

impl Referee {
    /// A server with that certificate whose writes are counted.
    async fn start(&self, cluster: &TestCluster, own: SelfSigned) -> Running {
        let (inner, referee) = (cluster.client.clone(), self.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let writes = request.method() != Method::GET;
            if writes && referee.writes.fetch_add(1, Ordering::SeqCst) >= MANY {
                referee.too_many.notify_one();
            }
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        let client = Client::new(service, cluster.client.default_namespace());
        let webhooks = Webhooks::new(([127, 0, 0, 1], 0), Certificate::self_signed(own));
        let manager = Manager::new(client, cluster.env.clone());
        manager.webhooks(webhooks).start().await.unwrap()
    }

    /// How much is written until a minute has passed.
    async fn count(&self, cluster: &TestCluster) -> usize {
        tokio::select! {
            biased;
            () = self.too_many.notified() => {}
            () = cluster.env.sleep(Duration::from_secs(60)) => {}
        }
        self.writes.load(Ordering::SeqCst)
    }
}

#[test]
fn two_who_undo_each_others_work_pause_between_their_writes() {
    if std::env::var_os(KUBECONFIG).is_some() {
        return; // Nobody waits a minute for each.
    }
    on_cluster(async |cluster| {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(cluster.client.clone());
        let wish = untrusting(&cluster, "https://127.0.0.1:1/");
        validating.create(&PostParams::default(), &wish).await.unwrap();
        let referee = Referee::default();
        let own = |secret: &str| {
            let own = SelfSigned::in_secret(&cluster.namespace, secret).host("127.0.0.1");
            own.validating(&cluster.namespace)
        };
        let first = referee.start(&cluster, own("one")).await;
        let second = referee.start(&cluster, own("two")).await;
        let writes = referee.count(&cluster).await;
        assert!((10..MANY).contains(&writes), "{writes} writes");
        first.stop().await.unwrap();
        second.stop().await.unwrap();
    });
}

#[test]
fn replicas_that_are_reached_by_different_names_share_a_certificate() {
    if std::env::var_os(KUBECONFIG).is_some() {
        return; // Nobody waits a minute for each.
    }
    on_cluster(async |cluster| {
        let referee = Referee::default();
        let own = |name: &str| SelfSigned::in_secret(&cluster.namespace, "webhook").host(name);
        let old = referee.start(&cluster, own("127.0.0.1")).await;
        let new = referee.start(&cluster, own("localhost")).await;
        assert_eq!(referee.count(&cluster).await, 2, "one certificate each");
        old.stop().await.unwrap();
        new.stop().await.unwrap();
    });
}

#[test]
fn a_certificate_that_lives_for_minutes_is_renewed_when_a_third_of_its_life_is_left() {
    if std::env::var_os(KUBECONFIG).is_some() {
        return; // Nobody waits a minute for each.
    }
    on_cluster(async |cluster| {
        let referee = Referee::default();
        let own = SelfSigned::in_secret(&cluster.namespace, "webhook").host("127.0.0.1");
        let running = referee.start(&cluster, own.lifetime(Duration::from_secs(60))).await;
        assert_eq!(referee.count(&cluster).await, 2, "the first one, and one after 40 s");
        running.stop().await.unwrap();
    });
}

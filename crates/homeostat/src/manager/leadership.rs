//! The lease of a manager: its task, and the controllers that work while it is held.

use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Env;
use crate::controller::Follower;
use crate::error::Result;
use crate::lease::{self, Fence, Hand, Lease};

/// The lease of a manager, or none.
#[derive(Debug)]
pub(super) struct Leadership {
    pub(super) fence: Fence,
    /// Until [`Self::contend`].
    candidate: Option<(Lease, Hand)>,
    task: Option<(JoinHandle<()>, DropGuard)>,
    follow: Option<DropGuard>,
}

impl Leadership {
    /// The lease as it is to be held; nobody contends for it yet. Without one the fence is open for
    /// ever.
    pub(super) fn new(env: &Env, lease: Option<Lease>) -> Result<Self> {
        let Some(lease) = lease else {
            let fence = Fence::open(env.clone());
            return Ok(Self { fence, candidate: None, task: None, follow: None });
        };
        lease.check()?;
        let (fence, hand) = Fence::closed(env.clone(), lease.patience());
        Ok(Self { fence, candidate: Some((lease, hand)), task: None, follow: None })
    }

    /// Contends for the lease; others go first until `warm` ends. Lets controllers work while it is
    /// held and rest while it is not.
    pub(super) fn contend(
        &mut self,
        client: &kube::Client,
        env: &Env,
        followers: Vec<Follower>,
        warm: BoxFuture<'static, ()>,
    ) {
        let Some((lease, hand)) = self.candidate.take() else { return };
        let stop = CancellationToken::new();
        let task = lease::run(client.clone(), env.clone(), lease, hand, warm, stop.clone());
        self.task = Some((tokio::spawn(task), stop.drop_guard()));

        let (fence, stop) = (self.fence.clone(), CancellationToken::new());
        self.follow = Some(stop.clone().drop_guard());
        drop(tokio::spawn(stop.run_until_cancelled_owned(async move {
            for term in 0_u64.. {
                fence.opened().await;
                followers.iter().for_each(|follower| follower.lead(term > 0));
                fence.closed_again().await;
                followers.iter().for_each(Follower::rest);
            }
        })));
    }

    /// Gives the lease back.
    pub(super) async fn release(self) {
        drop(self.follow);
        if let Some((task, stop)) = self.task {
            drop(stop);
            if task.await.is_err() {
                tracing::warn!("the lease was not given back");
            }
        }
    }
}

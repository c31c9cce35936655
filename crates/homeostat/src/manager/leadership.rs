//! The lease of a manager: its task, and the controllers that work while it is held.

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Env;
use crate::controller::Follower;
use crate::error::Result;
use crate::lease::{self, Fence, Lease};

/// The running lease of a manager, or none.
#[derive(Debug)]
pub(super) struct Leadership {
    pub(super) fence: Fence,
    task: Option<(JoinHandle<()>, DropGuard)>,
    follow: Option<DropGuard>,
}

impl Leadership {
    /// Begins to contend for the lease. Without one the fence is open for ever.
    pub(super) fn start(client: &kube::Client, env: &Env, lease: Option<Lease>) -> Result<Self> {
        let Some(lease) = lease else {
            return Ok(Self { fence: Fence::open(env.clone()), task: None, follow: None });
        };
        lease.check()?;
        let (fence, hand) = Fence::closed(env.clone(), lease.patience());
        let stop = CancellationToken::new();
        let task = lease::run(client.clone(), env.clone(), lease, hand, stop.clone());
        let task = Some((tokio::spawn(task), stop.drop_guard()));
        Ok(Self { fence, task, follow: None })
    }

    /// Lets controllers work while the lease is held and rest while it is not.
    pub(super) fn follow(&mut self, followers: Vec<Follower>) {
        if self.task.is_none() {
            return;
        }
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

//! The workers of a controller, hired as they are needed: one more when the newest has taken its
//! first key, until there are as many as are allowed. So a limit that is never reached costs
//! nothing, and there is never more than one who has had nothing to do yet.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::worker::Worker;
use crate::kind::AnyObject;

/// Ends when the queue is shut down and every worker has finished; when it is dropped, they are.
pub(super) async fn work<K: AnyObject>(worker: Arc<Worker<K>>, most: usize) {
    let newest_is_busy = Arc::new(Notify::new());
    let mut crew = JoinSet::new();
    for number in 0..most {
        let (worker, busy) = (worker.clone(), newest_is_busy.clone());
        crew.spawn(async move { worker.run(number, || busy.notify_one()).await });
        tokio::select! {
            biased;
            () = newest_is_busy.notified() => {}
            // The queue is over: who would come now had nothing to do.
            _ = crew.join_next() => break,
        }
    }
    while crew.join_next().await.is_some() {}
}

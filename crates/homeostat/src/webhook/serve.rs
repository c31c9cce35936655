//! The listener of the webhooks: it takes callers in, and waits for the last of them when it is closed.
//! What is said to them is not its business.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::converse::{CALLERS, Site, converse};
use super::current::Current;
use crate::Env;
use crate::error::{Error, Result};

/// A listener that answers until it is closed; dropped, it ends at once.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    certificate: Arc<Current>,
    accept: JoinHandle<Option<()>>,
    /// Cancelled when nobody new is answered.
    closing: CancellationToken,
    running: CancellationToken,
    stop: DropGuard,
}

impl Serving {
    /// Answers nobody new, gives the address back, and lets the answers that are being given finish
    /// within `limit`; whether they did.
    pub(crate) async fn close(mut self, env: &Env, limit: Duration) -> bool {
        self.closing.cancel();
        let in_time = env.timeout(limit, &mut self.accept).await.is_ok();
        drop(self.stop);
        if !in_time {
            drop(self.accept.await);
        }
        in_time
    }

    /// Runs `work` for as long as the listener.
    pub(super) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(self.running.clone().run_until_cancelled_owned(work)));
    }

    /// Who can tell what is wrong with it.
    pub(crate) fn observer(&self) -> Observer {
        Observer(self.certificate.clone())
    }
}

/// Tells how a listener is; cheap to clone.
#[derive(Clone)]
pub(crate) struct Observer(Arc<Current>);

impl Observer {
    /// What is wrong, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.problem()
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("webhooks")
    }
}

pub(super) async fn listen(
    address: SocketAddr,
    certificate: Arc<Current>,
    site: Site,
) -> Result<Serving> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Error::transient(format!("{address} cannot be listened on: {error}")))?;
    let address = listener.local_addr().map_err(Error::transient)?;
    let (stop, closing) = (CancellationToken::new(), CancellationToken::new());
    let places = Arc::new(Semaphore::new(CALLERS));
    let accept = accept(listener, places, certificate.clone(), site, closing.clone());
    let accept = tokio::spawn(stop.clone().run_until_cancelled_owned(accept));
    let running = stop.clone();
    Ok(Serving { address, certificate, accept, closing, running, stop: stop.drop_guard() })
}

/// Answers whoever comes until it is `closing`, then those who are here. Who finds no place is not
/// refused: the system keeps the connection until somebody leaves.
async fn accept(
    listener: TcpListener,
    places: Arc<Semaphore>,
    certificate: Arc<Current>,
    site: Site,
    closing: CancellationToken,
) {
    let mut callers = JoinSet::new();
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.map_err(std::io::Error::other)?;
            Ok::<_, std::io::Error>((place, listener.accept().await?))
        };
        let accepted = tokio::select! {
            biased;
            () = closing.cancelled() => break,
            Some(_) = callers.join_next() => continue,
            accepted = next => accepted,
        };
        match accepted {
            Ok((place, (stream, _))) => {
                let (certificate, site) = (certificate.clone(), site.clone());
                callers.spawn(converse(stream, place, certificate, site, closing.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a caller could not be heard");
                site.env.sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    while callers.join_next().await.is_some() {}
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::super::converse::tests::{ask, of_one, shake_hands, site};
    use super::*;

    #[tokio::test]
    async fn a_caller_who_finds_no_place_is_answered_when_another_leaves() {
        let env = Env::system();
        let (certificate, authority) = of_one(&env).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (places, closing) = (Arc::new(Semaphore::new(1)), CancellationToken::new());
        let accept = accept(listener, places, certificate, site(&env, Duration::ZERO), closing);
        let _accept = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(accept));
        let connect =
            async || shake_hands(TcpStream::connect(address).await.unwrap(), &authority).await;
        let mut first = connect().await;
        let mut second = Box::pin(connect());
        let early = env.timeout(Duration::from_millis(300), &mut second).await;
        assert!(early.is_err(), "there was no place");
        // All places are taken, so the answer ends the connection: its caller must come again.
        let answer = ask(&mut first).await;
        assert!(answer.contains("200 OK") && answer.contains("connection: close"), "{answer}");
        let answer = ask(&mut second.await).await;
        assert!(answer.contains("200 OK"), "{answer}");
    }
}

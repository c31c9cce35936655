//! Connections to Services.

use std::net::SocketAddr;
use std::time::Duration;

use homeostat_env::Env;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Gives every client a backend, in turn, for as long as it is polled. Connections go on without
/// it, until `closing`.
pub(super) async fn serve(
    env: &Env,
    listener: &TcpListener,
    backends: &watch::Receiver<Vec<SocketAddr>>,
    closing: &CancellationToken,
) {
    for turn in 0_usize.. {
        let client = accept(env, listener).await;
        let mut choice = backends.borrow().clone();
        let first = turn % choice.len().max(1);
        choice.rotate_left(first);
        tokio::spawn(closing.clone().run_until_cancelled_owned(relay(client, choice)));
    }
}

/// The next client. Out of descriptors, say, it waits a while for some to be given back.
async fn accept(env: &Env, listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            Err(error) => tracing::warn!(%error, "a connection to a Service was not accepted"),
        }
        env.sleep(PAUSE).await;
    }
}

/// Connects to the first backend that answers and carries bytes both ways.
async fn relay(mut client: TcpStream, backends: Vec<SocketAddr>) {
    for backend in backends {
        let Ok(mut server) = TcpStream::connect(backend).await else { continue };
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        // Either end may hang up at any time.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return;
    }
}

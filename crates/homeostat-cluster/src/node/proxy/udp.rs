//! Datagrams to Services: each client has a flow to one backend until neither says anything any
//! more, or the backend is not one any more.

use std::collections::BTreeMap;
use std::io::Result;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use homeostat_env::Env;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// After this silence a client may get another backend: Linux forgets a stream of datagrams then.
const IDLE: Duration = Duration::from_secs(120);
/// Datagrams of one client that may wait for its backend's socket; more are lost.
const WAITING: usize = 64;
/// The longest a datagram can be.
const LONGEST: usize = 64 * 1024;

/// Where one client's datagrams go.
struct Flow {
    backend: SocketAddr,
    datagrams: mpsc::Sender<Bytes>,
}

/// Carries datagrams both ways for as long as it is polled.
pub(super) async fn serve(
    env: &Env,
    socket: UdpSocket,
    backends: &watch::Receiver<Vec<SocketAddr>>,
) {
    let door = Arc::new(socket);
    let mut flows: BTreeMap<SocketAddr, Flow> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let (mut turn, mut buffer) = (0_usize, vec![0; LONGEST]);
    loop {
        let received = tokio::select! {
            biased;
            Some(_) = tasks.join_next() => {
                flows.retain(|_, flow| !flow.datagrams.is_closed());
                continue;
            }
            received = door.recv_from(&mut buffer) => received,
        };
        // An error tells that an answer did not reach its client; the next may.
        let Ok((length, client)) = received else { continue };
        let datagram = Bytes::copy_from_slice(&buffer[..length]);
        let known = backends.borrow().clone();
        if known.is_empty() {
            continue;
        }
        flows.retain(|_, flow| known.contains(&flow.backend) && !flow.datagrams.is_closed());
        let flow = flows.entry(client).or_insert_with(|| {
            turn = turn.wrapping_add(1);
            let backend = known[turn % known.len()];
            let (datagrams, waiting) = mpsc::channel(WAITING);
            let carry = carry(env.clone(), door.clone(), client, backend, waiting);
            tasks.spawn(async move {
                // A backend that is not there tells so, or the client will notice.
                let _ = carry.await;
            });
            Flow { backend, datagrams }
        });
        // Datagrams may be lost.
        let _ = flow.datagrams.try_send(datagram);
    }
}

/// Carries one client's datagrams to its backend, and the answers back through the door. Ends when
/// nothing comes any more.
async fn carry(
    env: Env,
    door: Arc<UdpSocket>,
    client: SocketAddr,
    backend: SocketAddr,
    mut datagrams: mpsc::Receiver<Bytes>,
) -> Result<()> {
    let server = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    server.connect(backend).await?;
    let mut buffer = vec![0; LONGEST];
    loop {
        tokio::select! {
            biased;
            datagram = datagrams.recv() => match datagram {
                Some(datagram) => drop(server.send(&datagram).await?),
                None => return Ok(()),
            },
            answer = server.recv(&mut buffer) => {
                let length = answer?;
                door.send_to(&buffer[..length], client).await?;
            }
            () = env.sleep(IDLE) => return Ok(()),
        }
    }
}

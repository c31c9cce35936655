//! The server behind a socket, with TLS.

use std::net::SocketAddr;

use homeostat_apiserver::{Access, Identity, Server, ServerConfig};
use homeostat_env::Env;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use super::secured;

/// A server, and how it is reached; it ends when this is dropped.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    pub(super) access: Access,
    pub(super) serving: JoinSet<()>,
}

impl Served {
    pub(super) async fn begin() -> Self {
        Self::until(std::future::pending()).await
    }

    /// One that ends in good order when `ended` does.
    pub(super) async fn until(ended: impl Future<Output = ()> + Send + 'static) -> Self {
        let env = Env::system();
        let server = Server::new(ServerConfig::new(env.clone()));
        let identity = Identity::generate(&env, &[]).unwrap();
        let access = identity.access().clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            server.serve_tls_until(listener, identity, ended).await.unwrap();
        });
        Self { address, access, serving }
    }

    /// A connection that speaks that protocol.
    pub(super) async fn connect(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        let Self { access, address, .. } = self;
        secured::connect(&access.ca_pem, *address, Some(protocol)).await.unwrap()
    }
}

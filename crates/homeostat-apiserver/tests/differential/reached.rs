//! How this server is reached: in-process, or with TLS by a client that knows nothing else of it.

use homeostat_apiserver::{Identity, Server};
use homeostat_env::Env;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A client of the server; what serves it ends when this is dropped.
pub(crate) struct Reached {
    pub(crate) client: Client,
    _serving: JoinSet<()>,
}

impl Reached {
    /// By a call.
    pub(crate) fn in_process(server: Server) -> Self {
        Self { client: Client::new(server, "default"), _serving: JoinSet::new() }
    }

    /// Through a socket.
    pub(crate) async fn over_tls(server: Server) -> Self {
        let identity = Identity::generate(&Env::system(), &[]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let kubeconfig = Kubeconfig::from_yaml(&identity.access().kubeconfig(&url)).unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { server.serve_tls(listener, identity).await.unwrap() });
        Self { client: client(kubeconfig).await, _serving: serving }
    }
}

/// A client that shows every answer, the refusals too: others hide some behind retries.
pub(crate) async fn client(kubeconfig: Kubeconfig) -> Client {
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

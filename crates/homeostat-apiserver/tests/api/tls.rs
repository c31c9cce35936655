use std::sync::Arc;

use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::refusal;

async fn client_from(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap().try_into().unwrap()
}

#[tokio::test]
async fn the_kubeconfig_opens_the_door_and_neither_a_wrong_token_nor_none_does() {
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let identity = Identity::generate(&env, &[]).unwrap();
    let access = identity.access().clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { server.serve_tls(listener, identity).await });

    let admin = client_from(&access.kubeconfig(&url)).await;
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    namespaces.get("default").await.unwrap();
    let slices: Api<EndpointSlice> = Api::namespaced(admin, "default");
    let slice = slices.get("kubernetes").await.unwrap();
    let port = slice.ports.unwrap()[0].port.unwrap();
    let told = format!("https://{}:{port}", slice.endpoints.unwrap()[0].addresses[0]);
    assert_eq!(told, url, "the cluster is told where the API is");

    let wrong = access.kubeconfig(&url).replace(&access.token, "wrong");
    let stranger: Api<Namespace> = Api::all(client_from(&wrong).await);
    assert_eq!(refusal(stranger.get("default").await), (401, "Unauthorized".into()));
    assert_eq!(
        refusal(client_from(&wrong).await.apiserver_version().await),
        (401, "Unauthorized".into())
    );

    let nobody = client_from(&access.kubeconfig(&url).replace("    token:", "    unused:")).await;
    let version = nobody.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
    let namespaces: Api<Namespace> = Api::all(nobody);
    assert_eq!(refusal(namespaces.get("default").await), (403, "Forbidden".into()));
    serving.abort();
}

#[tokio::test]
async fn a_client_that_never_finishes_its_request_is_dropped() {
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let identity = Identity::generate(&env, &[]).unwrap();
    let ca = identity.access().ca_pem.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { server.serve_tls(listener, identity).await });

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(b"GET /version HTTP/1.1\r\nHost: loc").await.unwrap();
    stream.flush().await.unwrap();
    // From here on time passes whenever everybody waits.
    tokio::time::pause();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!serving.is_finished());
    serving.abort();
}

use std::pin::pin;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_env::Env;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::refusal;
use super::served::Served;

/// What a connection says that it speaks.
pub(super) const HTTP1: &[u8] = b"http/1.1";

pub(super) async fn client_from(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap().try_into().unwrap()
}

#[tokio::test]
async fn the_kubeconfig_opens_the_door_and_neither_a_wrong_token_nor_none_does() {
    let served = Served::begin().await;
    let (access, url) = (&served.access, format!("https://{}", served.address));

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
}

#[tokio::test]
async fn a_selector_of_tens_of_kilobytes_is_read_over_http2_too() {
    let served = Served::begin().await;
    let (access, address) = (&served.access, served.address);
    let stream = TokioIo::new(served.connect(b"h2").await);
    let spoken = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let (mut sender, connection) = spoken;
    tokio::spawn(connection);
    let selector: Vec<String> = (0..3000).map(|number| format!("key-{number}%21%3Dx")).collect();
    let target = format!("https://{address}/api/v1/nodes?labelSelector={}", selector.join(","));
    let request = http::Request::get(target)
        .header("authorization", format!("Bearer {}", access.token))
        .body(String::new())
        .unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
}

/// A kubeconfig with a certificate instead of a token.
fn with_certificate(identity: &Identity, url: &str, client: &CertificateParams) -> String {
    let authority = identity.authority();
    let (ca, ca_key) = authority.split_at(authority.find("-----BEGIN PRIVATE KEY").unwrap());
    let issuer = Issuer::from_ca_cert_pem(ca, KeyPair::from_pem(ca_key).unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = client.signed_by(&key, &issuer).unwrap();
    let shown = format!(
        "client-certificate-data: {}\n    client-key-data: {}",
        STANDARD.encode(certificate.pem()),
        STANDARD.encode(key.serialize_pem())
    );
    let access = identity.access();
    access.kubeconfig(url).replace(&format!("token: {}", access.token), &shown)
}

fn for_client(name: &str, group: &str) -> CertificateParams {
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.distinguished_name.push(DnType::CommonName, name);
    client.distinguished_name.push(DnType::OrganizationName, group);
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    client
}

async fn who(kubeconfig: &str) -> Result<SelfSubjectReview, kube::Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(client_from(kubeconfig).await);
    reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await
}

#[tokio::test]
async fn a_certificate_of_the_authority_says_who_its_holder_is() {
    let env = Env::system();
    let server = Server::new(ServerConfig::new(env.clone()));
    let identity = Identity::generate(&env, &[]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let served = identity.clone();
    let serving = tokio::spawn(async move { server.serve_tls(listener, served).await });

    let jane = with_certificate(&identity, &url, &for_client("jane", "readers"));
    let user = who(&jane).await.unwrap().status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("jane"));
    assert_eq!(user.groups.unwrap(), ["readers", "system:authenticated"]);
    assert!(user.extra.unwrap().contains_key("authentication.kubernetes.io/credential-id"));
    let namespaces: Api<Namespace> = Api::all(client_from(&jane).await);
    assert_eq!(refusal(namespaces.get("default").await), (403, "Forbidden".into()));
    let root = with_certificate(&identity, &url, &for_client("root", "system:masters"));
    let namespaces: Api<Namespace> = Api::all(client_from(&root).await);
    namespaces.get("default").await.unwrap();

    // Somebody else's authority, by the same name; a server's; one whose time is over.
    let strange = Identity::generate(&env, &[]).unwrap();
    let strange = with_certificate(&strange, &url, &for_client("jane", "system:masters"));
    let theirs = "certificate-authority-data: ";
    let line = |text: &str| text.lines().find(|line| line.contains(theirs)).unwrap().to_owned();
    let strange = strange.replace(&line(&strange), &line(&jane));
    let mut for_server = for_client("jane", "system:masters");
    for_server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut over = for_client("jane", "system:masters");
    over.not_after = rcgen::date_time_ymd(2020, 1, 1);
    for wrong in [
        strange,
        with_certificate(&identity, &url, &for_server),
        with_certificate(&identity, &url, &over),
    ] {
        assert_eq!(refusal(who(&wrong).await), (401, "Unauthorized".into()));
    }
    serving.abort();
}

#[tokio::test]
async fn a_client_that_never_finishes_its_request_or_never_begins_one_is_dropped() {
    let (env, mut served) = (Env::system(), Served::begin().await);

    let said = ["", "P", "PRI * HTTP/2.0\r\n", "GET /version HTTP/1.1\r\nHost: loc"];
    let mut streams = Vec::new();
    for said in said {
        let mut stream = served.connect(HTTP1).await;
        stream.write_all(said.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        streams.push(stream);
    }
    // From here on time passes whenever everybody waits.
    tokio::time::pause();
    for mut stream in streams {
        let mut answer = Vec::new();
        let ended = env.timeout(Duration::from_secs(300), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "it waits for ever");
    }
    assert!(served.serving.try_join_next().is_none());
}

#[tokio::test]
async fn a_server_that_ends_ends_watches_and_connections_in_good_order() {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let mut served = Served::until(async { drop(ended.await) }).await;
    let (mut idle, mut watching) = (served.connect(HTTP1).await, served.connect(HTTP1).await);
    let ask = |query: &str| {
        format!(
            "GET /api/v1/namespaces?{query} HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {}\r\n\r\n",
            served.access.token
        )
    };
    idle.write_all(ask("limit=1").as_bytes()).await.unwrap();
    watching.write_all(ask("watch=true").as_bytes()).await.unwrap();
    // Both have begun to answer.
    let (mut first, mut second) = ([0; 15], [0; 15]);
    idle.read_exact(&mut first).await.unwrap();
    watching.read_exact(&mut second).await.unwrap();
    assert_eq!((&first, &second), (b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK"));
    let kubeconfig = served.access.kubeconfig(&format!("https://{}", served.address));
    let namespaces: Api<Namespace> = Api::all(client_from(&kubeconfig).await);
    let mut events = pin!(namespaces.watch(&WatchParams::default(), "0").await.unwrap());
    assert!(events.next().await.unwrap().is_ok(), "a watch over HTTP/2 runs");

    drop(end);
    served.serving.join_next().await.unwrap().unwrap();
    let (mut answer, mut watched) = (Vec::new(), Vec::new());
    // An end that the server does not announce is an error here.
    idle.read_to_end(&mut answer).await.unwrap();
    watching.read_to_end(&mut watched).await.unwrap();
    assert!(watched.ends_with(b"\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&watched));
    while let Some(event) = events.next().await {
        event.unwrap();
    }
    assert!(TcpStream::connect(served.address).await.is_err(), "nobody listens any more");
}

use homeostat_apiserver::{Identity, Server, ServerConfig};
use homeostat_env::Env;
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::net::TcpListener;

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
    let namespaces: Api<Namespace> = Api::all(admin);
    namespaces.get("default").await.unwrap();

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

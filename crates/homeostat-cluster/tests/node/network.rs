//! Every Pod its own ports, seen through the API.

use serde_json::json;

use crate::cluster::{self, Cluster};

#[tokio::test]
async fn pods_that_listen_on_every_address_share_a_port_with_each_other_and_with_the_host() {
    let cluster = Cluster::start().await;
    let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    // Not every shell knows how to connect; bash does.
    let ask = format!(
        "exec 3<>/dev/tcp/localhost/{port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3"
    );
    let mut addresses = Vec::new();
    for (name, listens) in [("one", "0.0.0.0"), ("two", "::")] {
        let web = json!({
            "name": "web", "image": format!("homeostat.dev/hello:{name}"),
            "env": [{ "name": "HOST", "value": listens }, { "name": "PORT", "value": port.to_string() }],
            "readinessProbe": { "httpGet": { "port": port }, "periodSeconds": 1 },
        });
        let client = json!({ "name": "client", "image": "bash", "command": ["sleep", "1000"] });
        cluster.run(name, json!({ "containers": [web, client] })).await;
    }
    for name in ["one", "two"] {
        let pod = cluster.until(name, |pod| cluster::condition(pod, "Ready") == "True").await;
        let address = format!("{}:{port}", pod["status"]["podIP"].as_str().unwrap());
        let greeting = format!("hello {name} from {name}\n");
        assert_eq!(cluster.http(&address).await, Some(greeting.clone()));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(["bash", "-c", &ask].map(|word| ("command", word)));
        let path = format!("/exec/default/{name}/client?{}&stdout=true", query.finish());
        let said = cluster.exec(&path, b"").await;
        assert!(said.get(&1).is_some_and(|said| said.ends_with(&greeting)), "{said:?}");
        addresses.push(address);
    }
    cluster.delete("one").await;
    cluster.until_gone("one").await;
    drop(std::net::TcpListener::bind(&addresses[0]).expect("its port is free again"));
    cluster.stop().await;
}

//! What Services promise: connections that outlive their endpoints, and where new ones lead.

use super::*;
use serde_json::{Value, from_value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn slice(endpoints: &[(&str, Value)]) -> Arc<EndpointSlice> {
    let metadata = json!({ "namespace": "n", "labels": { SERVICE_NAME: "s" } });
    let endpoint =
        |(ip, now): &(&str, Value)| json!({ "addresses": [ip], "conditions": now.clone() });
    let endpoints: Vec<Value> = endpoints.iter().map(endpoint).collect();
    let ports = json!([{ "name": "other", "port": 1 }, { "name": "web", "port": 8080 }]);
    let slice = json!({
        "metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": endpoints
    });
    Arc::new(from_value(slice).unwrap())
}

fn service(protocol: &str) -> [Arc<Service>; 1] {
    let spec = json!({
        "clusterIP": "127.96.0.1", "clusterIPs": ["127.96.0.1"],
        "ports": [{ "name": "web", "port": 80, "targetPort": "http", "protocol": protocol }]
    });
    let metadata = json!({ "namespace": "n", "name": "s" });
    [Arc::new(from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())]
}

#[test]
fn a_service_leads_to_its_ready_endpoints_by_port_name_or_to_those_that_still_serve() {
    let ready = || ("127.64.0.1", json!({ "ready": true, "serving": true }));
    let ending = || ("127.64.0.2", json!({ "ready": false, "serving": true, "terminating": true }));
    let unready = || ("127.64.0.3", json!({ "ready": false, "serving": false }));
    let lead = |endpoints: &[(&str, Value)]| -> Vec<String> {
        let found = routes(&service("TCP"), &[slice(endpoints)], true);
        let route = &found[&(Transport::Tcp, "127.96.0.1:80".parse().unwrap())];
        route.backends.iter().map(ToString::to_string).collect()
    };
    assert_eq!(lead(&[ready(), ending(), unready()]), ["127.64.0.1:8080"]);
    assert_eq!(lead(&[ending(), unready()]), ["127.64.0.2:8080"]);
    assert!(lead(&[unready()]).is_empty());
    let udp = routes(&service("UDP"), &[slice(&[ready()])], true);
    assert!(udp.contains_key(&(Transport::Udp, "127.96.0.1:80".parse().unwrap())));
}

#[test]
fn a_port_that_only_root_may_have_is_answered_higher_up() {
    let found = routes(&service("TCP"), &[], false);
    let route = &found[&(Transport::Tcp, "127.96.0.1:6080".parse().unwrap())];
    assert_eq!(route.moved, Some(80));
    assert_eq!(answered_at(443, false), 6443);
    assert_eq!((answered_at(443, true), answered_at(8080, false)), (443, 8080));
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_taken_is_tried_again_until_it_is_free() {
    let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
    let mut taken = Some(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.as_ref().unwrap().local_addr().unwrap();
    let (began, mut refusals) = (env.instant(), 0);
    let mut refused = |_: &Error| {
        refusals += 1;
        if refusals == 3 {
            taken = None;
        }
    };
    let listener = take(&env, || TcpListener::bind(address), &mut refused);
    assert_eq!(listener.await.local_addr().unwrap(), address);
    assert_eq!((env.instant() - began).as_secs(), 1 + 2 + 4);
}

/// A door at a free port that leads to nobody yet.
fn door(transport: Transport) -> (SocketAddr, watch::Sender<Vec<SocketAddr>>) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (sender, backends) = watch::channel(Vec::new());
    tokio::spawn(async move {
        let closing = CancellationToken::new();
        attend(&Env::system(), (transport, free), backends, &closing, |_| {}).await;
    });
    (free, sender)
}

/// Connects as soon as somebody listens there.
async fn connect(address: SocketAddr) -> TcpStream {
    loop {
        if let Ok(stream) = TcpStream::connect(address).await {
            return stream;
        }
        tokio::task::yield_now().await;
    }
}

async fn echo(stream: &mut TcpStream, word: &[u8]) {
    stream.write_all(word).await.unwrap();
    let mut said = vec![0; word.len()];
    stream.read_exact(&mut said).await.unwrap();
    assert_eq!(said, word);
}

#[tokio::test]
async fn a_connection_outlives_the_readiness_of_its_endpoint_and_new_ones_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                tokio::io::copy(&mut reader, &mut writer).await
            });
        }
    });
    let (address, backends) = door(Transport::Tcp);
    assert!(TcpStream::connect(address).await.is_err(), "nobody is behind it");
    backends.send_replace(vec![backend]);
    let mut client = connect(address).await;
    echo(&mut client, b"before").await;
    backends.send_replace(Vec::new());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    echo(&mut client, b"still there").await;
    backends.send_replace(vec![backend]);
    echo(&mut connect(address).await, b"again").await;
    drop(backends);
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    echo(&mut client, b"without its Service").await;
}

#[tokio::test]
async fn datagrams_come_back_from_the_address_they_were_sent_to() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let backend = server.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 64];
        while let Ok((length, client)) = server.recv_from(&mut buffer).await {
            let answer = [b"echo ", &buffer[..length]].concat();
            let _ = server.send_to(&answer, client).await;
        }
    });
    let (address, backends) = door(Transport::Udp);
    backends.send_replace(vec![backend]);
    for name in ["one", "two"] {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(address).await.unwrap();
        let mut buffer = [0; 64];
        // The door may not be open yet, and datagrams may be lost.
        let said = loop {
            let _ = client.send(name.as_bytes()).await;
            let answer = client.recv(&mut buffer);
            let answered = Env::system().timeout(Duration::from_millis(100), answer).await;
            if let Ok(Ok(length)) = answered {
                break &buffer[..length];
            }
        };
        assert_eq!(said, format!("echo {name}").as_bytes());
    }
}

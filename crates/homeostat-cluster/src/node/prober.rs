//! Asks containers how they are.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::container::Running;
use super::host::Host;
use super::machine::ProbeKind;
use super::worker::Message;

/// No more of an answer's body is read.
const LONGEST_ANSWER: usize = 10 * 1024;

/// One probe of one run of a container.
pub(super) struct Prober {
    pub(super) host: Arc<Host>,
    pub(super) container: Container,
    pub(super) running: Running,
    pub(super) attempt: i32,
    pub(super) ip: Ipv4Addr,
    pub(super) kind: ProbeKind,
    pub(super) probe: Probe,
}

impl Prober {
    /// Asks until the worker is gone; the other kinds wait until `started` is true.
    pub(super) async fn run(
        self,
        mut started: watch::Receiver<bool>,
        answers: mpsc::Sender<Message>,
    ) {
        let env = &self.host.env;
        let seconds = |value: Option<i32>, default: i32| {
            Duration::from_secs(value.unwrap_or(default).max(0).unsigned_abs().into())
        };
        if self.kind != ProbeKind::Startup && started.wait_for(|started| *started).await.is_err() {
            return;
        }
        env.sleep(seconds(self.probe.initial_delay_seconds, 0)).await;
        let limit = seconds(self.probe.timeout_seconds, 1).max(Duration::from_secs(1));
        loop {
            let answer = env.timeout(limit, self.ask()).await;
            let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")));
            let name = self.container.name.clone();
            let message = Message::Probed { name, attempt: self.attempt, kind: self.kind, answer };
            if answers.send(message).await.is_err() {
                return;
            }
            if self.kind == ProbeKind::Startup && *started.borrow() {
                return;
            }
            env.sleep(seconds(self.probe.period_seconds, 10).max(Duration::from_secs(1))).await;
        }
    }

    async fn ask(&self) -> Result<(), String> {
        if let Some(exec) = &self.probe.exec {
            return self.running.exec(exec.command.clone().unwrap_or_default()).await;
        }
        if let Some(get) = &self.probe.http_get {
            return http_get(get, &self.container, self.ip).await;
        }
        if let Some(socket) = &self.probe.tcp_socket {
            return tcp(socket, &self.container, self.ip).await;
        }
        Err("the probe has no action that this node knows (exec, httpGet, tcpSocket)".into())
    }
}

/// The number of a port given by number or by name.
pub(super) fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let ports = container.ports.iter().flatten();
            let named = ports.clone().find(|port| port.name.as_ref() == Some(name));
            match named {
                Some(port) => port.container_port,
                None => name.parse().map_err(|_| format!("no port is named {name:?}"))?,
            }
        }
    };
    u16::try_from(number).map_err(|_| format!("{number} is not a port"))
}

async fn tcp(socket: &TCPSocketAction, container: &Container, ip: Ipv4Addr) -> Result<(), String> {
    let host = socket.host.clone().unwrap_or_else(|| ip.to_string());
    let port = port(&socket.port, container)?;
    let connected = TcpStream::connect((host.as_str(), port)).await;
    connected.map(drop).map_err(|error| format!("dial tcp {host}:{port}: {error}"))
}

/// A GET that is answered with 2xx or 3xx.
pub(super) async fn http_get(
    get: &HTTPGetAction,
    container: &Container,
    ip: Ipv4Addr,
) -> Result<(), String> {
    let host = get.host.clone().unwrap_or_else(|| ip.to_string());
    let port = port(&get.port, container)?;
    let path = get.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let url = format!("http://{host}:{port}{path}");
    if get.scheme.as_deref() == Some("HTTPS") {
        return Err(format!("Get {url:?}: this node probes plain HTTP only"));
    }
    let failed = |error: &dyn std::error::Error| format!("Get {url:?}: {error}");
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    let connection = tokio::spawn(connection);
    let mut request = http::Request::get(path).header("host", format!("{host}:{port}"));
    request = request.header("user-agent", "kube-probe/1.36").header("connection", "close");
    for header in get.http_headers.iter().flatten() {
        request = request.header(&header.name, &header.value);
    }
    let request = request.body(Empty::<bytes::Bytes>::new()).map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let status = answer.status();
    // Read to the end so that the program does not see a broken pipe.
    let _ = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
    connection.abort();
    if status.is_success() || status.is_redirection() {
        return Ok(());
    }
    Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()))
}

//! Asks containers how they are.

mod grpc;
pub(super) mod http;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use homeostat_env::Env;
use k8s_openapi::api::core::v1::{Container, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::container::Running;
use super::host::Host;
use super::machine::ProbeKind;
use super::worker::Message;

/// Who asks, as programs see it.
const USER_AGENT: &str = "kube-probe/1.36";

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
        let began = env.instant();
        let seconds = |value: Option<i32>, default: i32| {
            Duration::from_secs(value.unwrap_or(default).max(0).unsigned_abs().into())
        };
        let due = began + seconds(self.probe.initial_delay_seconds, 0);
        let waits = (self.kind != ProbeKind::Startup).then_some(&mut started);
        if !first_is_due(env, due, waits).await {
            return;
        }
        let limit = seconds(self.probe.timeout_seconds, 1).max(Duration::from_secs(1));
        loop {
            let answer = env.timeout(limit, self.ask()).await;
            let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")));
            let name = self.container.name.clone();
            let message = Message::Probed { name, attempt: self.attempt, kind: self.kind, answer };
            if answers.send(message).await.is_err() {
                return;
            }
            env.sleep(seconds(self.probe.period_seconds, 10).max(Duration::from_secs(1))).await;
            if self.kind == ProbeKind::Startup && *started.borrow() {
                return;
            }
        }
    }

    async fn ask(&self) -> Result<(), String> {
        if let Some(exec) = &self.probe.exec {
            return self.running.exec(exec.command.clone().unwrap_or_default()).await;
        }
        if let Some(get) = &self.probe.http_get {
            return http::get(get, &self.container, self.ip).await;
        }
        if let Some(socket) = &self.probe.tcp_socket {
            return tcp(socket, &self.container, self.ip).await;
        }
        if let Some(action) = &self.probe.grpc {
            return grpc::check(action, self.ip).await;
        }
        Err("the probe has no action".into())
    }
}

/// Waits until a probe is to be asked for the first time: at `due`, which counts from the start of
/// the container, and not before the container has `started`. False when it never will.
async fn first_is_due(
    env: &Env,
    due: Instant,
    started: Option<&mut watch::Receiver<bool>>,
) -> bool {
    if let Some(started) = started
        && started.wait_for(|started| *started).await.is_err()
    {
        return false;
    }
    env.sleep_until(due).await;
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_initial_delay_counts_from_the_start_of_the_container() {
        let env = Env::simulated(1, jiff::Timestamp::UNIX_EPOCH);
        for (delay, startup, first) in [(0, 20, 20), (15, 20, 20), (30, 20, 30)] {
            let began = env.instant();
            let (sender, mut started) = watch::channel(false);
            let due = began + Duration::from_secs(delay);
            let starts = async {
                env.sleep(Duration::from_secs(startup)).await;
                sender.send_replace(true);
            };
            let (asked, ()) = tokio::join!(first_is_due(&env, due, Some(&mut started)), starts);
            assert!(asked);
            assert_eq!((env.instant() - began).as_secs(), first);
        }
    }
}

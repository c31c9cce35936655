//! Starting and stopping one container: the steps between the pod machine and a process.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as ContainerSpec, LifecycleHandler, Pod};

use super::configuration::{self, Problem};
use super::host::Host;
use super::image::{self, StopSignal};
use super::logs::{self, Limits, Log, Options};
use super::machine::{Notice, StartFailure};
use super::process::{Container, StartError};
use super::sandbox::{Input, Mount, Program, Spec, Tier};
use super::volumes::{Current, Volumes};

const TERMINATION_MESSAGE: &str = "/dev/termination-log";
/// Runs whose logs stay when a new one begins: `kubectl logs --previous` reads them.
const EARLIER_LOGS: usize = 1;
const LONGEST_MESSAGE: usize = 4096;
const LONGEST_MESSAGE_FROM_LOG: usize = 2048;
/// What a program has after a hook that took all of the grace.
const SHORTEST_GRACE: Duration = Duration::from_secs(2);
const SIGKILL: i32 = nix::sys::signal::Signal::SIGKILL as i32;

/// A container that runs.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) id: String,
    pub(super) process: Container,
    pub(super) log: Log,
    pub(super) stop_signal: StopSignal,
    /// When a token in its volumes is to be renewed.
    pub(super) renewal: Option<Timestamp>,
    directory: PathBuf,
}

/// Makes volumes, environment and sandbox, and starts the program.
pub(super) async fn start(
    host: &Host,
    pod: &Pod,
    spec: &ContainerSpec,
    attempt: i32,
    ip: Ipv4Addr,
    volumes: &Volumes,
) -> Result<Running, StartFailure> {
    let reference = spec.image.as_deref().unwrap_or_default();
    image::check_name(reference).map_err(|wrong| StartFailure::ImageName(wrong.to_string()))?;
    let image =
        image::resolve(reference).map_err(|missing| StartFailure::Image(missing.to_string()))?;
    let note = |reason, message| host.note(pod, &Notice { warning: false, reason, message });
    note("Pulled", format!("Container image {reference:?} already present on machine"));
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let root = host.data.join("pods").join(uid);
    let directory = root.join("containers").join(&spec.name);
    let place = host.place(ip);
    let configured = |problem: Problem| StartFailure::Configuration(problem.0);
    let unmounted = |problem: Problem| StartFailure::Volume(problem.0);
    let Current { sources, paths: volumes, renewal } =
        volumes.update(host, pod, ip).await.map_err(unmounted)?;
    let links = configuration::links(pod, &host.services().await, |port| host.answered_at(port));
    let env = configuration::environment(pod, spec, &image, &sources, &place, &links)
        .map_err(configured)?;
    let failed = |error: std::io::Error| StartFailure::Sandbox(error.to_string());
    tokio::fs::create_dir_all(directory.join("root")).await.map_err(failed)?;
    let mut mounts =
        configuration::mounts(pod, spec, &image, &volumes, &env, &directory).map_err(configured)?;
    let argv = configuration::command(spec, &image, &env);
    if argv.is_empty() {
        return Err(StartFailure::Sandbox("no command specified".into()));
    }
    let tier = host.helper.tier();
    let env = finish_environment(env, &volumes, tier);
    if tier == Tier::Raw {
        if !mounts.is_empty() {
            let message = "this host allows no mount namespaces: volumes are not at their mount \
                           paths but where HOMEOSTAT_VOLUME_<NAME> says";
            host.note(
                pod,
                &Notice { warning: true, reason: "NoMountNamespace", message: message.into() },
            );
        }
    } else {
        let source = directory.join("termination-log");
        tokio::fs::write(&source, "").await.map_err(failed)?;
        allow_everyone_to_write(&source);
        let target = spec.termination_message_path.as_deref().unwrap_or(TERMINATION_MESSAGE);
        mounts.push(Mount { source, target: target.into(), read_only: false });
    }
    let Identity { user, group, groups } = identity(pod, spec);
    let rootless = image.rootless_user.filter(|_| tier == Tier::User);
    let sandbox = Spec {
        tier,
        hostname: configuration::hostname(pod),
        scratch: directory.join("root"),
        mounts,
        input: input(spec),
        ports: (ip != Host::ip()).then(|| host.helper.ports(ip)),
        program: Program {
            argv,
            env,
            directory: spec.working_dir.as_ref().filter(|path| !path.is_empty()).map(PathBuf::from),
            user: user.or(rootless),
            group,
            groups,
        },
    };
    // A container that crashes for ever must not fill the disk.
    logs::keep_last(&directory, EARLIER_LOGS).await;
    let log = Log::create(directory.join(attempt.to_string()), Limits::default()).await;
    let log = log.map_err(failed)?;
    note("Created", format!("Created container: {}", spec.name));
    let started = match host.helper.start(sandbox).await {
        Ok(started) => started,
        Err(error) => {
            log.discard().await;
            return Err(match error {
                StartError::Sandbox(message) => StartFailure::Sandbox(message),
                StartError::Program(message) => StartFailure::Program(message),
            });
        }
    };
    note("Started", format!("Started container {}", spec.name));
    if let Some(why) = &started.shares_ports {
        let message = format!(
            "this host lets no program have ports of its own ({why}): a program of the Pod that \
             listens on every address takes the port from the host and from other Pods; let it \
             listen on $POD_IP"
        );
        tracing::warn!(container = spec.name, message);
        host.note(pod, &Notice { warning: true, reason: "SharedPorts", message });
    }
    let out = logs::pump(log.clone(), "stdout", started.stdout, host.env.clone());
    let err = logs::pump(log.clone(), "stderr", started.stderr, host.env.clone());
    let complete = log.clone();
    tokio::spawn(async move {
        tokio::join!(out, err);
        complete.close();
    });
    let id = format!("homeostat://{}", host.env.uid().replace('-', ""));
    let stop_signal = image.stop_signal;
    Ok(Running { id, process: started.container, log, stop_signal, renewal, directory })
}

/// Sorted variables, and in the raw tier where the volumes really are.
fn finish_environment(
    mut env: Vec<(String, String)>,
    volumes: &BTreeMap<String, PathBuf>,
    tier: Tier,
) -> Vec<(String, String)> {
    if tier == Tier::Raw {
        for (name, path) in volumes {
            let name = name.to_uppercase().replace(['-', '.'], "_");
            env.push((format!("HOMEOSTAT_VOLUME_{name}"), path.display().to_string()));
        }
    }
    env
}

/// Where the program reads from.
fn input(spec: &ContainerSpec) -> Input {
    let once = spec.stdin_once == Some(true);
    match (spec.tty == Some(true), spec.stdin == Some(true)) {
        (true, _) => Input::Terminal { once },
        (false, true) => Input::Pipe { once },
        (false, false) => Input::Nothing,
    }
}

fn allow_everyone_to_write(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    // A container of another user loses its last words, nothing more.
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666));
}

/// Who a container's program is.
struct Identity {
    user: Option<u32>,
    group: Option<u32>,
    groups: Vec<u32>,
}

/// `runAsUser` and `runAsGroup`, the container's or else the Pod's, and the Pod's further groups.
fn identity(pod: &Pod, spec: &ContainerSpec) -> Identity {
    let own = spec.security_context.as_ref();
    let shared = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let pick = |own: Option<i64>, shared: Option<i64>| {
        own.or(shared).and_then(|id| u32::try_from(id).ok())
    };
    let user = pick(own.and_then(|one| one.run_as_user), shared.and_then(|one| one.run_as_user));
    let group = pick(own.and_then(|one| one.run_as_group), shared.and_then(|one| one.run_as_group));
    let further = shared.and_then(|one| one.supplemental_groups.as_ref()).into_iter().flatten();
    let further = shared.and_then(|one| one.fs_group.as_ref()).into_iter().chain(further);
    let groups = further.filter_map(|id| u32::try_from(*id).ok()).collect();
    Identity { user, group, groups }
}

impl Running {
    /// Waits for the end of the program and of its output: exit code and last words.
    pub(super) async fn end(&self, spec: &ContainerSpec) -> (i32, Option<String>) {
        let code = self.process.wait().await;
        let mut progress = self.log.progress();
        // An error means that the log is closed for good.
        let _ = progress.wait_for(|(_, closed)| *closed).await;
        (code, self.last_words(spec, code).await)
    }

    async fn last_words(&self, spec: &ContainerSpec, code: i32) -> Option<String> {
        let file = self.directory.join("termination-log");
        let mut said = tokio::fs::read(file).await.unwrap_or_default();
        said.truncate(LONGEST_MESSAGE);
        let fall_back = spec.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        if said.is_empty() && fall_back && code != 0 {
            let options = Options { tail: Some(80), ..Options::default() };
            said = logs::read(&self.log, &options).await.unwrap_or_default();
            let from = said.len().saturating_sub(LONGEST_MESSAGE_FROM_LOG);
            said.drain(..from);
        }
        (!said.is_empty()).then(|| String::from_utf8_lossy(&said).into_owned())
    }

    /// `preStop`, the stop signal, and after the grace the end of everything inside. A hook that
    /// takes all of the grace leaves the program a moment to see the signal.
    pub(super) async fn stop(
        &self,
        host: &Host,
        spec: &ContainerSpec,
        ip: Ipv4Addr,
        grace: Duration,
    ) {
        let deadline = host.env.instant() + grace;
        let hook = spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        let mut left = grace;
        if let Some(hook) = hook.filter(|_| !grace.is_zero()) {
            match host.env.timeout(grace, self.hook(host, hook, spec, ip)).await {
                Ok(Ok(())) => {}
                Ok(Err(words)) => tracing::warn!(container = spec.name, words, "preStop failed"),
                Err(_) => tracing::warn!(container = spec.name, "preStop took all of the grace"),
            }
            left = deadline.duration_since(host.env.instant()).max(SHORTEST_GRACE);
        }
        self.process.signal(self.stop_signal.number()).await;
        self.kill_after(host, left).await;
    }

    /// Ends everything inside, unless the program ends by itself within the grace.
    pub(super) async fn kill_after(&self, host: &Host, grace: Duration) {
        if host.env.timeout(grace, self.process.wait()).await.is_err() {
            self.kill().await;
        }
    }

    /// Runs a lifecycle hook.
    pub(super) async fn hook(
        &self,
        host: &Host,
        hook: &LifecycleHandler,
        spec: &ContainerSpec,
        ip: Ipv4Addr,
    ) -> Result<(), String> {
        if let Some(exec) = &hook.exec {
            return self.exec(exec.command.clone().unwrap_or_default()).await;
        }
        if let Some(get) = &hook.http_get {
            return super::prober::http::get(get, spec, ip).await;
        }
        if let Some(pause) = &hook.sleep {
            host.env.sleep(Duration::from_secs(pause.seconds.max(0).cast_unsigned())).await;
        }
        Ok(())
    }

    /// Runs a command inside; `Err` holds what it said.
    pub(super) async fn exec(&self, argv: Vec<String>) -> Result<(), String> {
        let mut command = self.process.enter(argv, false).map_err(|error| error.to_string())?;
        let done =
            command.stdin(Stdio::null()).output().await.map_err(|error| error.to_string())?;
        if done.status.success() {
            return Ok(());
        }
        let said = [done.stdout, done.stderr].concat();
        Err(String::from_utf8_lossy(&said).trim().chars().take(LONGEST_MESSAGE).collect())
    }

    /// Ends everything inside now.
    pub(super) async fn kill(&self) {
        self.process.signal(SIGKILL).await;
    }
}

//! Same seed, same trace, in two processes: the At operator on the embedded API and virtual time.
//!
//! Run without arguments it starts itself twice with one seed and compares what the two wrote,
//! byte by byte; with `--trace SEED` it is one of the two. (It has no test harness, so that the
//! second process is the very same program and prints nothing but its trace.)

#![allow(clippy::print_stdout, reason = "the trace is what it prints")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use homeostat::cache::{Caches, Scope};
use homeostat::k8s_openapi::api::core::v1::Event;
use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::{Context, Controller, Env, Kind, Manager, Outcome, Result};
use homeostat_apiserver::{Server, ServerConfig};
use jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use operator_at::{At, AtSpec};
use serde_json::json;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, seed] = arguments.as_slice()
        && flag == "--trace"
    {
        print!("{}", trace(seed.parse().expect("a seed is a number")));
        return ExitCode::SUCCESS;
    }
    let (first, second, other) = (in_a_process("7"), in_a_process("7"), in_a_process("8"));
    assert!(first.lines().count() > 20, "the trace tells something:\n{first}");
    assert_eq!(first, second, "one seed, two traces");
    assert_ne!(first, other, "the seed matters: uids come from it");
    println!(
        "test same_seed_same_trace_in_two_processes ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored"
    );
    ExitCode::SUCCESS
}

fn in_a_process(seed: &str) -> String {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).args(["--trace", seed]).output().expect("it starts again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a trace is text")
}

/// An hour in the life of the operator: several Ats, a bad one, one that is deleted while it runs.
fn trace(seed: u64) -> String {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let start: Timestamp = "2026-11-15T10:00:00Z".parse().expect("a time");
        let env = Env::simulated(seed, start);
        let client = Client::new(Server::new(ServerConfig::new(env.clone())), "default");
        let manager = Manager::new(client.clone(), env.clone())
            .with_crd::<At>()
            .with(operator_at::controller())
            .with(Controller::new(run_pod).named("kubelet"));
        let journal = manager.journal();
        let running = manager.start().await.expect("the manager starts");
        let ats: Api<At> = Api::default_namespaced(client.clone());
        for (name, schedule, command) in [
            ("soon", "2026-11-15T10:00:30Z", "echo soon"),
            ("past", "2020-01-01T00:00:00Z", "echo past"),
            ("failing", "2026-11-15T10:10:00+00:00", "false"),
            ("broken", "2026-02-30T10:00:00Z", "echo never"),
            ("doomed", "2026-11-15T10:20:00Z", "sleep 600"),
        ] {
            let spec = AtSpec { schedule: schedule.to_owned(), command: command.to_owned() };
            ats.create(&PostParams::default(), &At::new(name, spec))
                .await
                .expect("an At is created");
        }
        env.sleep(Duration::from_secs(1230)).await;
        ats.delete("doomed", &DeleteParams::default()).await.expect("an At is deleted");
        env.sleep(Duration::from_secs(2370)).await;
        running.stop().await.expect("the manager stops");
        format!("{journal}\n{}", objects(&client, &env).await)
    })
}

/// A node agent of three lines: a Pod runs for five seconds and ends as its command would.
async fn run_pod(pod: std::sync::Arc<Pod>, ctx: Context<Pod>) -> Result<Outcome> {
    if pod.spec.iter().any(|spec| spec.scheduling_gates.as_ref().is_some_and(|g| !g.is_empty())) {
        return Ok(Outcome::Done);
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let fails = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .flat_map(|c| c.command.iter().flatten())
        .any(|word| word == "false");
    let (next, outcome) = match phase {
        Some("Running")
            if ctx.triggers().iter().any(|t| matches!(t, homeostat::Trigger::Timer)) =>
        {
            (if fails { "Failed" } else { "Succeeded" }, Outcome::Done)
        }
        Some("Running") => return Ok(Outcome::RequeueAfter(Duration::from_secs(5))),
        Some("Succeeded" | "Failed") => return Ok(Outcome::Done),
        _ => ("Running", Outcome::RequeueAfter(Duration::from_secs(5))),
    };
    let pods: Api<Pod> = Api::default_namespaced(ctx.client().clone());
    let patch = Patch::Merge(json!({ "status": { "phase": next } }));
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await?;
    Ok(outcome)
}

/// Every object the hour left behind, as the API has it.
async fn objects(client: &Client, env: &Env) -> String {
    let caches = Caches::with_managed_fields(client.clone(), env.clone());
    let mut text = String::new();
    for kind in [Kind::of::<At>(), Kind::of::<Pod>(), Kind::of::<Event>()] {
        let informer = caches.informer(kind, Scope::default());
        informer.start();
        informer.wait_for_sync().await;
        for entry in informer.entries() {
            text.push_str(&entry.value().expect("an object is JSON").to_string());
            text.push('\n');
        }
    }
    text
}

//! What the compiler says of a reconcile function that is none: words that help. The rest of the
//! compiler's output is its own affair.
//!
//! It asks the compiler itself, about the library that this test is linked with.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo put what this test was built from.
fn folder() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The newest build of the library.
fn library(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let ours = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libhomeostat-") && name.ends_with(".rlib")
    });
    ours.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap()
}

/// What the compiler says of a program that runs `reconcile`.
fn complaint(reconcile: &str, controller: &str) -> String {
    let folder = folder();
    let source = format!(
        "use std::sync::Arc;
         use homeostat::{{Context, Controller, Outcome, Result}};
         use homeostat::k8s_openapi::api::core::v1::ConfigMap;
         {reconcile}
         fn main() {{ let _ = {controller}; }}"
    );
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("main.rs"), source).unwrap();
    let asked = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["--edition=2024", "--emit=metadata", "--color=never"])
        .arg(format!("--out-dir={}", place.path().display()))
        .arg(format!("-Ldependency={}", folder.display()))
        .arg(format!("--extern=homeostat={}", library(&folder).display()))
        .arg(place.path().join("main.rs"))
        .output()
        .unwrap();
    String::from_utf8(asked.stderr).unwrap()
}

const WANTED: &str =
    "async fn reconcile(object: Arc<K>, ctx: Context<K>) -> homeostat::Result<Outcome>";

#[test]
fn a_function_without_a_result_is_told_what_one_looks_like() {
    let words = complaint(
        "async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) {}",
        "Controller::<ConfigMap>::new(reconcile)",
    );
    assert!(words.contains("cannot reconcile `") && words.contains("ConfigMap`"), "{words}");
    assert!(words.contains(WANTED), "{words}");
}

#[test]
fn a_function_without_a_context_is_told_what_is_missing() {
    let words = complaint(
        "async fn reconcile(_: Arc<ConfigMap>) -> Result<Outcome> { Ok(Outcome::Done) }",
        "Controller::<ConfigMap>::new(reconcile)",
    );
    assert!(words.contains("expected function that takes 2 arguments"), "{words}");
}

#[test]
fn a_function_with_errors_of_its_own_or_without_async_is_told_what_one_looks_like() {
    for (form, result) in
        [("async fn", "std::result::Result<Outcome, String>"), ("fn", "Result<Outcome>")]
    {
        let words = complaint(
            &format!(
                "{form} reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> {result} {{
                     Ok(Outcome::Done)
                 }}"
            ),
            "Controller::new(reconcile)",
        );
        assert!(words.contains("cannot reconcile `ConfigMap`"), "{words}");
        assert!(words.contains(WANTED), "{words}");
    }
}

#[test]
fn a_function_of_something_else_is_told_what_it_is_given() {
    for arguments in
        ["_: Context<ConfigMap>, _: Arc<ConfigMap>", "_: &ConfigMap, _: Context<ConfigMap>"]
    {
        let words = complaint(
            &format!("async fn reconcile({arguments}) -> Result<Outcome> {{ Ok(Outcome::Done) }}"),
            "Controller::new(reconcile)",
        );
        let wanted = "expected function signature `fn(Arc<_>, homeostat::Context<_>) -> _`";
        assert!(words.contains(wanted), "{words}");
    }
}

#[test]
fn a_function_that_cannot_move_between_threads_is_told_so() {
    let words = complaint(
        "async fn reconcile(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Outcome> {
             let held = std::rc::Rc::new(1);
             ctx.get::<ConfigMap>(\"a\").await?;
             Ok(if *held == 1 { Outcome::Done } else { Outcome::Requeue })
         }",
        "Controller::new(reconcile)",
    );
    assert!(words.contains("`Send`"), "{words}");
}

#[test]
fn a_type_that_is_no_object_is_told_how_to_become_one() {
    let words = complaint(
        "async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> {
             Ok(Outcome::Done)
         }",
        "Controller::new(reconcile).owns::<String>()",
    );
    assert!(words.contains("String` is not a Kubernetes object"), "{words}");
    assert!(words.contains("kube::CustomResource"), "{words}");
}

#[test]
fn a_proper_function_is_no_reason_to_complain() {
    let words = complaint(
        "async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Outcome> {
             Ok(Outcome::Done)
         }",
        "Controller::new(reconcile)",
    );
    assert!(words.is_empty(), "{words}");
}

//! Certificates whose files change, and whose Secret cannot be followed for a while.

use std::path::Path;
use std::time::SystemTime;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use tempfile::TempDir;

use super::super::converse::tests::of_one;
use super::super::tests::{made, nobody};
use super::*;
use crate::cache::{CUT_OFF, Caches, Scope};
use crate::controller::is_decided;
use crate::kind::Kind;
use crate::watch::script::{Answer, End, Script, bookmark, page, refused, streamed};

fn write(folder: &Path, minute: u64, (certificate, key): (&str, &str)) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minute);
    for (name, text) in [("tls.crt", certificate), ("tls.key", key)] {
        std::fs::write(folder.join(name), text).unwrap();
        let file = std::fs::File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(time).unwrap();
    }
}

/// A certificate in a folder, and when it is.
async fn in_a_folder(certificate: &str, key: &str) -> (Arc<Current>, TempDir, Env) {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1, (certificate, key));
    let origin = Certificate::folder(folder.path());
    let current = Current::load(origin, &nobody(), env.clone()).await.unwrap();
    (Arc::new(current), folder, env)
}

async fn shown(current: &Arc<Current>) -> *const rustls::ServerConfig {
    Arc::as_ptr(current.acceptor().await.unwrap().config())
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
    let (first, second) = (made(), made());
    let (current, folder, env) = in_a_folder(&first.0, &first.1).await;
    let before = shown(&current).await;
    write(folder.path(), 2, ("nonsense", "nonsense"));
    assert_eq!(shown(&current).await, before, "not looked at yet");
    env.sleep(LOOK_EVERY).await;
    assert_eq!(shown(&current).await, before, "the last good one");
    assert!(current.problem().unwrap().contains("key of the certificate cannot be read"));
    write(folder.path(), 3, (&second.0, &second.1));
    env.sleep(LOOK_EVERY).await;
    assert_ne!(shown(&current).await, before);
    assert_eq!(current.problem(), None);
}

#[tokio::test(start_paused = true)]
async fn files_that_are_mended_are_used_though_nobody_connects_any_more() {
    let (first, second) = (made(), made());
    let (current, folder, env) = in_a_folder(&first.0, &first.1).await;
    let before = shown(&current).await;
    write(folder.path(), 2, (&second.0, &first.1));
    assert_eq!(current.problem(), None, "not looked at yet");
    env.sleep(LOOK_EVERY).await;
    assert!(current.problem().unwrap().contains("the certificate cannot be used"));
    write(folder.path(), 3, (&second.0, &second.1));
    env.sleep(LOOK_EVERY).await;
    assert_eq!(current.problem(), None);
    assert_ne!(shown(&current).await, before);
}

#[tokio::test(start_paused = true)]
async fn files_that_come_back_as_they_were_are_no_problem() {
    let (first, second) = (made(), made());
    let (current, folder, env) = in_a_folder(&first.0, &first.1).await;
    let before = shown(&current).await;
    write(folder.path(), 2, (&second.0, &first.1));
    env.sleep(LOOK_EVERY).await;
    assert_eq!(shown(&current).await, before);
    assert!(current.problem().is_some());
    write(folder.path(), 1, (&first.0, &first.1));
    env.sleep(LOOK_EVERY).await;
    assert_eq!(shown(&current).await, before);
    assert_eq!(current.problem(), None);
}

/// A certificate whose renewal needs an object that an API tells of in this way.
async fn following(answers: impl IntoIterator<Item = Answer>) -> (Arc<Current>, Informer, Env) {
    let env = Env::simulated(1, Timestamp::UNIX_EPOCH);
    let (current, _) = of_one(&env).await;
    let caches = Caches::new(Script::new(&env, answers).client(), env.clone());
    let informer = caches.informer(Kind::of::<Secret>(), Scope::default());
    informer.start();
    current.follow(vec![informer.clone()]);
    let decided = informer.wait_for_state(is_decided);
    env.timeout(Duration::from_secs(60), decided).await.unwrap();
    (current, informer, env)
}

fn is_pending(state: &SourceState) -> bool {
    matches!(state, SourceState::Pending(_))
}

#[tokio::test(start_paused = true)]
async fn an_api_that_is_away_for_a_moment_leaves_its_webhooks_ready() {
    let second = Duration::from_secs(1);
    let away = |times| (0..times).map(|_| refused(503, "not now"));
    let first = streamed(&[], 10, &[], End::Break);
    let back = streamed(&[], 20, &[bookmark(21)], End::CloseAfter(2 * CUT_OFF));
    let answers = [first].into_iter().chain(away(5)).chain([back]).chain(away(20));
    let (current, informer, env) = following(answers).await;
    for _ in 0..2 {
        informer.wait_for_state(is_pending).await;
        for _ in 1..CUT_OFF.as_secs() {
            assert_eq!(current.problem(), None);
            env.sleep(second).await;
        }
    }
    env.sleep(second).await;
    assert!(current.problem().unwrap().contains("not now"), "but not for minutes");
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_never_watch_is_not_ready() {
    let first = [refused(422, "no streaming")];
    let rounds = (0..20).flat_map(|_| [page(&[], 10, None), refused(403, "no watch")]);
    let (current, informer, env) = following(first.into_iter().chain(rounds)).await;
    informer.wait_for_state(is_pending).await;
    env.sleep(CUT_OFF).await;
    informer.wait_for_state(is_pending).await;
    assert!(current.problem().unwrap().contains("no watch"));
}

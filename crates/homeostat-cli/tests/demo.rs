//! `homeostat up --demo`: all four operators at once, from nothing to converged and back to nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod running;

use nix::sys::signal::Signal;
use running::{Up, eventually};

mod postgresql {
    use super::*;
    use crate::running::psql;

    #[test]
    fn the_demo_converges_and_nothing_is_left_when_every_custom_resource_is_deleted() {
        let up = Up::start(&["--demo"]);
        for object in ["webapp/hello", "database/shop", "logicaldatabase/orders"] {
            up.kubectl(&["wait", object, "--for=condition=Ready", "--timeout=120s"]);
        }
        up.wait_for("at/greeting", ".status.phase", "DONE");
        let administrator = up.secret("shop-credentials", "uri");
        let roles = "SELECT count(*) FROM pg_roles WHERE rolname = 'orders'";
        assert_eq!(psql(&administrator, roles).as_deref(), Some("1"));

        up.kubectl(&["delete", "ats,webapps,logicaldatabases", "--all", "--timeout=120s"]);
        assert_eq!(psql(&administrator, roles).as_deref(), Some("0"), "no role is left");
        up.kubectl(&["delete", "databases", "--all", "--timeout=120s"]);
        let kinds = "ats,webapps,databases,logicaldatabases,deployments,replicasets,statefulsets,\
                     controllerrevisions,jobs,pods,secrets,persistentvolumeclaims,persistentvolumes";
        eventually("no object is left", || {
            up.kubectl(&["get", kinds, "-o", "name"]).is_empty().then_some(())
        });
        eventually("no Service is left but the API's own", || {
            let left = up.kubectl(&["get", "services,endpoints,endpointslices", "-o", "name"]);
            left.lines().all(|line| line.ends_with("/kubernetes")).then_some(())
        });
        eventually("no process is left", || up.descendants().is_empty().then_some(()));
    }
}

#[test]
fn the_demo_tells_every_correction_once_however_quick_it_was() {
    let up = Up::start(&["--demo", "--with", "webapp"]);
    let told = |words: &str| up.said().lines().filter(|line| line.contains(words)).count();
    let heard = |words: &str, times: usize| {
        eventually(&format!("{times} times {words:?}"), || (told(words) >= times).then_some(()));
    };
    let corrected = "WebApp hello: Corrected: Deployment hello is as declared again";
    let created = "WebApp hello: Created: created Deployment hello";
    up.kubectl(&["wait", "webapp/hello", "--for=condition=Ready", "--timeout=60s"]);
    heard(created, 1);
    for time in 1..=3 {
        up.kubectl(&["scale", "deployment", "hello", "--replicas=5"]);
        heard(corrected, time);
    }
    let back = "WebApp hello: Corrected: Deployment hello was lost and is there again";
    up.kubectl(&["delete", "deployment", "hello"]);
    heard(back, 1);
    up.kubectl(&["wait", "webapp/hello", "--for=condition=Ready", "--timeout=60s"]);
    heard("WebApp hello: 2 of 2", 2);
    assert_eq!((told(corrected), told(created), told(back)), (3, 1, 1), "{}", up.said());
}

#[test]
fn every_line_of_a_demo_without_a_terminal_has_a_time_and_the_last_says_what_to_try() {
    let up = Up::start(&["--demo", "--with", "webapp"]);
    let said = eventually("it says what to do", || {
        let said = up.said();
        said.contains("Ctrl-C").then_some(said)
    });
    let timed = |line: &str| {
        let (time, _) = line.split_once("Z ").unwrap_or_default();
        let parts: Vec<&str> = time.split(':').collect();
        parts.len() == 3 && parts.iter().all(|part| part.len() == 2 && part.parse::<u8>().is_ok())
    };
    assert!(said.lines().all(timed), "{said}");
    let (before, advice) = said.split_once("In another terminal").unwrap();
    assert!(before.contains("WebApp hello: 2 of 2"), "there is nothing to wait for: {said}");
    let advice: Vec<&str> = advice.lines().collect();
    let way = format!("export KUBECONFIG={}", up.kubeconfig.display());
    assert!(advice[0].ends_with(&way), "{said}");
    assert!(advice[1].contains("kubectl delete deployment hello"), "{said}");
}

#[test]
fn a_demo_that_is_started_again_on_its_data_leaves_its_objects_as_the_user_left_them() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let start = |with: &str| {
        let up = Up::start(&["--demo", "--with", with, "--data", data.to_str().unwrap()]);
        // Its objects are made before anything is shown of them.
        eventually("it shows its objects", || up.said().contains("At greeting").then_some(()));
        up
    };
    let up = start("at");
    let schedule = up.value("at/greeting", ".spec.schedule");
    up.wait_for("at/greeting", ".status.phase", "DONE");
    up.end(Signal::SIGKILL);

    let up = start("at,webapp");
    up.kubectl(&["wait", "webapp/hello", "--for=condition=Ready", "--timeout=60s"]);
    assert_eq!(up.value("at/greeting", ".spec.schedule"), schedule);
    up.kubectl(&["scale", "webapp", "hello", "--replicas=1"]);
    up.wait_for("webapp/hello", ".status.availableReplicas", "1");
    up.end(Signal::SIGTERM);

    let up = start("at,webapp");
    assert_eq!(up.value("webapp/hello", ".spec.replicas"), "1", "an edit stays");
    up.kubectl(&["delete", "webapp", "hello"]);
    up.end(Signal::SIGTERM);

    let up = start("at,webapp");
    assert_eq!(up.try_value("webapp/hello", ".metadata.name"), None, "what was deleted stays away");
    assert_eq!(up.value("at/greeting", ".status.phase"), "DONE");
    let events = up.kubectl(&["events", "-A"]);
    assert!(!events.contains("EditIgnored") && !up.said().contains("EditIgnored"), "{events}");
}

//! `homeostat up --demo`: all four operators at once, from nothing to converged and back to nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod running;

use running::{Up, eventually, psql};

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

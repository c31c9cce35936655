//! What they promise, with a PostgreSQL of this host.

use homeostat_cluster::node::image::postgresql_versions;

use crate::running::{Up, eventually, psql};

/// A Database of a version that this host has.
fn database() -> String {
    let version = postgresql_versions().pop().unwrap_or(15);
    format!(
        "apiVersion: homeostat.dev/v1alpha1\nkind: Database\nmetadata: {{name: shop}}\n\
         spec: {{version: '{version}', storage: 1Gi, replicas: 1, databaseName: shop}}\n"
    )
}

fn logical(policy: &str) -> String {
    format!(
        "apiVersion: homeostat.dev/v1alpha1\nkind: LogicalDatabase\nmetadata: {{name: orders}}\n\
         spec: {{serverSecret: shop-credentials, databaseName: orders, owner: clerk, deletionPolicy: {policy}}}\n"
    )
}

fn with_database() -> (Up, String) {
    with_database_in(Up::start(&["--with", "database,logical-database"]))
}

fn with_database_in(up: Up) -> (Up, String) {
    up.apply(&database());
    up.kubectl(&["wait", "database/shop", "--for=condition=Ready", "--timeout=120s"]);
    let uri = up.secret("shop-credentials", "uri");
    (up, uri)
}

fn with_logical(policy: &str) -> (Up, String, String) {
    let (up, administrator) = with_database();
    up.apply(&logical(policy));
    up.kubectl(&["wait", "logicaldatabase/orders", "--for=condition=Ready", "--timeout=60s"]);
    let role = up.secret("orders-credentials", "uri");
    (up, administrator, role)
}

#[test]
fn a_database_takes_no_root() {
    let (up, uri) = with_database_in(Up::start_as_ordinary_user(&["--with", "database"]));
    assert_eq!(psql(&uri, "SELECT 1").as_deref(), Some("1"));
    let id = up.kubectl(&["exec", "shop-0", "--", "id", "-u"]);
    assert_ne!(id.trim(), "0", "PostgreSQL refuses to run as root");
}

#[test]
fn a_version_that_the_host_does_not_have_is_refused_with_those_it_has() {
    let up = Up::start(&["--with", "database"]);
    up.apply(&database().replace("version: '", "version: '9"));
    up.kubectl(&["wait", "database/shop", "--for=condition=Degraded", "--timeout=60s"]);
    assert_eq!(up.value("database/shop", ".status.ready"), "false");
    let condition = |type_: &str, field: &str| {
        up.value("database/shop", &format!(r#".status.conditions[?(@.type=="{type_}")].{field}"#))
    };
    assert_eq!(condition("Ready", "status"), "False");
    assert!(condition("Degraded", "reason").contains("ImagePull"));
    let versions = postgresql_versions();
    if let Some(version) = versions.first() {
        let words = condition("Degraded", "message");
        assert!(words.contains(&format!("has postgres:{version}")), "{words}");
    }
    let event = eventually("an event says so", || {
        let events = up.kubectl(&["events", "--for", "database/shop", "--types=Warning"]);
        events.contains("ImagePull").then_some(events)
    });
    assert!(event.contains("needs PostgreSQL"), "{event}");
    if let Some(version) = versions.last() {
        let edit = format!(r#"{{"spec":{{"version":"{version}"}}}}"#);
        up.kubectl(&["patch", "database", "shop", "--type=merge", "-p", &edit]);
        up.kubectl(&["wait", "database/shop", "--for=condition=Ready", "--timeout=120s"]);
        assert_eq!(condition("Degraded", "reason"), "", "nothing is left of it");
    }
}

#[test]
fn an_administrator_without_the_right_is_named_and_its_coming_is_noticed() {
    let (up, administrator) = with_database();
    psql(&administrator, "CREATE ROLE weak LOGIN PASSWORD 'weak'").unwrap();
    let host = up.secret("shop-credentials", "host");
    let literals = ["username=weak", "password=weak", "port=5432", "database=shop"];
    let literals = literals.map(str::to_owned).into_iter().chain([format!("host={host}")]);
    let literals: Vec<String> = literals.map(|pair| format!("--from-literal={pair}")).collect();
    let mut create = vec!["create", "secret", "generic", "weak"];
    create.extend(literals.iter().map(String::as_str));
    up.kubectl(&create);
    up.apply(&logical("Delete").replace("shop-credentials", "weak"));
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Degraded", "--timeout=60s"]);
    let degraded = |field: &str| {
        up.value("ldb/orders", &format!(r#".status.conditions[?(@.type=="Degraded")].{field}"#))
    };
    assert_eq!(degraded("reason"), "NotPermitted");
    assert!(degraded("message").contains("permission denied"), "{}", degraded("message"));
    psql(&administrator, "ALTER ROLE weak SUPERUSER").unwrap();
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Ready", "--timeout=60s"]);
    assert_eq!(degraded("reason"), "");
}

#[test]
fn a_database_answers_on_its_uri_and_keeps_its_rows_when_its_pod_is_deleted() {
    let (up, uri) = with_database();
    assert_eq!(eventually("it answers", || psql(&uri, "SELECT 1")), "1");
    assert_eq!(up.value("database/shop", ".status.ready"), "true");
    assert_eq!(
        psql(&uri, "CREATE TABLE t (x int); INSERT INTO t VALUES (42)").as_deref(),
        Some("")
    );

    let before = up.value("pod/shop-0", ".metadata.uid");
    up.kubectl(&["delete", "pod", "shop-0"]);
    eventually("another pod takes over", || {
        (up.try_value("pod/shop-0", ".metadata.uid")? != before).then_some(())
    });
    up.kubectl(&["wait", "pod/shop-0", "--for=condition=Ready", "--timeout=120s"]);
    assert_eq!(eventually("it answers again", || psql(&uri, "SELECT x FROM t")), "42");
}

#[test]
fn nobody_of_ours_is_turned_away_by_a_database_that_begins() {
    let (up, _, _) = with_logical("Delete");
    let log = || up.kubectl(&["logs", "shop-0"]);
    assert!(!log().contains("FATAL"), "{}", log());
    up.kubectl(&["delete", "secret", "orders-credentials"]);
    eventually("the role has another password", || {
        let events = up.kubectl(&["events", "--for", "ldb/orders"]);
        let told = ["Secret orders-credentials was lost and is there again", "in place again"];
        told.iter().all(|words| events.contains(words)).then_some(())
    });
    assert!(!log().contains("FATAL"), "{}", log());

    let before = up.value("pod/shop-0", ".metadata.uid");
    up.kubectl(&["delete", "pod", "shop-0"]);
    eventually("another pod takes over", || {
        (up.try_value("pod/shop-0", ".metadata.uid")? != before).then_some(())
    });
    up.kubectl(&["wait", "pod/shop-0", "--for=condition=Ready", "--timeout=120s"]);
    assert!(log().contains("ready to accept connections"), "{}", log());
    assert!(!log().contains("FATAL"), "{}", log());
}

#[test]
fn a_role_can_log_in_and_is_made_again_when_somebody_drops_it() {
    let (up, administrator, role) = with_logical("Delete");
    assert_eq!(
        psql(&role, "SELECT current_user || '@' || current_database()").as_deref(),
        Some("clerk@orders")
    );
    assert!(up.value("logicaldatabase/orders", ".status.externalId").ends_with(":5432/orders"));

    psql(&administrator, "DROP DATABASE orders WITH (FORCE)").unwrap();
    psql(&administrator, "DROP ROLE clerk").unwrap();
    assert_eq!(
        eventually("the role can log in again", || psql(&role, "SELECT current_user::text")),
        "clerk"
    );
    eventually("an event says so", || {
        let events = up.kubectl(&["events", "--for", "logicaldatabase/orders"]);
        events.contains("Corrected").then_some(())
    });
}

#[test]
fn a_lost_or_edited_secret_comes_to_a_uri_that_works() {
    let (up, old) = with_database();
    assert_eq!(
        psql(&old, "CREATE TABLE t (x int); INSERT INTO t VALUES (42)").as_deref(),
        Some("")
    );
    up.kubectl(&["delete", "secret", "shop-credentials"]);
    let new = eventually("the Secret is there again", || {
        up.try_value("secret/shop-credentials", ".data.uri")
            .map(|_| up.secret("shop-credentials", "uri"))
    });
    assert_ne!(old, new, "the password is lost");
    assert_eq!(eventually("the new uri works", || psql(&new, "SELECT x FROM t")), "42");
    assert_eq!(psql(&old, "SELECT 1"), None, "the old one does not");
    eventually("an event says why the server restarted", || {
        let events = up.kubectl(&["events", "--for", "database/shop"]);
        events.contains("the servers restart with it").then_some(())
    });

    let edit = r#"{"stringData": {"password": "it's @ll mine/"}}"#;
    up.kubectl(&["patch", "secret", "shop-credentials", "--type=merge", "-p", edit]);
    let edited = eventually("the uri follows the password", || {
        let uri = up.secret("shop-credentials", "uri");
        uri.contains("it%27s%20%40ll%20mine%2F@").then_some(uri)
    });
    assert_eq!(eventually("the edited uri works", || psql(&edited, "SELECT x FROM t")), "42");
}

#[test]
fn a_logical_database_is_not_ready_while_its_server_is_away() {
    let (up, _, _) = with_logical("Delete");
    let replicas = |count| format!("{{\"spec\":{{\"replicas\":{count}}}}}");
    up.kubectl(&["patch", "database", "shop", "--type=merge", "-p", &replicas(0)]);
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Ready=False", "--timeout=60s"]);
    assert_eq!(up.value("ldb/orders", ".status.ready"), "false");
    up.kubectl(&["patch", "database", "shop", "--type=merge", "-p", &replicas(1)]);
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Ready", "--timeout=120s"]);
}

#[test]
fn deleting_ends_also_for_a_half_made_database_and_a_role_with_grants() {
    let (up, administrator, _) = with_logical("Delete");
    psql(&administrator, "COMMENT ON DATABASE orders IS NULL").unwrap();
    psql(&administrator, "GRANT CONNECT ON DATABASE shop TO clerk").unwrap();
    up.kubectl(&["delete", "logicaldatabase", "orders", "--timeout=60s"]);
    let left = "SELECT (SELECT count(*) FROM pg_roles WHERE rolname = 'clerk') \
                + (SELECT count(*) FROM pg_database WHERE datname = 'orders')";
    assert_eq!(psql(&administrator, left).as_deref(), Some("0"));
}

#[test]
fn deleting_with_policy_delete_removes_database_and_role() {
    let (up, administrator, _) = with_logical("Delete");
    up.kubectl(&["delete", "logicaldatabase", "orders", "--timeout=60s"]);
    assert_eq!(
        psql(&administrator, "SELECT count(*) FROM pg_roles WHERE rolname = 'clerk'").as_deref(),
        Some("0")
    );
    assert_eq!(
        psql(&administrator, "SELECT count(*) FROM pg_database WHERE datname = 'orders'")
            .as_deref(),
        Some("0")
    );
}

#[test]
fn what_is_retained_goes_back_to_an_object_of_the_same_name_and_to_no_other() {
    let (up, _, role) = with_logical("Retain");
    psql(&role, "CREATE TABLE t (x int); INSERT INTO t VALUES (42)").unwrap();
    up.kubectl(&["delete", "logicaldatabase", "orders", "--timeout=60s"]);
    assert_eq!(psql(&role, "SELECT current_user::text").as_deref(), Some("clerk"));

    up.apply(&logical("Delete").replace("{name: orders}", "{name: stranger}"));
    up.kubectl(&["wait", "ldb/stranger", "--for=condition=Degraded", "--timeout=60s"]);
    let refusal = up.value("ldb/stranger", r#".status.conditions[?(@.type=="Degraded")].message"#);
    assert!(refusal.contains("was not made by this object"), "{refusal}");
    up.kubectl(&["delete", "ldb", "stranger", "--timeout=60s"]);

    up.apply(&logical("Delete"));
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Ready", "--timeout=60s"]);
    let back = up.secret("orders-credentials", "uri");
    assert_eq!(psql(&back, "SELECT x FROM t").as_deref(), Some("42"));
    assert_eq!(psql(&role, "SELECT 1"), None, "the password is new");
    eventually("an event says so", || {
        up.kubectl(&["events", "--for", "ldb/orders"]).contains("Adopted").then_some(())
    });
    up.kubectl(&["delete", "logicaldatabase", "orders", "--timeout=60s"]);
    assert_eq!(psql(&back, "SELECT 1"), None, "now it is ours to remove");
}

#[test]
fn a_logical_database_goes_on_once_the_role_in_its_way_is_gone() {
    let (up, administrator) = with_database();
    psql(&administrator, "CREATE ROLE clerk").unwrap();
    up.apply(&logical("Delete"));
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Degraded", "--timeout=60s"]);
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Ready=False", "--timeout=60s"]);
    eventually("an event says so", || {
        let events = up.kubectl(&["events", "--for", "ldb/orders", "--types=Warning"]);
        events.contains("was not made by this object").then_some(())
    });
    psql(&administrator, "DROP ROLE clerk").unwrap();
    up.kubectl(&["wait", "ldb/orders", "--for=condition=Ready", "--timeout=60s"]);
    assert_eq!(up.value("ldb/orders", r#".status.conditions[?(@.type=="Degraded")].status"#), "");
}

#[test]
fn looking_after_a_logical_database_writes_nothing() {
    let (up, administrator, _) = with_logical("Delete");
    let versions = || {
        let path = "jsonpath={.items[*].metadata.resourceVersion}";
        up.kubectl(&["get", "ldb/orders", "secret/orders-credentials", "-o", path])
    };
    let looks = || {
        let counted = "SELECT sessions FROM pg_stat_database WHERE datname = 'orders'";
        psql(&administrator, counted).unwrap().parse::<u64>().unwrap()
    };
    let (before, first) = (versions(), looks());
    eventually("it looks twice more", || (looks() >= first + 2).then_some(()));
    assert_eq!(versions(), before);
}

#[test]
fn deleting_every_custom_resource_leaves_no_object_and_no_process() {
    let (up, _, _) = with_logical("Delete");
    up.kubectl(&["delete", "logicaldatabases,databases", "--all", "--timeout=120s"]);
    eventually("no object is left", || {
        let left = up.kubectl(&[
            "get",
            "statefulsets,pods,secrets,persistentvolumeclaims,persistentvolumes",
            "-o",
            "name",
        ]);
        left.is_empty().then_some(())
    });
    eventually("no process is left", || up.descendants().is_empty().then_some(()));
}

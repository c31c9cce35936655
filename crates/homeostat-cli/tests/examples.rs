//! The manifests that `operators/README.md` shows are taken as they are, and become ready.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod running;

use running::Up;

/// What the file of that operator says.
fn example(operator: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../operators");
    std::fs::read_to_string(format!("{root}/{operator}/example.yaml")).unwrap()
}

mod postgresql {
    use homeostat_cluster::node::image::postgresql_versions;

    use super::*;

    #[test]
    fn the_example_of_every_operator_becomes_ready() {
        let up = Up::start(&["--with", "at,webapp,database,logical-database"]);
        for (operator, object) in [
            ("at", "at/reminder"),
            ("webapp", "webapp/storefront"),
            ("database", "database/warehouse"),
            ("logical-database", "logicaldatabase/stock"),
        ] {
            // The file asks for a version that not every host has, and says so.
            let version = postgresql_versions().pop().unwrap_or(15);
            let text =
                example(operator).replace("version: \"15\"", &format!("version: \"{version}\""));
            up.apply(&text);
            up.kubectl(&["wait", object, "--for=condition=Ready", "--timeout=120s"]);
        }
        assert_eq!(up.kubectl(&["logs", "reminder-pod"]), "the time has come\n");
    }
}

//! A PostgreSQL of this host behind the image of that name.

use serde_json::json;

use crate::cluster::{self, Cluster};

#[tokio::test]
async fn postgres_keeps_its_rows_when_the_pod_is_replaced() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let spec = json!({
        "volumes": [{ "name": "data", "hostPath": { "path": data.path() } }],
        "containers": [{
            "name": "main", "image": "postgres",
            "env": [
                { "name": "POSTGRES_USER", "value": "app" },
                { "name": "POSTGRES_PASSWORD", "value": "it's" },
                { "name": "POSTGRES_DB", "value": "shop" },
                { "name": "PGDATA", "value": "/var/lib/postgresql/data/inner" },
            ],
            "volumeMounts": [{ "name": "data", "mountPath": "/var/lib/postgresql/data" }],
            "readinessProbe": { "exec": { "command": ["sh", "-c", "pg_isready -h $POD_IP -U app -d shop"] }, "periodSeconds": 1, "timeoutSeconds": 10 },
        }],
    });
    for (query, answer) in
        [("CREATE TABLE t AS SELECT 42 AS n", "SELECT 1"), ("SELECT n FROM t", "42")]
    {
        cluster.run("db", spec.clone()).await;
        let pod = cluster.until("db", |pod| cluster::condition(pod, "Ready") == "True").await;
        let host = pod["status"]["podIP"].as_str().unwrap();
        let psql = tokio::process::Command::new("psql")
            .args(["-h", host, "-U", "app", "-d", "shop", "-Atc", query])
            .env("PGPASSWORD", "it's")
            .output()
            .await
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&psql.stdout).trim(), answer, "{psql:?}");
        cluster.delete("db").await;
        cluster.until_gone("db").await;
    }
    cluster.stop().await;
}

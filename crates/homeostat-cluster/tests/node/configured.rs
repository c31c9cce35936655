//! What containers are given: environment, parts of volumes, who they are, and the way to the API.

use serde_json::{Value, json};

use crate::cluster::{self, Cluster};
use crate::shell;

#[tokio::test]
async fn the_environment_comes_from_whole_objects_and_from_the_containers_own_limits() {
    let cluster = Cluster::start().await;
    let data = json!({ "COLOUR": "green", "SHAPE": "round" });
    cluster.create("configmaps", json!({ "metadata": { "name": "m" }, "data": data })).await;
    let data = json!({ "COLOUR": "cmVk" });
    cluster.create("secrets", json!({ "metadata": { "name": "s" }, "data": data })).await;
    let mut container = shell("echo $COLOUR $SHAPE $MY_COLOUR $CPU $MEMORY");
    container["envFrom"] = json!([
        { "configMapRef": { "name": "m" } },
        { "secretRef": { "name": "s" }, "prefix": "MY_" },
        { "configMapRef": { "name": "missing", "optional": true } },
    ]);
    let resource = |resource: &str, divisor: &str| json!({ "resourceFieldRef": { "resource": resource, "divisor": divisor } });
    container["env"] = json!([
        { "name": "SHAPE", "value": "square" },
        { "name": "CPU", "valueFrom": resource("limits.cpu", "1m") },
        { "name": "MEMORY", "valueFrom": resource("requests.memory", "1Mi") },
    ]);
    let limits = json!({ "cpu": "250m", "memory": "64Mi" });
    container["resources"] = json!({ "limits": limits, "requests": limits });
    cluster.run("env", json!({ "restartPolicy": "Never", "containers": [container] })).await;
    cluster.until("env", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(cluster.logs("env", "").await, "green square red 250 64\n");
    cluster.stop().await;
}

#[tokio::test]
async fn a_part_of_a_volume_can_be_mounted_alone() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(data.path().join("in/side")).unwrap();
    std::fs::write(data.path().join("in/side/file"), "part\n").unwrap();
    let mut container = shell("cat /a/file; cat /one; echo $NAME; echo new > /made/x");
    container["env"] = json!([{ "name": "NAME", "value": "there" }]);
    container["volumeMounts"] = json!([
        { "name": "data", "mountPath": "/a", "subPath": "in/side" },
        { "name": "data", "mountPath": "/one", "subPath": "in/side/file" },
        { "name": "data", "mountPath": "/made", "subPathExpr": "made/$(NAME)" },
    ]);
    let volumes = json!([{ "name": "data", "hostPath": { "path": data.path() } }]);
    let spec = json!({ "restartPolicy": "Never", "volumes": volumes, "containers": [container] });
    cluster.run("parts", spec).await;
    cluster.until("parts", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(cluster.logs("parts", "").await, "part\npart\nthere\n");
    assert_eq!(std::fs::read_to_string(data.path().join("made/there/x")).unwrap(), "new\n");
    cluster.stop().await;
}

/// A claim that is bound to a directory of this host.
async fn claim(cluster: &Cluster, path: &std::path::Path) {
    let storage = json!({ "storage": "1Gi" });
    let modes = json!(["ReadWriteOnce"]);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "v" },
        "spec": { "capacity": storage, "accessModes": modes, "hostPath": { "path": path } },
    });
    cluster.post("/api/v1/persistentvolumes", &volume).await;
    let resources = json!({ "requests": storage });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c" },
        "spec": { "accessModes": modes, "resources": resources, "volumeName": "v" },
    });
    cluster.post("/api/v1/namespaces/default/persistentvolumeclaims", &claim).await;
}

#[tokio::test]
async fn a_program_of_another_user_writes_to_its_volumes_by_its_group() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("NOT RUN: only root can be somebody else");
        return;
    }
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let kept = data.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("old"), "").unwrap();
    claim(&cluster, &kept).await;
    let map = json!({ "metadata": { "name": "m" }, "data": { "key": "read" } });
    cluster.create("configmaps", map).await;
    let script = "set -e; echo $(id -u) $(id -g) $(id -G); cat /map/key; echo x > /kept/new; \
                  echo x >> /kept/old; echo x > /empty/new; stat -c %g /kept/new /empty/new";
    let mut container = shell(script);
    let mount = |name: &str| json!({ "name": name, "mountPath": format!("/{name}") });
    container["volumeMounts"] = json!([mount("kept"), mount("empty"), mount("map")]);
    let mut reader = shell("echo no > /kept/more && exit 1; cat /kept/old");
    reader["name"] = json!("reader");
    reader["volumeMounts"] = json!([{ "name": "again", "mountPath": "/kept" }]);
    let spec = json!({
        "restartPolicy": "Never",
        "securityContext": {
            "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000, "supplementalGroups": [3000],
        },
        "volumes": [
            { "name": "kept", "persistentVolumeClaim": { "claimName": "c" } },
            { "name": "again", "persistentVolumeClaim": { "claimName": "c", "readOnly": true } },
            { "name": "empty", "emptyDir": {} },
            { "name": "map", "configMap": { "name": "m", "defaultMode": 256 } },
        ],
        "initContainers": [container], "containers": [reader],
    });
    cluster.run("someone", spec).await;
    let over =
        |pod: &Value| pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed";
    let pod = cluster.until("someone", over).await;
    let said = cluster.logs("someone", "container=main").await;
    assert_eq!(said, "1000 1000 1000 2000 3000\nread2000\n2000\n");
    assert_eq!(
        pod["status"]["phase"],
        "Succeeded",
        "{}",
        cluster.logs("someone", "container=reader").await
    );
    assert!(!kept.join("more").exists());
    cluster.stop().await;
}

#[tokio::test]
async fn a_startup_probe_holds_the_others_back() {
    let cluster = Cluster::start().await;
    let data = tempfile::tempdir().unwrap();
    let mut container = shell("echo up; sleep 1000");
    container["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    let exec =
        |command: &str| json!({ "exec": { "command": ["sh", "-c", command] }, "periodSeconds": 1 });
    container["startupProbe"] = exec("test -e /data/go");
    container["startupProbe"]["failureThreshold"] = json!(100);
    container["readinessProbe"] = exec("touch /data/asked");
    container["livenessProbe"] = exec("test -e /data/go");
    container["livenessProbe"]["failureThreshold"] = json!(1);
    let volumes = json!([{ "name": "data", "hostPath": { "path": data.path() } }]);
    cluster.run("slow", json!({ "volumes": volumes, "containers": [container] })).await;
    cluster.until_event("slow", "Unhealthy").await;
    let pod = cluster.get("slow").await.unwrap();
    assert_eq!(pod["status"]["containerStatuses"][0]["started"], false);
    assert!(!data.path().join("asked").exists(), "nobody asks a container that has not started");
    std::fs::write(data.path().join("go"), "").unwrap();
    let pod = cluster.until("slow", |pod| cluster::condition(pod, "Ready") == "True").await;
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    cluster.stop().await;
}

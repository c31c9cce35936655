//! Discovery of the built-in kinds against the files Kubernetes publishes, wherever Go is there
//! to find them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says aloud what it could not run"
)]

mod published;

use std::collections::BTreeMap;

use homeostat_apiserver::discovery;
use homeostat_apiserver::kinds::builtin;
use serde_json::Value;

fn read(name: &str) -> Option<Value> {
    let path = published::module("k8s.io/kubernetes")?.join("api/discovery").join(name);
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

fn is_stable(version: &Value) -> bool {
    discovery::stability(version["version"].as_str().unwrap()).0 == 3
}

#[test]
fn aggregated_discovery_is_what_kubernetes_publishes_without_unstable_versions() {
    let Some(mut expected) = read("aggregated_v2.json") else { return };
    let groups = expected["items"].as_array_mut().unwrap();
    for group in groups.iter_mut() {
        group["versions"].as_array_mut().unwrap().retain(is_stable);
    }
    groups.retain(|group| !group["versions"].as_array().unwrap().is_empty());
    assert_eq!(discovery::aggregated_groups(builtin()), expected);
}

#[test]
fn legacy_discovery_is_what_kubernetes_publishes() {
    let mut seen = BTreeMap::new();
    for kind in builtin() {
        seen.insert((&kind.group, &kind.version), ());
    }
    for (group, version) in seen.into_keys() {
        let path = if group.is_empty() {
            "api__v1".to_owned()
        } else {
            format!("apis__{group}__{version}")
        };
        let Some(expected) = read(&format!("{path}.json")) else { return };
        assert_eq!(discovery::resources(builtin(), group, version), Some(expected), "{path}");
    }
    let apps = read("apis__apps.json");
    assert_eq!(discovery::group(builtin(), "apps"), apps);
    assert_eq!(discovery::group(builtin(), "absent.example"), None);
}

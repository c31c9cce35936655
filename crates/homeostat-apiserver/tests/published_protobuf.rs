//! Protobuf bodies against the samples Kubernetes publishes: one file per kind, in JSON and in
//! protobuf, wherever Go is there to find them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says aloud what it could not run"
)]

mod published;

use std::path::Path;

use homeostat_apiserver::discovery::stability;
use homeostat_apiserver::proto;
use serde_json::Value;

/// Removes what JSON writes as `null`: the server leaves out what has no value.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// The first place where two values differ.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| {
                let path = format!("{path}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => difference(&path, a, b),
                    (a, b) => Some(format!("{path}: {a:?} instead of {b:?}")),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(index, (a, b))| difference(&format!("{path}[{index}]"), a, b)),
        (a, b) => (a != b).then(|| format!("{path}: {a} instead of {b}")),
    }
}

fn samples(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "pb"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_published_sample_reads_as_its_json_twin() {
    let Some(api) = published::module("k8s.io/api") else { return };
    let mut compared = 0;
    let mut wrong = Vec::new();
    for path in samples(&api.join("testdata/HEAD")) {
        let expected = std::fs::read(path.with_extension("json")).unwrap();
        let mut expected: Value = serde_json::from_slice(&expected).unwrap();
        // A watch event is an answer, never a body, and has no version of its own.
        let Some(api_version) = expected["apiVersion"].as_str() else { continue };
        let version = api_version.rsplit('/').next().unwrap();
        let not_served = ["admission.k8s.io/", "imagepolicy.k8s.io/", "apidiscovery.k8s.io/"];
        if stability(version).0 < 3 || not_served.iter().any(|group| api_version.starts_with(group))
        {
            continue;
        }
        without_nulls(&mut expected);
        match proto::decode(&std::fs::read(&path).unwrap(), ("", "")) {
            Ok(mut ours) => {
                without_nulls(&mut ours);
                wrong.extend(difference("", &ours, &expected).map(|text| {
                    format!("{}: {text}", path.file_stem().unwrap().to_string_lossy())
                }));
            }
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 85, "only {compared} samples");
}

#[test]
fn cut_and_broken_samples_are_errors_or_objects_but_never_panics() {
    let Some(api) = published::module("k8s.io/api") else { return };
    let pod = std::fs::read(api.join("testdata/HEAD/core.v1.Pod.pb")).unwrap();
    for length in (0..pod.len()).step_by(7) {
        let _ = proto::decode(&pod[..length], ("v1", "Pod"));
    }
    for index in (0..pod.len()).step_by(5) {
        let mut broken = pod.clone();
        broken[index] ^= 0xff;
        let _ = proto::decode(&broken, ("v1", "Pod"));
    }
    assert!(matches!(proto::decode(b"{}", ("v1", "Pod")), Err(proto::ProtoError::NotEnveloped)));
}

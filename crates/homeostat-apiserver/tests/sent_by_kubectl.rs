//! Protobuf bodies that kubectl 1.36 really sends, beside the JSON it prints for the same object.
//! Unlike the published samples, most of their fields have zero values.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use homeostat_apiserver::proto;
use serde_json::{Value, json};

fn sample(name: &str, end: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples");
    std::fs::read(format!("{folder}/{name}.{end}")).unwrap()
}

/// What has no value is left out, where Go writes `null`.
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

#[test]
fn bodies_sent_by_kubectl_read_as_the_json_it_prints() {
    let names = [
        "access-review",
        "configmap",
        "deployment",
        "job",
        "namespace",
        "quota",
        "rules-review",
        "secret",
        "service",
        "token",
        "whoami",
    ];
    for name in names {
        let ours = proto::decode(&sample(name, "pb"), ("", "")).unwrap();
        let mut expected: Value = serde_json::from_slice(&sample(name, "json")).unwrap();
        without_nulls(&mut expected);
        assert_eq!(ours, expected, "{name}");
    }
}

/// An envelope around `message`.
fn enveloped(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    };
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, message)].concat()
}

#[test]
fn delete_options_of_any_version_keep_a_grace_period_of_zero() {
    // gracePeriodSeconds: 0, propagationPolicy: "Orphan"
    let options = [&[0x08, 0x00, 0x22, 0x06], b"Orphan".as_slice()].concat();
    for api_version in ["v1", "meta.k8s.io/v1", "apps/v1"] {
        let body = enveloped(api_version, "DeleteOptions", &options);
        let ours = proto::decode(&body, ("", "")).unwrap();
        let expected = json!({"kind": "DeleteOptions", "apiVersion": api_version,
            "gracePeriodSeconds": 0, "propagationPolicy": "Orphan"});
        assert_eq!(ours, expected);
    }
}

#[test]
fn a_kind_that_is_not_built_in_is_an_error_that_names_it() {
    let error = proto::decode(&enveloped("example.com/v1", "Thing", &[]), ("", "")).unwrap_err();
    assert!(error.to_string().contains("Thing"), "{error}");
}

#[test]
fn an_envelope_inside_an_envelope_is_refused() {
    // ControllerRevision.data is a field that holds JSON: 2: {1: bytes}
    let inner = enveloped("v1", "Secret", &[]);
    let length = u8::try_from(inner.len()).unwrap();
    let revision = [&[0x12, length + 2, 0x0a, length], inner.as_slice()].concat();
    let error = proto::decode(&enveloped("apps/v1", "ControllerRevision", &revision), ("", ""))
        .unwrap_err();
    assert!(matches!(error, proto::ProtoError::NotJson { .. }), "{error}");
}

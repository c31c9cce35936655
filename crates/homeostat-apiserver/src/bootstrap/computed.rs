//! What the finished texts have to be: the same objects, made the long way. They are completed, judged
//! and encoded as any other, and who owns their fields is found out.
//!
//! Tests only. `HOMEOSTAT_WRITE_DATA=1 cargo test -p homeostat-apiserver --lib finished_texts` writes
//! the texts anew; it is to be run whenever something changes in what is made here.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use homeostat_env::Env;
use http::Request;
use serde_json::{Value, json};

use super::{
    NAMESPACE_OF_THE_SYSTEM, TOKEN_TRACKING, api_service, flow_control, namespaces,
    priority_classes, service_range, token_tracking,
};
use crate::auth::{Attributes, User};
use crate::registry::update::Area;
use crate::registry::{Registry, Writer, metadata, rules};
use crate::server::{AddressRange, ServerConfig};
use crate::store::{Expect, Key, Pairs, Store, Stored};
use crate::{Server, default};

/// The roles and bindings that Kubernetes publishes.
const POLICY: &[u8] = include_bytes!("../../data/rbac.json.gz");
const FILE: &str = "data/bootstrap.txt";

fn config(range: Option<AddressRange>) -> ServerConfig {
    let config = ServerConfig::new(Env::simulated(7, "2026-05-04T03:02:01Z".parse().unwrap()));
    ServerConfig { service_range: range.unwrap_or(config.service_range), ..config }
}

/// A registry of a new cluster, made the long way.
fn computed(config: ServerConfig) -> Registry {
    let store = Store::new(crate::store::Limits::default());
    let registry = Registry::new(config, store);
    namespaces(&registry);
    priority_classes(&registry);
    let mut policy = Vec::new();
    GzDecoder::new(POLICY).read_to_end(&mut policy).unwrap();
    let policy: Vec<Value> = serde_json::from_slice(&policy).unwrap();
    let writer = registry.writer();
    for object in policy {
        install(&writer, object, "kube-apiserver", |_| {});
    }
    for object in flow_control::objects() {
        install(&writer, object, flow_control::PRODUCER, flow_control::mark_found);
    }
    for object in super::api_services::objects() {
        let local = |object: &mut Value| {
            let status = super::local_status("");
            metadata::set_top(object, "status", Some(status));
        };
        install(&writer, object, "kube-apiserver", local);
    }
    drop(writer);
    service_range(&registry);
    api_service(&registry);
    token_tracking(&registry);
    registry
}

/// Finds out who owns the fields of an object, and commits it.
fn install(writer: &Writer<'_>, mut object: Value, manager: &str, says_of_itself: fn(&mut Value)) {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let named = (text("kind"), text("apiVersion"));
    let mut kinds = crate::kinds::builtin().iter();
    let kind = kinds.find(|kind| (kind.kind.clone(), kind.api_version()) == named).unwrap();
    rules::track(writer, kind, None, &mut object, manager, Area::Main).unwrap();
    says_of_itself(&mut object);
    if kind.group == "flowcontrol.apiserver.k8s.io" {
        default::builtin(kind, &mut object);
    }
    metadata::set(&mut object, "uid", writer.registry.env.uid().into());
    metadata::set(&mut object, "creationTimestamp", writer.now().into());
    for (list, field) in
        [("/metadata/managedFields", "time"), ("/status/conditions", "lastTransitionTime")]
    {
        let entries = object.pointer_mut(list).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            entry[field] = writer.now().into();
        }
    }
    let key = Key::new(metadata::namespace(&object), metadata::name(&object));
    writer.commit(kind, &key, Expect::Absent, object, false).unwrap();
}

/// Every object of a store with its resource, in the order they were made in.
fn objects(store: &Store) -> Vec<(Arc<str>, Arc<Stored>)> {
    let snapshot = store.newest();
    let resources: Vec<Arc<str>> = snapshot.resources().map(|(name, _)| name.clone()).collect();
    let mut all: Vec<_> = resources
        .iter()
        .flat_map(|name| snapshot.objects(name).map(move |stored| (name.clone(), stored.clone())))
        .collect();
    all.sort_by_key(|(_, stored)| stored.revision);
    all
}

/// The object as a line, with places for what is new at every start.
fn line(registry: &Registry, resource: &str, stored: &Stored) -> String {
    let range = registry.config.service_range;
    let (now, today) = (registry.writer().now(), registry.env.now().strftime("%Y-%m-%d"));
    let body = std::str::from_utf8(&stored.body).unwrap();
    assert!(!body.contains(['$', '\t', '\n']), "{body}");
    let revision = format!("\"resourceVersion\":\"{}\"", stored.revision);
    let place = |text: &str| {
        text.replace(&stored.uid(), "$uid")
            .replace(&now, "$now")
            .replace(&today.to_string(), "$today")
            .replace(&range.to_string(), "$range")
            .replace(&range.first().to_string(), "$address")
    };
    let pairs = |pairs: &Pairs| {
        let all: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        place(&all.join(","))
    };
    let body = place(&body.replacen(&revision, "\"resourceVersion\":\"$revision\"", 1));
    [
        resource,
        &stored.key.namespace,
        &place(&stored.key.name),
        &stored.api_version,
        &pairs(&stored.labels),
        &pairs(&stored.fields),
        &body,
    ]
    .join("\t")
}

#[test]
fn finished_texts_are_what_the_long_way_makes() {
    let registry = computed(config(None));
    let lines = objects(&registry.store);
    let lines = lines.iter().map(|(resource, stored)| line(&registry, resource, stored) + "\n");
    let lines: Vec<String> = lines.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("HOMEOSTAT_WRITE_DATA").is_some() {
        std::fs::write(&path, lines.concat()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let tip = "is out of date; HOMEOSTAT_WRITE_DATA=1 with this test writes it anew";
    for (wanted, written) in lines.iter().zip(written.split_inclusive('\n')) {
        assert_eq!(written, wanted, "{FILE} {tip}");
    }
    assert_eq!(written.lines().count(), lines.len(), "{FILE} {tip}");
}

#[test]
fn a_new_server_holds_what_the_long_way_makes_whatever_its_range_of_services() {
    let other = AddressRange { base: [10, 32, 0, 0].into(), prefix: 24 };
    for range in [None, Some(other)] {
        let computed = computed(config(range));
        let server = Server::new(config(range));
        let (wanted, held) = (objects(&computed.store), objects(&server.registry().store));
        assert_eq!(held.len(), wanted.len());
        for ((resource, held), (wanted_resource, wanted)) in held.iter().zip(&wanted) {
            // But for uids, times and revisions, which are drawn in another order.
            let (held, wanted) =
                (line(server.registry(), resource, held), line(&computed, wanted_resource, wanted));
            assert_eq!(held, wanted);
        }
        assert!(held.windows(2).all(|two| two[0].1.revision < two[1].1.revision));
    }
}

#[test]
fn a_server_that_finds_everything_there_changes_nothing() {
    let store = Store::new(crate::store::Limits::default());
    super::run(&Registry::new(config(None), store.clone()));
    let revision = store.revision();
    super::run(&Registry::new(config(None), store.clone()));
    assert_eq!(store.revision(), revision);
}

#[test]
fn the_service_of_the_api_has_its_address_though_that_was_left_of_one_that_never_came_to_be() {
    let store = Store::new(crate::store::Limits::default());
    let api = Key::new("default", "kubernetes");
    let address = || store.get("services", &api).unwrap().value()["spec"]["clusterIP"].clone();
    super::run(&Registry::new(config(None), store.clone()));
    let first = address();
    let revision = store.get("services", &api).unwrap().revision;
    store.delete("services", &api, revision).unwrap();
    super::run(&Registry::new(config(None), store.clone()));
    assert_eq!(address(), first);
}

#[test]
fn a_flow_schema_that_comes_back_is_heeded_though_somebody_asked_meanwhile() {
    let store = Store::new(crate::store::Limits::default());
    let registry = Registry::new(config(None), store.clone());
    super::run(&registry);
    let exempt = Key::new("", "exempt");
    let stored = || store.get("flowschemas.flowcontrol.apiserver.k8s.io", &exempt);
    let revision = stored().unwrap().revision;
    store.delete("flowschemas.flowcontrol.apiserver.k8s.io", &exempt, revision).unwrap();
    let asked = || Attributes::of(&Request::get("/nothing").body(()).unwrap());
    let flow = || registry.flow(&User::admin(), asked).unwrap().schema;
    let meanwhile = flow();
    super::restore(&registry);
    assert_ne!(flow(), meanwhile);
    assert_eq!(flow(), stored().unwrap().uid());
}

#[test]
fn tokens_are_tracked_since_the_first_start_or_the_next_one_after_somebody_forgot_it() {
    let store = Store::new(crate::store::Limits::default());
    let key = Key::new(NAMESPACE_OF_THE_SYSTEM, TOKEN_TRACKING);
    let since = |start: &str| {
        let env = Env::simulated(7, start.parse().unwrap());
        super::run(&Registry::new(ServerConfig { env, ..config(None) }, store.clone()));
        let stored = store.get("configmaps", &key).unwrap();
        (stored.value()["data"].clone(), stored.revision)
    };
    let (first, revision) = since("2026-05-04T23:59:59Z");
    assert_eq!(first, json!({"since": "2026-05-04"}));
    assert_eq!(since("2027-01-01T00:00:00Z"), (first, revision));
    store.delete("configmaps", &key, revision).unwrap();
    assert_eq!(since("2027-01-02T00:00:00Z").0, json!({"since": "2027-01-02"}));
}

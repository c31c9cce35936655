//! The addresses of Services: each that is given out is an `IPAddress` of its own, taken from the
//! `ServiceCIDR`s that are ready. Whatever has an `IPAddress` is taken, whoever made it.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::update::Area;
use super::{Writer, metadata, rules};
use crate::server::AddressRange;
use crate::store::{Expect, Key, Range};

const GROUP: &str = "networking.k8s.io";
const ADDRESSES: &str = "ipaddresses.networking.k8s.io";
const RANGES: &str = "servicecidrs.networking.k8s.io";
/// The range every cluster begins with, which is used before all others.
const FIRST: &str = "kubernetes";
/// Who manages the addresses that belong to Services.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// The addresses a Service has.
fn addresses(service: &Value) -> Vec<Ipv4Addr> {
    let spec = service.get("spec");
    let all = spec.and_then(|spec| spec.get("clusterIPs")).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|ip| ip.as_str()?.parse().ok()).collect()
}

impl Writer<'_> {
    /// The ranges that addresses may be taken from.
    fn ranges(&self) -> Vec<AddressRange> {
        let page = self.registry.store.list(RANGES, &Range::default());
        let mut all: Vec<Value> =
            page.map(|page| page.items).unwrap_or_default().iter().map(|r| r.value()).collect();
        all.retain(|range| is_ready(range) && !metadata::is_deleting(range));
        all.sort_by_key(|range| metadata::name(range) != FIRST);
        let parts = all.iter().flat_map(|range| {
            range.pointer("/spec/cidrs").and_then(Value::as_array).into_iter().flatten()
        });
        parts.filter_map(|part| range(part.as_str()?)).collect()
    }

    /// An address that nobody has. The search begins anywhere, so that it does not pass all that
    /// are taken, but for a write that is run again at the same place.
    pub(super) fn free_address(&self, service: &Value) -> Option<Ipv4Addr> {
        let start = crc32fast::hash(metadata::uid(service).as_bytes());
        let ranges = self.ranges();
        let mut all = ranges.iter().flat_map(|range| range.addresses_from(start));
        all.find(|address| !self.is_taken(*address))
    }

    /// Whether the address is somebody's.
    pub(crate) fn is_taken(&self, address: Ipv4Addr) -> bool {
        self.registry.store.get(ADDRESSES, &key(address)).is_some()
    }

    /// Whether the address lies in a range that is ready.
    pub(crate) fn is_offered(&self, address: Ipv4Addr) -> bool {
        self.ranges().iter().any(|range| range.contains(address))
    }

    /// Makes the addresses of a Service its own, before anybody sees the Service.
    pub(super) fn take_addresses(&self, old: Option<&Value>, service: &Value) {
        let before = old.map(addresses).unwrap_or_default();
        for address in addresses(service).iter().filter(|address| !before.contains(address)) {
            self.take(*address, service);
        }
    }

    /// Gives back the addresses that a Service has no more, or all of one that is gone.
    pub(super) fn release_addresses(&self, old: Option<&Value>, service: Option<&Value>) {
        let Some(old) = old else { return };
        let now = service.map(addresses).unwrap_or_default();
        for address in addresses(old).iter().filter(|address| !now.contains(address)) {
            self.release(*address, old);
        }
    }

    /// Gives an address that somebody removed back to the Service that still has it.
    pub(super) fn restore_address(&self, address: &Value) {
        let parent = |field: &str| {
            let place = format!("/spec/parentRef/{field}");
            address.pointer(&place).and_then(Value::as_str).unwrap_or("")
        };
        let Ok(number) = metadata::name(address).parse() else { return };
        if parent("resource") != "services" || !is_managed(address) {
            return;
        }
        let service = self.registry.peek("services", parent("namespace"), parent("name"));
        if let Some(service) = service.filter(|service| addresses(service).contains(&number)) {
            self.take(number, &service);
        }
    }

    /// Takes up where the last process stopped: every Service has its addresses, and none is kept
    /// for a Service that is gone.
    pub(crate) fn restore_addresses(&self) {
        let snapshot = self.registry.store.newest();
        for service in snapshot.objects("services") {
            self.take_addresses(None, &service.value());
        }
        for address in snapshot.objects(ADDRESSES) {
            let address = address.value();
            let text = |place: &str| address.pointer(place).and_then(Value::as_str).unwrap_or("");
            let parent = (text("/spec/parentRef/namespace"), text("/spec/parentRef/name"));
            let service = self.registry.peek("services", parent.0, parent.1);
            let number = metadata::name(&address).parse();
            if let Ok(number) = number
                && is_managed(&address)
                && !service.is_some_and(|service| addresses(&service).contains(&number))
            {
                let gone = json!({"metadata": {"namespace": parent.0, "name": parent.1}});
                self.release(number, &gone);
            }
        }
    }

    fn take(&self, address: Ipv4Addr, service: &Value) {
        let catalogue = self.registry.catalogue();
        let Some(kind) = catalogue.find(GROUP, "v1", "ipaddresses") else { return };
        if self.is_taken(address) {
            return;
        }
        let mut object = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": address.to_string(),
                "uid": self.registry.env.uid(),
                "creationTimestamp": self.now(),
                "labels": {
                    "ipaddress.kubernetes.io/ip-family": "IPv4",
                    MANAGED_BY: ALLOCATOR,
                },
            },
            "spec": {"parentRef": {
                "resource": "services",
                "namespace": metadata::namespace(service),
                "name": metadata::name(service),
            }},
        });
        let written = rules::track(self, kind, None, &mut object, "kube-apiserver", Area::Main)
            .and_then(|()| self.commit(kind, &key(address), Expect::Absent, object, false));
        if let Err(status) = written {
            tracing::warn!(%address, %status, "an address could not be recorded");
        }
    }

    /// Removes the record of an address, if it is the Service's.
    fn release(&self, address: Ipv4Addr, service: &Value) {
        let catalogue = self.registry.catalogue();
        let Some(kind) = catalogue.find(GROUP, "v1", "ipaddresses") else { return };
        let Some(stored) = self.registry.store.get(ADDRESSES, &key(address)) else { return };
        let object = stored.value();
        let parent = &object["spec"]["parentRef"];
        if parent["namespace"] != metadata::namespace(service)
            || parent["name"] != metadata::name(service)
        {
            return;
        }
        if let Err(status) = self.remove(kind, &stored, &object) {
            tracing::warn!(%address, %status, "an address could not be given back");
        }
    }
}

/// A range of IPv4 addresses that is worth taking any from.
fn range(text: &str) -> Option<AddressRange> {
    let (base, prefix) = text.split_once('/')?;
    let prefix = prefix.parse().ok().filter(|prefix| (1..=30).contains(prefix))?;
    Some(AddressRange { base: base.parse().ok()?, prefix })
}

fn key(address: Ipv4Addr) -> Key {
    Key::new("", address.to_string())
}

fn is_managed(address: &Value) -> bool {
    metadata::labels(address).get(MANAGED_BY) == Some(&ALLOCATOR)
}

/// A range is ready unless somebody says that it is not: there may be nobody to say so.
fn is_ready(range: &Value) -> bool {
    let conditions = range.pointer("/status/conditions").and_then(Value::as_array);
    let said = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    said.is_none_or(|said| said["status"] == "True")
}

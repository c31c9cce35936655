//! ServiceCIDRs: ready from the start, and held by a finalizer until no address depends on them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homeostat::kube::ResourceExt;
use homeostat::{Context, Controller, Error, Key, Kind, Outcome, Result};
use http::Method;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use serde_json::{Value, json};

use crate::write;

const MANAGER: &str = "service-cidr-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";
/// How long a range that nobody needs stays: servers that have not heard of its end may still take
/// an address of it.
const GRACE: Duration = Duration::from_secs(10);

/// The ranges that wait for their end.
type Leaving = Arc<Mutex<BTreeSet<Key>>>;

/// The controller.
pub(crate) fn controller() -> Controller<ServiceCIDR> {
    let leaving = Leaving::default();
    let waiting = |leaving: &Leaving| {
        let leaving = leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.iter().cloned().collect::<Vec<Key>>()
    };
    // An address that goes, or a range that comes, may be what a range waits for.
    let (of_addresses, of_ranges) = (Arc::clone(&leaving), Arc::clone(&leaving));
    Controller::new(move |range, ctx| reconcile(range, ctx, Arc::clone(&leaving)))
        .named(MANAGER)
        .watches::<IPAddress>(move |_| waiting(&of_addresses))
        .watches::<ServiceCIDR>(move |_| waiting(&of_ranges))
}

async fn reconcile(
    range: Arc<ServiceCIDR>,
    ctx: Context<ServiceCIDR>,
    leaving: Leaving,
) -> Result<Outcome> {
    let deleted = range.metadata.deletion_timestamp.as_ref();
    {
        let mut leaving = leaving.lock().unwrap_or_else(PoisonError::into_inner);
        // Noted before looking: an address that goes in between wakes this range again.
        if deleted.is_some() {
            leaving.insert(ctx.key().clone())
        } else {
            leaving.remove(ctx.key())
        };
    }
    let Some(deleted) = deleted else {
        if !range.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            let mut finalizers = range.finalizers().to_vec();
            finalizers.push(FINALIZER.to_owned());
            hold(&range, &ctx, &finalizers).await?;
        }
        say(&range, &ctx, "True", "", "Kubernetes Service CIDR is ready").await?;
        return Ok(Outcome::Done);
    };
    let ranges = ctx.list_in::<ServiceCIDR>(None, "").await?;
    let addresses = ctx.list_in::<IPAddress>(None, "").await?;
    if !may_go(&range, &ranges, &addresses) {
        let why = "There are still IPAddresses referencing the ServiceCIDR, please remove them or \
                   create a new ServiceCIDR";
        say(&range, &ctx, "False", "Terminating", why).await?;
        return Ok(Outcome::Done);
    }
    let due = deleted.0.saturating_add(GRACE).unwrap_or(deleted.0);
    if ctx.now() < due {
        return Ok(Outcome::RequeueAt(due));
    }
    let others: Vec<String> =
        range.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
    if others.len() < range.finalizers().len() {
        hold(&range, &ctx, &others).await?;
    }
    Ok(Outcome::Done)
}

/// Writes who holds the range.
async fn hold(
    range: &ServiceCIDR,
    ctx: &Context<ServiceCIDR>,
    finalizers: &[String],
) -> Result<()> {
    let patch = json!({"metadata": {
        "uid": range.uid(), "resourceVersion": range.resource_version(), "finalizers": finalizers,
    }});
    write::patch(ctx.client(), &Kind::of::<ServiceCIDR>(), ctx.key(), None, &patch).await?;
    Ok(())
}

/// Says whether addresses may be taken from the range.
async fn say(
    range: &ServiceCIDR,
    ctx: &Context<ServiceCIDR>,
    status: &str,
    reason: &str,
    message: &str,
) -> Result<()> {
    let conditions = range.status.as_ref().and_then(|status| status.conditions.as_ref());
    let said = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    // The server has its own words for the range it begins with.
    let is_said = said.is_some_and(|said| {
        said.status == status
            && said.reason == reason
            && (said.message == message || status == "True")
    });
    if is_said {
        return Ok(());
    }
    let body = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": range.name_any(), "uid": range.uid()},
        "status": {"conditions": [{
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": ctx.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }]},
    });
    let path = format!(
        "{}/{}/status?fieldManager={MANAGER}&force=true",
        Kind::of::<ServiceCIDR>().path(None),
        range.name_any()
    );
    let written: Result<Option<Value>> =
        write::send(ctx.client(), Method::PATCH, &path, "application/apply-patch+yaml", &body)
            .await;
    match written {
        // A namesake, or none, has taken its place.
        Err(Error::Api(homeostat::kube::Error::Api(status))) if status.code == 409 => Ok(()),
        other => other.map(drop),
    }
}

/// Whether no address would be left without a range.
fn may_go(range: &ServiceCIDR, all: &[Arc<ServiceCIDR>], addresses: &[Arc<IPAddress>]) -> bool {
    let others: Vec<Prefix> = all
        .iter()
        .filter(|other| other.metadata.name != range.metadata.name)
        .flat_map(|other| prefixes(other))
        .collect();
    let own = prefixes(range);
    if own.iter().all(|own| others.iter().any(|other| other.contains(own))) {
        return true;
    }
    let served = addresses
        .iter()
        .filter(|address| address.labels().get(MANAGED_BY).is_some_and(|by| by == ALLOCATOR))
        .filter_map(|address| Prefix::read(&address.name_any()));
    let mut alone = served.filter(|address| {
        own.iter().any(|own| own.contains(address))
            && !others.iter().any(|other| other.contains(address))
    });
    alone.next().is_none()
}

fn prefixes(range: &ServiceCIDR) -> Vec<Prefix> {
    let cidrs = range.spec.as_ref().and_then(|spec| spec.cidrs.as_ref());
    cidrs.into_iter().flatten().filter_map(|text| Prefix::read(text)).collect()
}

/// A range of addresses, or a single one.
struct Prefix {
    is_v4: bool,
    /// From the left.
    number: u128,
    bits: u32,
}

impl Prefix {
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let (is_v4, number, width) = match address.parse().ok()? {
            IpAddr::V4(four) => (true, u128::from(u32::from(four)) << 96, 32),
            IpAddr::V6(six) => (false, u128::from(six), 128),
        };
        Some(Self { is_v4, number, bits: bits.unwrap_or(width).min(width) })
    }

    fn contains(&self, other: &Self) -> bool {
        let same = |bits: u32| match bits {
            0 => true,
            bits => (self.number ^ other.number) >> (128 - bits) == 0,
        };
        self.is_v4 == other.is_v4 && self.bits <= other.bits && same(self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, cidrs: &[&str]) -> Arc<ServiceCIDR> {
        let object = json!({"metadata": {"name": name}, "spec": {"cidrs": cidrs}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn address(name: &str, managed_by: &str) -> Arc<IPAddress> {
        let object = json!({
            "metadata": {"name": name, "labels": {MANAGED_BY: managed_by}},
            "spec": {"parentRef": {"resource": "services", "name": "a", "namespace": "b"}},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_range_stays_as_long_as_an_address_depends_on_it() {
        let old = range("old", &["10.1.0.0/16"]);
        let inside = [address("10.1.2.3", ALLOCATOR)];
        let alone = [Arc::clone(&old)];
        assert!(!may_go(&old, &alone, &inside));
        assert!(may_go(&old, &alone, &[]));
        assert!(may_go(&old, &alone, &[address("10.1.2.3", "somebody-else")]));
        assert!(may_go(&old, &alone, &[address("10.2.2.3", ALLOCATOR)]));
        let larger = [Arc::clone(&old), range("larger", &["10.0.0.0/8"])];
        assert!(may_go(&old, &larger, &inside));
        let elsewhere = [Arc::clone(&old), range("half", &["10.1.128.0/17"])];
        assert!(!may_go(&old, &elsewhere, &inside));
        assert!(may_go(&old, &elsewhere, &[address("10.1.200.3", ALLOCATOR)]));
    }

    #[test]
    fn families_are_told_apart() {
        let all = Prefix::read("::/0").unwrap();
        assert!(all.contains(&Prefix::read("fd00::1").unwrap()));
        assert!(!all.contains(&Prefix::read("10.0.0.1").unwrap()));
        assert!(!Prefix::read("0.0.0.0/0").unwrap().contains(&Prefix::read("fd00::1").unwrap()));
    }
}

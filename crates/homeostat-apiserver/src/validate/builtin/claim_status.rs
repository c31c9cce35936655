//! The status of a claim to devices: what it was given, who uses it, and how its devices are.

use serde_json::{Value, json};

use super::conditions::conditions;
use super::device_slice::{binding_conditions, pool_name};
use super::devices::{
    configuration, driver, few, label, named_request, named_requests, object, too_long, unique,
};
use super::node_selector::node_selector;
use super::report::{Report, at, list, text};
use crate::field::{FieldError, Reason};
use crate::validate::ip;

const MOST_USERS: usize = 256;
const MOST_RESULTS: usize = 32;
/// Those of the claim and those of the class.
const MOST_CONFIGURATIONS: usize = 64;
const MOST_CONDITIONS: usize = 8;
const MOST_ADDRESSES: usize = 16;
const LONGEST_DATA: usize = 10 * 1024;
const LONGEST_INTERFACE: usize = 256;
const LONGEST_HARDWARE_ADDRESS: usize = 128;

/// Which device is meant, and which share of it.
type Device<'a> = [&'a str; 4];

/// The device that an allocation or a status is about.
pub(crate) fn device(holder: &Value) -> Device<'_> {
    ["driver", "pool", "device", "shareID"]
        .map(|field| holder.get(field).and_then(Value::as_str).unwrap_or_default())
}

/// A write of the status.
pub(super) fn change(value: &Value, old: &Value, report: &mut Report) {
    users(value, report);
    let results = list(value, "/status/allocation/devices/results");
    let devices = list(value, "/status/devices");
    for (index, one) in devices.iter().enumerate() {
        device_status(one, results, &format!("status.devices[{index}]"), report);
    }
    unique(devices.iter().map(|one| shown(device(one))), "status.devices", report);
    reservations(value, old, report);
    match (at(old, "/status/allocation"), at(value, "/status/allocation")) {
        (_, Value::Null) => {}
        (Value::Null, allocation) => self::allocation(value, allocation, report),
        _ => report.immutable(value, Some(old), "/status/allocation"),
    }
}

fn shown([driver, pool, device, share]: Device<'_>) -> Value {
    json!({"Driver": driver, "Pool": pool, "Device": device, "ShareID": share})
}

fn users(value: &Value, report: &mut Report) {
    let (users, path) = (list(value, "/status/reservedFor"), "status.reservedFor");
    if !few(users, MOST_USERS, path, report) {
        return;
    }
    for (index, user) in users.iter().enumerate() {
        for field in ["resource", "name", "uid"] {
            if text(user, &format!("/{field}")).is_empty() {
                report.required(format!("{path}[{index}].{field}"), "");
            }
        }
    }
    unique(users.iter().map(|user| text(user, "/uid")), path, report);
}

/// Only who has something is used, and nobody new begins to use what is about to go.
fn reservations(value: &Value, old: &Value, report: &mut Report) {
    let (users, before) = (list(value, "/status/reservedFor"), list(old, "/status/reservedFor"));
    let path = "status.reservedFor";
    if users.is_empty() {
        return;
    }
    if at(value, "/status/allocation").is_null() {
        report.forbidden(path, "may not be specified when `allocated` is not set");
    } else if !at(value, "/metadata/deletionTimestamp").is_null()
        && users.iter().any(|user| !before.contains(user))
    {
        let why = "new entries may not be added while `deallocationRequested` or \
                   `deletionTimestamp` are set";
        report.forbidden(path, why);
    }
}

fn allocation(claim: &Value, allocation: &Value, report: &mut Report) {
    let requests = list(claim, "/spec/devices/requests");
    let results = list(allocation, "/devices/results");
    let path = "status.allocation.devices.results";
    if few(results, MOST_RESULTS, path, report) {
        for (index, one) in results.iter().enumerate() {
            result(one, requests, &format!("{path}[{index}]"), report);
        }
    }
    let configurations = list(allocation, "/devices/config");
    let path = "status.allocation.devices.config";
    if few(configurations, MOST_CONFIGURATIONS, path, report) {
        for (index, one) in configurations.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let sources = &["FromClaim", "FromClass"];
            report.one_of(&format!("{path}.source"), text(one, "/source"), sources);
            named_requests(one, requests, &path, report);
            configuration(one, &path, report);
        }
    }
    if let Some(selector) = allocation.get("nodeSelector") {
        node_selector(selector, "status.allocation.nodeSelector", report);
    }
}

/// One device that was given.
fn result(result: &Value, requests: &[Value], path: &str, report: &mut Report) {
    named_request(text(result, "/request"), requests, &format!("{path}.request"), report);
    named_device(result, path, report);
    binding_conditions(result, path, report);
    share(result, path, report);
}

fn named_device(holder: &Value, path: &str, report: &mut Report) {
    driver(text(holder, "/driver"), &format!("{path}.driver"), report);
    pool_name(text(holder, "/pool"), &format!("{path}.pool"), report);
    label(text(holder, "/device"), &format!("{path}.device"), report);
}

/// What a driver says about a device that the claim has.
fn device_status(status: &Value, results: &[Value], path: &str, report: &mut Report) {
    named_device(status, path, report);
    share(status, path, report);
    let own = device(status);
    if !results.iter().any(|result| device(result) == own) {
        report.invalid(path, shown(own), "must be an allocated device in the claim");
    }
    let all = list(status, "/conditions");
    let place = format!("{path}.conditions");
    if all.len() > MOST_CONDITIONS {
        let detail = format!("must have at most {MOST_CONDITIONS} items");
        let count = all.len().into();
        report.errors.push(FieldError::new(place.as_str(), Reason::TooMany, count, detail));
    }
    conditions(all, &place, report);
    if let Some(data) = status.get("data").filter(|data| !data.is_null()) {
        object(data, LONGEST_DATA, &format!("{path}.data"), report);
    }
    if let Some(network) = status.get("networkData") {
        self::network(network, &format!("{path}.networkData"), report);
    }
}

/// The share of a device that others have, too.
fn share(holder: &Value, path: &str, report: &mut Report) {
    let Some(given) = holder.get("shareID").and_then(Value::as_str) else { return };
    let path = format!("{path}.shareID");
    if let Some(why) = uuid_problem(given) {
        report.invalid(path, given, format!("error validating uid: {why}"));
    } else if given.len() != 36 || given != given.to_lowercase() {
        let why = "uid must be in RFC 4122 normalized form, \
                   `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        report.invalid(path, given, why);
    }
}

/// Why a text is no UUID, in the words of Go's library, which takes more forms than one.
fn uuid_problem(text: &str) -> Option<String> {
    const NO_UUID: &str = "invalid UUID format";
    let inner = match text.len() {
        36 | 32 => text,
        45 if text.get(..9).is_some_and(|head| head.eq_ignore_ascii_case("urn:uuid:")) => {
            &text[9..]
        }
        45 => return Some(format!("invalid urn prefix: {:?}", text.get(..9).unwrap_or(text))),
        38 if text.starts_with('{') && text.ends_with('}') => &text[1..37],
        38 => return Some("invalid bracketed UUID format".to_owned()),
        length => return Some(format!("invalid UUID length: {length}")),
    };
    let is_dash = |at: usize| inner.len() == 36 && matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| match is_dash(at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    (!inner.bytes().enumerate().all(fits)).then(|| NO_UUID.to_owned())
}

fn network(network: &Value, path: &str, report: &mut Report) {
    for (field, most) in
        [("interfaceName", LONGEST_INTERFACE), ("hardwareAddress", LONGEST_HARDWARE_ADDRESS)]
    {
        if text(network, &format!("/{field}")).len() > most {
            too_long(format!("{path}.{field}"), most, report);
        }
    }
    let (addresses, path) = (list(network, "/ips"), format!("{path}.ips"));
    if !few(addresses, MOST_ADDRESSES, &path, report) {
        return;
    }
    let texts: Vec<&str> = addresses.iter().filter_map(Value::as_str).collect();
    for (index, address) in texts.iter().enumerate() {
        if let Some(problem) = ip::interface_problem(address) {
            report.invalid(format!("{path}[{index}]"), *address, problem);
        }
    }
    unique(texts.into_iter(), &path, report);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{change, uuid_problem};
    use crate::validate::builtin::report::Report;

    fn claim(status: &Value) -> Value {
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "c"}}]);
        json!({"metadata": {}, "spec": {"devices": {"requests": requests}}, "status": status})
    }

    fn allocated(device: &str) -> Value {
        let result = json!({"request": "r", "driver": "a.b", "pool": "p", "device": device});
        json!({"devices": {"results": [result]}})
    }

    fn refused(old: &Value, new: &Value) -> Vec<String> {
        let mut report = Report::default();
        change(&claim(new), &claim(old), &mut report);
        report.errors.iter().map(|error| format!("{}: {}", error.path, error.detail)).collect()
    }

    #[test]
    fn what_was_allocated_stays_until_it_is_given_back() {
        let (one, other) =
            (json!({"allocation": allocated("d")}), json!({"allocation": allocated("e")}));
        assert_eq!(refused(&json!({}), &one), [] as [&str; 0]);
        assert_eq!(refused(&one, &one), [] as [&str; 0]);
        assert_eq!(refused(&one, &json!({})), [] as [&str; 0]);
        assert_eq!(refused(&one, &other), ["status.allocation: field is immutable"]);
    }

    #[test]
    fn only_what_is_allocated_is_used_and_spoken_of() {
        let device = json!({"driver": "a.b", "pool": "p", "device": "e"});
        let user = json!({"resource": "pods", "name": "p", "uid": "u"});
        let status = json!({"reservedFor": [user], "devices": [device]});
        assert_eq!(
            refused(&json!({}), &status),
            [
                "status.devices[0]: must be an allocated device in the claim",
                "status.reservedFor: may not be specified when `allocated` is not set",
            ]
        );
    }

    #[test]
    fn shares_are_named_by_uuids() {
        let uuid = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(uuid_problem(uuid), None);
        assert_eq!(uuid_problem(&uuid.replace('-', "")), None);
        assert_eq!(uuid_problem(&format!("urn:uuid:{uuid}")), None);
        assert_eq!(uuid_problem("x").unwrap(), "invalid UUID length: 1");
        assert_eq!(uuid_problem(&uuid.replace('-', "0")).unwrap(), "invalid UUID format");
    }
}

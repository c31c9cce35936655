//! The address families of a Service: completed and judged for a server that has IPv4 only.

use serde_json::{Value, json};

use crate::field::{FieldError, Reason};
use crate::kinds::Kind;
use crate::registry::metadata;
use crate::status::Status;
use crate::validate::ip;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
const POLICY: &str = "spec.ipFamilyPolicy";

/// Completes the families of a Service and the list of its addresses, or refuses them.
pub(super) fn complete(
    kind: &Kind,
    live: Option<&Value>,
    service: &mut Value,
) -> Result<(), Status> {
    let name = metadata::name(service).to_owned();
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else {
        return Ok(());
    };
    let old = live.map(|live| &live["spec"]);
    if spec["type"] == "ExternalName" {
        leave(spec, old);
        return Ok(());
    }
    let errors = fill(spec, old);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(kind, &name, &errors))
}

/// A name elsewhere has none of it: what was there before goes, what is new is refused with all the rest
/// that is wrong.
fn leave(spec: &mut Value, old: Option<&Value>) {
    let Some(fields) = spec.as_object_mut() else { return };
    if let Some(old) = old {
        fields.retain(|name, value| {
            !FIELDS.contains(&name.as_str()) || old.get(name) != Some(&*value)
        });
    }
    if let Some(address) = fields.get("clusterIP").filter(|address| **address != json!("")) {
        let list = json!([address]);
        fields.entry("clusterIPs").or_insert(list);
    }
}

fn fill(spec: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    sync_addresses(spec, old);
    if prefers_both_as_before(spec, old) {
        return Vec::new();
    }
    let bare = spec["clusterIP"] == "None"
        && spec.get("selector").is_none_or(|selector| *selector == json!({}));
    if spec.get("ipFamilyPolicy").is_none_or(Value::is_null) {
        let kept = old.and_then(|old| old.get("ipFamilyPolicy")).cloned();
        // Whoever fills a Service that has neither address nor selector may use both families.
        let policy = if bare { "RequireDualStack" } else { "SingleStack" };
        spec["ipFamilyPolicy"] = kept.unwrap_or_else(|| policy.into());
    }
    let errors = misfits(spec, old);
    if !errors.is_empty() {
        return errors;
    }
    let errors = infer(spec, old);
    if !errors.is_empty() {
        return errors;
    }
    let single = spec["ipFamilyPolicy"] == "SingleStack";
    let mut families = texts(spec, "ipFamilies");
    if bare {
        if families.is_empty() {
            families.push("IPv4".to_owned());
        }
        if families.len() < 2 && !single {
            let other = if families[0] == "IPv4" { "IPv6" } else { "IPv4" };
            families.push(other.to_owned());
        }
        spec["ipFamilies"] = families.into();
        return Vec::new();
    }
    let mut errors = Vec::new();
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::new(POLICY, Reason::Invalid, "RequireDualStack".into(), why));
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != "IPv4") {
        let path = format!("spec.ipFamilies[{index}]");
        let why = "not configured on this cluster";
        errors.push(FieldError::new(path, Reason::Invalid, family.as_str().into(), why));
    }
    if families.is_empty() {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    errors
}

fn texts(spec: &Value, field: &str) -> Vec<String> {
    let list = spec.get(field).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Clients may write the one address or the list; the other follows.
fn sync_addresses(spec: &mut Value, old: Option<&Value>) {
    let address = spec["clusterIP"].clone();
    if matches!(address.as_str(), None | Some("")) {
        return;
    }
    let unchanged = old.is_some_and(|old| {
        old["clusterIP"] != address && old.get("clusterIPs") == spec.get("clusterIPs")
    });
    if texts(spec, "clusterIPs").is_empty() || unchanged {
        spec["clusterIPs"] = json!([address]);
    }
}

/// A Service that would take both stays as it is, whatever there is by now.
fn prefers_both_as_before(spec: &Value, old: Option<&Value>) -> bool {
    let same = |field: &str| old.is_some_and(|old| old.get(field) == spec.get(field));
    spec["ipFamilyPolicy"] == "PreferDualStack" && FIELDS[1..].iter().all(|field| same(field))
}

/// What is wrong with these fields on any server.
fn misfits(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut invalid = |path: &str, value: Value, why: &str| {
        errors.push(FieldError::new(path, Reason::Invalid, value, why));
    };
    let addresses = texts(spec, "clusterIPs");
    let list = "spec.clusterIPs";
    let (shown, first) = (json!(addresses), spec["clusterIP"].as_str().unwrap_or(""));
    if first.is_empty() && !addresses.is_empty() {
        invalid(list, shown.clone(), "must be empty when `clusterIP` is not specified");
    } else if addresses.first().is_some_and(|address| address != first) {
        invalid(list, shown.clone(), "first value must match `clusterIP`");
    }
    let known = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let mut broken = false;
    for (index, address) in addresses.iter().enumerate() {
        if index == 0 && address == "None" {
            if addresses.len() > 1 {
                broken = true;
                invalid(list, shown.clone(), "'None' must be the first and only value");
            }
        } else if let Some(why) = ip::problem(address).filter(|_| !known.contains(address)) {
            broken = true;
            invalid(&format!("{list}[{index}]"), address.as_str().into(), why);
        }
    }
    if addresses.len() > 2 {
        invalid(list, shown.clone(), "may only hold up to 2 values");
    }
    if !broken {
        if addresses.len() > 1 && family(&addresses[0]) == family(&addresses[1]) {
            invalid(list, shown, "may specify no more than one IP for each IP family");
        }
        for (index, (address, wanted)) in
            addresses.iter().zip(texts(spec, "ipFamilies")).enumerate()
        {
            if address != "None" && family(address) != wanted && FAMILIES.contains(&&*wanted) {
                let why =
                    format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
                invalid(&format!("{list}[{index}]"), address.as_str().into(), &why);
            }
        }
    }
    let mut seen: Vec<String> = Vec::new();
    for (index, family) in texts(spec, "ipFamilies").into_iter().enumerate() {
        let path = format!("spec.ipFamilies[{index}]");
        if !FAMILIES.contains(&family.as_str()) {
            errors.push(unsupported(&path, &family, &FAMILIES));
        }
        if seen.contains(&family) {
            errors.push(FieldError::new(path, Reason::Duplicate, family.as_str().into(), ""));
        }
        seen.push(family);
    }
    let policy = spec["ipFamilyPolicy"].as_str().unwrap_or("");
    if !POLICIES.contains(&policy) {
        errors.push(unsupported(POLICY, policy, &POLICIES));
    }
    errors
}

fn unsupported(path: &str, value: &str, allowed: &[&str]) -> FieldError {
    let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", allowed.join(", "));
    FieldError::new(path, Reason::NotSupported, value.into(), detail)
}

fn family(address: &str) -> &'static str {
    if ip::is_six(address) { "IPv6" } else { "IPv4" }
}

/// The families of the addresses that are given, as far as the policy and this server go.
fn infer(spec: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (addresses, mut families) = (texts(spec, "clusterIPs"), texts(spec, "ipFamilies"));
    let policy = spec["ipFamilyPolicy"].clone();
    let mut refuse = |why: &str| {
        errors.push(FieldError::new(POLICY, Reason::Invalid, policy.clone(), why));
    };
    if policy == "SingleStack" {
        // To ask for one family is to give up the other.
        if let Some(old) = old
            && texts(old, "ipFamilies") == families
        {
            families.truncate(1);
        }
        let why = |what: &str| {
            format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            )
        };
        if addresses.len() == 2 {
            refuse(&why("cluster IPs"));
        }
        if families.len() == 2 {
            refuse(&why("IP families"));
        }
    } else if let Some(old) = old
        && families.len() == 1
        && texts(old, "ipFamilies").len() == 2
        && texts(old, "ipFamilies")[0] == families[0]
    {
        refuse("must be 'SingleStack' to release the secondary IP family");
    }
    for (index, address) in addresses.iter().enumerate().skip(families.len()) {
        if address == "None" {
            break;
        }
        match family(address) {
            "IPv4" => families.push("IPv4".to_owned()),
            other => {
                let path = format!("spec.clusterIPs[{index}]");
                let why = format!("{other} is not configured on this cluster");
                errors.push(FieldError::new(path, Reason::Invalid, json!(addresses), why));
            }
        }
    }
    if errors.is_empty() && !families.is_empty() {
        spec["ipFamilies"] = families.into();
    }
    errors
}

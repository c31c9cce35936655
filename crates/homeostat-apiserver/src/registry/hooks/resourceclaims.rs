//! Claims to devices: who may give devices away and speak for them, and what becomes of what was
//! said of devices that were given back.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Hooks, Judged, NONE};
use crate::auth::{Attributes, User};
use crate::field::FieldError;
use crate::registry::{Writer, metadata};
use crate::validate::device_of;

/// Namespaces with this label may have devices that others use.
const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

pub(super) const HOOKS: Hooks = Hooks {
    complete: |_, claim| show_conditions(claim),
    part: |_, part, live, claim| {
        if part == "status" {
            forget_returned(live, claim);
        }
    },
    judge: |writer, judged| match judged.live {
        None => admin_asked(writer, "/spec/devices/requests", judged.object),
        Some(live) if judged.part == "status" => status(writer, judged, live),
        Some(_) => Vec::new(),
    },
    ..NONE
};

pub(super) const TEMPLATE_HOOKS: Hooks = Hooks {
    judge: |writer, judged| match judged.live {
        None => admin_asked(writer, "/spec/spec/devices/requests", judged.object),
        Some(_) => Vec::new(),
    },
    ..NONE
};

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn results(claim: &Value) -> &[Value] {
    list(claim, "/status/allocation/devices/results")
}

fn statuses(claim: &Value) -> &[Value] {
    list(claim, "/status/devices")
}

/// The conditions of a device are never left out.
fn show_conditions(claim: &mut Value) {
    let devices = claim.pointer_mut("/status/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        device.entry("conditions").or_insert(Value::Null);
    }
}

/// Nobody speaks of devices that the claim had and has no more.
fn forget_returned(live: &Value, claim: &mut Value) {
    let had: BTreeSet<_> = results(live).iter().map(device_of).collect();
    let has: BTreeSet<_> = results(claim).iter().map(device_of).collect();
    let kept = statuses(claim).iter().filter(|status| {
        let device = device_of(status);
        has.contains(&device) || !had.contains(&device)
    });
    let kept: Vec<Value> = kept.cloned().collect();
    let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) else { return };
    if kept.is_empty() {
        status.shift_remove("devices");
    } else {
        status.insert("devices".to_owned(), kept.into());
    }
}

/// A request for devices that others use.
fn admin_asked(writer: &Writer<'_>, place: &str, object: &Value) -> Vec<FieldError> {
    let asks = |request: &Value| request.pointer("/exactly/adminAccess") == Some(&true.into());
    let asked = list(object, place).iter().position(asks);
    let path = |index: usize| format!("spec.devices.requests[{index}].adminAccess");
    asked.and_then(|index| admin_refused(writer, object, path(index))).into_iter().collect()
}

fn admin_refused(writer: &Writer<'_>, object: &Value, path: String) -> Option<FieldError> {
    let namespace = writer.registry.namespace(metadata::namespace(object));
    let is_marked = namespace.is_some_and(|namespace| {
        metadata::labels(&namespace.value()).get(ADMIN_ACCESS) == Some(&"true")
    });
    let why = format!(
        "admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing \
         namespace"
    );
    (!is_marked).then(|| FieldError::forbidden(path, why))
}

fn status(writer: &Writer<'_>, judged: &Judged<'_>, live: &Value) -> Vec<FieldError> {
    let claim = judged.object;
    let admin = |result: &Value| result.get("adminAccess") == Some(&true.into());
    let mut errors = Vec::new();
    if !results(live).iter().any(admin)
        && let Some(index) = results(claim).iter().position(admin)
    {
        let path = format!("status.allocation.devices.results[{index}].adminAccess");
        errors.extend(admin_refused(writer, claim, path));
    }
    let Some(user) = judged.user else { return errors };
    let is_same = |pointer: &str| live.pointer(pointer) == claim.pointer(pointer);
    if !(is_same("/status/allocation") && is_same("/status/reservedFor")) {
        let wanted = wanted("binding", judged.verb.to_owned());
        errors.extend(refused(writer, user, &wanted).map(|why| {
            let why = format!(
                "changing status.allocation or status.reservedFor requires \
                 resource=\"resourceclaims/binding\", verb=\"{}\" permission: {why}",
                judged.verb
            );
            FieldError::forbidden("status.allocation", why)
        }));
    }
    if claim.pointer("/status/allocation").is_some() {
        errors.extend(spoken_for(writer, judged, user, live));
    }
    errors
}

/// Whoever says something of the devices of a driver needs leave to.
fn spoken_for(
    writer: &Writer<'_>,
    judged: &Judged<'_>,
    user: &User,
    live: &Value,
) -> Vec<FieldError> {
    let (before, now) = (statuses(live), statuses(judged.object));
    let changed = now.iter().filter(|status| !before.contains(status));
    let gone = before.iter().filter(|status| {
        let device = device_of(status);
        !now.iter().any(|status| device_of(status) == device)
    });
    let drivers: BTreeSet<&str> = changed.chain(gone).map(|status| device_of(status)[0]).collect();
    let mut verbs = vec![format!("arbitrary-node:{}", judged.verb)];
    if is_on_node(user, judged.object) {
        verbs.insert(0, format!("associated-node:{}", judged.verb));
    }
    let refusals = drivers.into_iter().filter_map(|driver| {
        let asked = verbs.iter().map(|verb| Attributes {
            namespace: metadata::namespace(judged.object).to_owned(),
            name: driver.to_owned(),
            ..wanted("driver", verb.clone())
        });
        let refusals: Option<Vec<String>> =
            asked.map(|wanted| refused(writer, user, &wanted)).collect();
        refusals?.into_iter().next()
    });
    refusals
        .map(|why| {
            let why = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", \
                 verb=\"[{}]\" permission: {why}",
                verbs.join(" ")
            );
            FieldError::forbidden("status.devices", why)
        })
        .collect()
}

/// Whether a service account runs on the one node that the claim is for.
fn is_on_node(user: &User, claim: &Value) -> bool {
    let [term] = list(claim, "/status/allocation/nodeSelector/nodeSelectorTerms") else {
        return false;
    };
    let ([], [field]) = (list(term, "/matchExpressions"), list(term, "/matchFields")) else {
        return false;
    };
    let [node] = list(field, "/values") else { return false };
    let own = user.extra.get(NODE_NAME).map_or(&[][..], Vec::as_slice);
    field.get("key") == Some(&"metadata.name".into())
        && field.get("operator") == Some(&"In".into())
        && user.name.starts_with("system:serviceaccount:")
        && matches!(own, [own] if node == own)
}

fn wanted(part: &str, verb: String) -> Attributes {
    Attributes {
        verb,
        group: "resource.k8s.io".to_owned(),
        resource: "resourceclaims".to_owned(),
        subresource: part.to_owned(),
        ..Attributes::default()
    }
}

/// Why the user may not, if so.
fn refused(writer: &Writer<'_>, user: &User, wanted: &Attributes) -> Option<String> {
    let decision = writer.registry.rbac.authorize(user, wanted);
    (!decision.allowed).then(|| wanted.forbidden(user, &decision.reason).message)
}

//! How cells are made from objects. Absent fields give what `kubectl` users expect to see there.

use serde_json::{Value, json};

use super::{Row, age as ages};

pub(super) fn str_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn int_at(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the object has that condition with status `True`.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    list_at(object, "/status/conditions")
        .iter()
        .any(|found| str_at(found, "/type") == condition && str_at(found, "/status") == "True")
}

pub(super) fn name(row: &Row<'_>) -> Value {
    string(row, "/metadata/name")
}

pub(super) fn age(row: &Row<'_>) -> Value {
    json!(ages::since(str_at(row.object, "/metadata/creationTimestamp"), row.now))
}

pub(super) fn string(row: &Row<'_>, pointer: &str) -> Value {
    json!(str_at(row.object, pointer))
}

/// A string or a number as text.
pub(super) fn scalar(row: &Row<'_>, pointer: &str) -> Value {
    match row.object.pointer(pointer) {
        Some(Value::Number(number)) => json!(number.to_string()),
        other => json!(other.and_then(Value::as_str).unwrap_or_default()),
    }
}

pub(super) fn either(row: &Row<'_>, first: &str, second: &str) -> Value {
    match str_at(row.object, first) {
        "" => json!(str_at(row.object, second).trim()),
        text => json!(text.trim()),
    }
}

pub(super) fn or(value: Value, absent: &str) -> Value {
    if value.as_str().is_some_and(str::is_empty) { json!(absent) } else { value }
}

pub(super) fn int(row: &Row<'_>, pointer: &str) -> Value {
    json!(int_at(row.object, pointer))
}

pub(super) fn flag(row: &Row<'_>, pointer: &str) -> Value {
    json!(row.object.pointer(pointer) == Some(&Value::Bool(true)))
}

pub(super) fn count(row: &Row<'_>, pointer: &str) -> Value {
    json!(list_at(row.object, pointer).len())
}

pub(super) fn ratio(row: &Row<'_>, part: &str, whole: &str) -> Value {
    json!(format!("{}/{}", int_at(row.object, part), int_at(row.object, whole)))
}

pub(super) fn joined(row: &Row<'_>, first: &str, second: &str) -> Value {
    json!(format!("{}/{}", str_at(row.object, first), str_at(row.object, second)))
}

pub(super) fn since_or(row: &Row<'_>, pointer: &str, absent: &str) -> Value {
    match str_at(row.object, pointer) {
        "" => json!(absent),
        time => json!(ages::since(time, row.now)),
    }
}

fn join_or_none(parts: &[String], separator: &str) -> String {
    if parts.is_empty() { "<none>".to_owned() } else { parts.join(separator) }
}

/// `a=b,c=d`, sorted.
pub(super) fn labels(row: &Row<'_>, pointer: &str) -> Value {
    json!(join_or_none(&pairs(row.object.pointer(pointer)), ","))
}

fn pairs(map: Option<&Value>) -> Vec<String> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    let mut pairs: Vec<String> = entries
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    pairs
}

/// A label selector as it is typed on a command line.
pub(super) fn selector(row: &Row<'_>, pointer: &str) -> Value {
    let Some(selector) = row.object.pointer(pointer) else { return json!("<none>") };
    let mut parts = pairs(selector.get("matchLabels"));
    for rule in list_at(selector, "/matchExpressions") {
        let key = str_at(rule, "/key");
        let mut values: Vec<&str> =
            list_at(rule, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push(match str_at(rule, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.sort();
    json!(join_or_none(&parts, ","))
}

fn of_containers(row: &Row<'_>, pointer: &str, field: &str) -> Value {
    let containers = list_at(row.object, &format!("{pointer}/containers"));
    json!(containers.iter().map(|container| str_at(container, field)).collect::<Vec<_>>().join(","))
}

pub(super) fn containers(row: &Row<'_>, pointer: &str) -> Value {
    of_containers(row, pointer, "/name")
}

pub(super) fn images(row: &Row<'_>, pointer: &str) -> Value {
    of_containers(row, pointer, "/image")
}

pub(super) fn data_count(row: &Row<'_>, fields: &[&str]) -> Value {
    let size = |field: &&str| {
        row.object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    };
    json!(fields.iter().map(size).sum::<usize>())
}

pub(super) fn external_ip(row: &Row<'_>) -> Value {
    let ips: Vec<String> = list_at(row.object, "/spec/externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    match str_at(row.object, "/spec/type") {
        "ExternalName" => string(row, "/spec/externalName"),
        "LoadBalancer" => {
            let mut all = load_balancer_ips(row.object);
            all.extend(ips);
            if all.is_empty() { json!("<pending>") } else { json!(all.join(",")) }
        }
        _ => json!(join_or_none(&ips, ",")),
    }
}

fn load_balancer_ips(object: &Value) -> Vec<String> {
    let text = |ingress: &Value| match str_at(ingress, "/ip") {
        "" => str_at(ingress, "/hostname").to_owned(),
        ip => ip.to_owned(),
    };
    list_at(object, "/status/loadBalancer/ingress").iter().map(text).collect()
}

pub(super) fn load_balancer(row: &Row<'_>) -> Value {
    json!(load_balancer_ips(row.object).join(","))
}

pub(super) fn port_list(row: &Row<'_>) -> Value {
    let port = |port: &Value| {
        let (number, protocol) = (int_at(port, "/port"), str_at(port, "/protocol"));
        match int_at(port, "/nodePort") {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    };
    let ports: Vec<String> = list_at(row.object, "/spec/ports").iter().map(port).collect();
    json!(join_or_none(&ports, ","))
}

/// The first three, and how many more there are.
fn first_three(all: &[String]) -> String {
    match all.len() {
        0 => "<unset>".to_owned(),
        1..=3 => all.join(","),
        count => format!("{} + {} more...", all[..3].join(","), count - 3),
    }
}

pub(super) fn endpoints(row: &Row<'_>) -> Value {
    let mut all = Vec::new();
    for subset in list_at(row.object, "/subsets") {
        let addresses =
            || list_at(subset, "/addresses").iter().map(|address| str_at(address, "/ip"));
        let ports = list_at(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            all.extend(addresses().map(|ip| format!("{ip}:{}", int_at(port, "/port"))));
        }
    }
    if list_at(row.object, "/subsets").is_empty() {
        json!("<none>")
    } else {
        or(json!(first_three(&all)), "")
    }
}

pub(super) fn slice_ports(row: &Row<'_>) -> Value {
    let port =
        |port: &Value| match (port.get("port").and_then(Value::as_i64), str_at(port, "/name")) {
            (Some(number), _) => number.to_string(),
            (None, "") => "*".to_owned(),
            (None, name) => name.to_owned(),
        };
    json!(first_three(&list_at(row.object, "/ports").iter().map(port).collect::<Vec<_>>()))
}

pub(super) fn slice_addresses(row: &Row<'_>) -> Value {
    let all: Vec<String> = list_at(row.object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list_at(endpoint, "/addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    json!(first_three(&all))
}

pub(super) fn node_status(row: &Row<'_>) -> Value {
    let ready =
        list_at(row.object, "/status/conditions").iter().find(|c| str_at(c, "/type") == "Ready");
    let mut status = match ready.map(|condition| str_at(condition, "/status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if row.object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    json!(status)
}

pub(super) fn node_roles(row: &Row<'_>) -> Value {
    let labels = row.object.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role.to_owned()),
            None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort();
    roles.dedup();
    json!(join_or_none(&roles, ","))
}

pub(super) fn ip_of(row: &Row<'_>, ty: &str) -> Value {
    let found = list_at(row.object, "/status/addresses").iter().find(|a| str_at(a, "/type") == ty);
    json!(found.map_or("<none>", |address| str_at(address, "/address")))
}

pub(super) fn access_modes(row: &Row<'_>, pointer: &str) -> Value {
    let modes = list_at(row.object, pointer);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found = short.iter().filter(|(long, _)| modes.contains(&json!(long)));
    json!(found.map(|(_, short)| *short).collect::<Vec<_>>().join(","))
}

fn is_deleting(object: &Value) -> bool {
    !str_at(object, "/metadata/deletionTimestamp").is_empty()
}

pub(super) fn volume_phase(row: &Row<'_>) -> Value {
    if is_deleting(row.object) { json!("Terminating") } else { string(row, "/status/phase") }
}

pub(super) fn volume_claim(row: &Row<'_>) -> Value {
    match row.object.pointer("/spec/claimRef") {
        None => json!(""),
        Some(_) => joined(row, "/spec/claimRef/namespace", "/spec/claimRef/name"),
    }
}

pub(super) fn quota(row: &Row<'_>, limits: bool) -> Value {
    let hard = row.object.pointer("/status/hard").and_then(Value::as_object);
    let mut parts: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = row.object.pointer("/status/used").and_then(|used| used.get(name));
            let text =
                |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("0").to_owned();
            format!("{name}: {}/{}", text(used), text(Some(hard)))
        })
        .collect();
    parts.sort();
    json!(parts.join(", "))
}

pub(super) fn controller(row: &Row<'_>) -> Value {
    let owner = list_at(row.object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    let Some(owner) = owner else { return json!("<none>") };
    let group = str_at(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    let kind = str_at(owner, "/kind").to_lowercase();
    json!(format!("{kind}{dot}{group}/{}", str_at(owner, "/name")))
}

pub(super) fn job_status(row: &Row<'_>) -> Value {
    let has = |condition: &str| is_true(row.object, condition);
    json!(match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if is_deleting(row.object) => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    })
}

pub(super) fn job_completions(row: &Row<'_>) -> Value {
    let done = int_at(row.object, "/status/succeeded");
    let wanted = row.object.pointer("/spec/completions").and_then(Value::as_i64);
    json!(match (wanted, int_at(row.object, "/spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    })
}

pub(super) fn job_duration(row: &Row<'_>) -> Value {
    let time = |pointer: &str| str_at(row.object, pointer).parse::<jiff::Timestamp>().ok();
    let Some(start) = time("/status/startTime") else { return json!("") };
    let end = time("/status/completionTime").unwrap_or(row.now);
    json!(ages::human_duration(end.as_second() - start.as_second()))
}

pub(super) fn ingress_hosts(row: &Row<'_>) -> Value {
    let hosts: Vec<String> = list_at(row.object, "/spec/rules")
        .iter()
        .map(|rule| str_at(rule, "/host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    if hosts.is_empty() { json!("*") } else { json!(first_three(&hosts)) }
}

pub(super) fn ingress_ports(row: &Row<'_>) -> Value {
    json!(if list_at(row.object, "/spec/tls").is_empty() { "80" } else { "80, 443" })
}

pub(super) fn storage_class_name(row: &Row<'_>) -> Value {
    let annotations = row.object.pointer("/metadata/annotations");
    let key = "storageclass.kubernetes.io/is-default-class";
    let default = annotations.and_then(|all| all.get(key)).and_then(Value::as_str) == Some("true");
    let name = str_at(row.object, "/metadata/name");
    json!(if default { format!("{name} (default)") } else { name.to_owned() })
}

pub(super) fn subjects(row: &Row<'_>, kind: &str) -> Value {
    let subjects = list_at(row.object, "/subjects").iter().filter(|s| str_at(s, "/kind") == kind);
    let text = |subject: &Value| match (kind, str_at(subject, "/namespace")) {
        ("ServiceAccount", namespace) => format!("{namespace}/{}", str_at(subject, "/name")),
        _ => str_at(subject, "/name").to_owned(),
    };
    json!(subjects.map(text).collect::<Vec<_>>().join(", "))
}

pub(super) fn signing_condition(row: &Row<'_>) -> Value {
    let has = |condition: &str| is_true(row.object, condition);
    let issued = !str_at(row.object, "/status/certificate").is_empty();
    let mut parts = vec![match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }];
    parts.extend(has("Failed").then_some("Failed"));
    parts.extend(issued.then_some("Issued"));
    json!(parts.join(","))
}

/// The API writes this one as Go prints it.
pub(super) fn suspended(row: &Row<'_>) -> Value {
    match row.object.pointer("/spec/suspend") {
        Some(Value::Bool(true)) => json!("True"),
        Some(Value::Bool(false)) => json!("False"),
        _ => json!("<unset>"),
    }
}

pub(super) fn kernel(row: &Row<'_>) -> Value {
    let version = match str_at(row.object, "/status/nodeInfo/kernelVersion") {
        "" => "<unknown>",
        version => version,
    };
    match str_at(row.object, "/status/nodeInfo/architecture") {
        "" => json!(version),
        architecture => json!(format!("{version} ({architecture})")),
    }
}

fn event_times<'a>(row: &Row<'a>) -> (&'a str, &'a str) {
    let at = |pointers: &[&str]| {
        pointers.iter().map(|p| str_at(row.object, p)).find(|t| !t.is_empty()).unwrap_or_default()
    };
    let first = at(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let last = at(&["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"]);
    (first, if last.is_empty() { first } else { last })
}

pub(super) fn event_first(row: &Row<'_>) -> Value {
    json!(ages::since(event_times(row).0, row.now))
}

pub(super) fn event_last(row: &Row<'_>) -> Value {
    json!(ages::since(event_times(row).1, row.now))
}

pub(super) fn event_count(row: &Row<'_>) -> Value {
    let counts = ["/series/count", "/count", "/deprecatedCount"];
    let count = counts.iter().map(|p| int_at(row.object, p)).find(|count| *count != 0);
    json!(count.unwrap_or(1))
}

pub(super) fn event_object(row: &Row<'_>) -> Value {
    let object = row.object.get("involvedObject").or_else(|| row.object.get("regarding"));
    let Some(object) = object else { return json!("") };
    let kind = str_at(object, "/kind").to_lowercase();
    match str_at(object, "/name") {
        "" => json!(kind),
        name => json!(format!("{kind}/{name}")),
    }
}

pub(super) fn event_source(row: &Row<'_>) -> Value {
    let at = |first: &str, second: &str| {
        either(row, first, second).as_str().unwrap_or_default().to_owned()
    };
    let component = at("/source/component", "/reportingComponent");
    let component = if component.is_empty() {
        at("/reportingController", "/deprecatedSource/component")
    } else {
        component
    };
    let host = at("/source/host", "/reportingInstance");
    json!(if host.is_empty() { component } else { format!("{component}, {host}") })
}

pub(super) fn ingress_class_parameters(row: &Row<'_>) -> Value {
    let text = |field: &str| {
        let pointer = format!("/spec/parameters/{field}");
        row.object.pointer(&pointer).and_then(Value::as_str).unwrap_or_default()
    };
    if text("name").is_empty() {
        return "<none>".into();
    }
    let dot = if text("apiGroup").is_empty() { "" } else { "." };
    format!("{}{dot}{}/{}", text("kind"), text("apiGroup"), text("name")).into()
}

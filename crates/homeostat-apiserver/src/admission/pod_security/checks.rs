//! The checks of the Pod security standards: what each level forbids, and in which words.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// How much a Pod may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A check: why a Pod is forbidden, or nothing.
type Check = fn(&Value) -> Option<String>;

const BASELINE: &[Check] = &[
    app_armor,
    default_capabilities,
    host_namespaces,
    host_paths,
    host_ports,
    privileged,
    proc_mount,
    se_linux,
    |pod| seccomp(pod, false),
    sysctls,
];

const RESTRICTED: &[Check] = &[
    app_armor,
    host_namespaces,
    host_ports,
    privileged,
    proc_mount,
    se_linux,
    sysctls,
    privilege_escalation,
    few_capabilities,
    volumes,
    non_root,
    root_user,
    |pod| seccomp(pod, true),
];

/// What the level forbids of this Pod, all of it.
pub(super) fn violations(level: Level, pod: &Value) -> Option<String> {
    let checks = match level {
        Level::Privileged => return None,
        Level::Baseline => BASELINE,
        Level::Restricted => RESTRICTED,
    };
    let broken: Vec<String> = checks.iter().filter_map(|check| check(pod)).collect();
    (!broken.is_empty()).then(|| broken.join(", "))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| {
        let list = pod.get("spec").and_then(|spec| spec.get(list));
        list.and_then(Value::as_array).into_iter().flatten()
    })
}

fn name(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or("")
}

/// A field of the container's (or the Pod's) security context.
fn context<'a>(holder: &'a Value, field: &str) -> Option<&'a Value> {
    let context = holder.get("securityContext")?;
    context.get(field).filter(|value| !value.is_null())
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("{item:?}")).collect();
    items.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"`, `containers "a", "b"`; nothing for none.
fn named(bad: &[&str]) -> Option<String> {
    (!bad.is_empty()).then(|| {
        format!("{} {}", plural("container", "containers", bad.len()), quoted(bad.iter().copied()))
    })
}

fn bad_containers(pod: &Value, bad: impl Fn(&Value) -> bool) -> Vec<&str> {
    containers(pod).filter(|container| bad(container)).map(name).collect()
}

/// `pod and container "a"`: whoever sets something that is bad.
fn setters(pod: &Value, bad: impl Fn(&Value) -> bool) -> Option<String> {
    let own = pod.get("spec").is_some_and(&bad).then(|| "pod".to_owned());
    let all: Vec<String> = own.into_iter().chain(named(&bad_containers(pod, &bad))).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

/// The words at a path of the security contexts of the Pod and its containers.
fn words(pod: &Value, read: impl Fn(&Value) -> Vec<String>) -> BTreeSet<String> {
    pod.get("spec").into_iter().chain(containers(pod)).flat_map(read).collect()
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn profile(holder: &Value, field: &str) -> Option<String> {
    Some(context(holder, field)?.get("type")?.as_str()?.to_owned())
}

fn app_armor(pod: &Value) -> Option<String> {
    let bad = |holder: &Value| profile(holder, "appArmorProfile").filter(|p| p == "Unconfined");
    let setters = setters(pod, |holder| bad(holder).is_some())?;
    let values = words(pod, |holder| bad(holder).into_iter().collect());
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let values = quoted(values.iter().map(String::as_str));
    Some(format!("{reason} ({setters} must not set AppArmor profile type to {values})"))
}

const DEFAULT_CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn added(container: &Value, allowed: &[&str]) -> Vec<String> {
    let added = texts(context(container, "capabilities").and_then(|all| all.get("add")));
    added.into_iter().filter(|name| !allowed.contains(&name.as_str())).collect()
}

fn adding(pod: &Value, allowed: &[&str]) -> Option<String> {
    let bad = named(&bad_containers(pod, |container| !added(container, allowed).is_empty()))?;
    let forbidden: BTreeSet<String> =
        containers(pod).flat_map(|container| added(container, allowed)).collect();
    let forbidden = quoted(forbidden.iter().map(String::as_str));
    Some(format!("{bad} must not include {forbidden} in securityContext.capabilities.add"))
}

fn default_capabilities(pod: &Value) -> Option<String> {
    adding(pod, DEFAULT_CAPABILITIES).map(|why| format!("non-default capabilities ({why})"))
}

fn few_capabilities(pod: &Value) -> Option<String> {
    let keeping = bad_containers(pod, |container| {
        let dropped = texts(context(container, "capabilities").and_then(|all| all.get("drop")));
        !dropped.iter().any(|name| name == "ALL")
    });
    let keeping = named(&keeping)
        .map(|bad| format!("{bad} must set securityContext.capabilities.drop=[\"ALL\"]"));
    let all: Vec<String> = keeping.into_iter().chain(adding(pod, &["NET_BIND_SERVICE"])).collect();
    (!all.is_empty()).then(|| format!("unrestricted capabilities ({})", all.join("; ")))
}

fn host_namespaces(pod: &Value) -> Option<String> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared: Vec<String> = shared
        .filter(|field| pod.pointer(&format!("/spec/{field}")) == Some(&json!(true)))
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| format!("host namespaces ({})", shared.join(", ")))
}

fn volume_list(pod: &Value) -> impl Iterator<Item = &Value> {
    pod.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten()
}

fn host_paths(pod: &Value) -> Option<String> {
    let bad: Vec<&str> =
        volume_list(pod).filter(|volume| volume.get("hostPath").is_some()).map(name).collect();
    (!bad.is_empty()).then(|| {
        let volumes = plural("volume", "volumes", bad.len());
        format!("hostPath volumes ({volumes} {})", quoted(bad.iter().copied()))
    })
}

fn volumes(pod: &Value) -> Option<String> {
    const ALLOWED: &[&str] = &[
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let source = |volume: &Value| {
        let fields = volume.as_object().into_iter().flatten();
        fields.map(|(field, _)| field.clone()).find(|field| field != "name")
    };
    let is_bad =
        |volume: &&Value| !source(volume).is_some_and(|source| ALLOWED.contains(&source.as_str()));
    let bad: Vec<&str> = volume_list(pod).filter(is_bad).map(name).collect();
    let kinds: BTreeSet<String> = volume_list(pod).filter(is_bad).filter_map(source).collect();
    (!bad.is_empty()).then(|| {
        format!(
            "restricted volume types ({} {} {} {} {})",
            plural("volume", "volumes", bad.len()),
            quoted(bad.iter().copied()),
            plural("uses", "use", bad.len()),
            plural("restricted volume type", "restricted volume types", kinds.len()),
            quoted(kinds.iter().map(String::as_str))
        )
    })
}

fn host_ports(pod: &Value) -> Option<String> {
    let ports = |container: &Value| -> Vec<i64> {
        let ports = container.get("ports").and_then(Value::as_array).into_iter().flatten();
        ports.filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0).collect()
    };
    let bad = bad_containers(pod, |container| !ports(container).is_empty());
    let forbidden: BTreeSet<String> =
        containers(pod).flat_map(ports).map(|port| port.to_string()).collect();
    let who = named(&bad)?;
    let uses = plural("uses", "use", bad.len());
    let what = plural("hostPort", "hostPorts", forbidden.len());
    let forbidden: Vec<String> = forbidden.into_iter().collect();
    Some(format!("hostPort ({who} {uses} {what} {})", forbidden.join(", ")))
}

fn privileged(pod: &Value) -> Option<String> {
    let bad = |container: &Value| context(container, "privileged") == Some(&json!(true));
    let who = named(&bad_containers(pod, bad))?;
    Some(format!("privileged ({who} must not set securityContext.privileged=true)"))
}

/// Pods in a user namespace of their own are root only there.
fn has_own_users(pod: &Value) -> bool {
    pod.pointer("/spec/hostUsers") == Some(&json!(false))
}

fn proc_mount(pod: &Value) -> Option<String> {
    let kind = |container: &Value| {
        let kind = context(container, "procMount")?.as_str()?;
        (kind != "Default").then(|| kind.to_owned())
    };
    let who = named(&bad_containers(pod, |container| kind(container).is_some()))?;
    let kinds: BTreeSet<String> = containers(pod).filter_map(kind).collect();
    let kinds = quoted(kinds.iter().map(String::as_str));
    (!has_own_users(pod))
        .then(|| format!("procMount ({who} must not set securityContext.procMount to {kinds})"))
}

fn se_linux(pod: &Value) -> Option<String> {
    const ALLOWED: &[&str] =
        &["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let part = |holder: &Value, field: &str| -> String {
        let options = context(holder, "seLinuxOptions");
        let text = options.and_then(|options| options.get(field)).and_then(Value::as_str);
        text.unwrap_or("").to_owned()
    };
    let bad_type = |holder: &Value| !ALLOWED.contains(&part(holder, "type").as_str());
    let sets = |holder: &Value, field: &str| !part(holder, field).is_empty();
    let setters =
        setters(pod, |holder| bad_type(holder) || sets(holder, "user") || sets(holder, "role"))?;
    let types =
        words(pod, |holder| bad_type(holder).then(|| part(holder, "type")).into_iter().collect());
    let mut data = Vec::new();
    if !types.is_empty() {
        let word = plural("type", "types", types.len());
        data.push(format!("{word} {}", quoted(types.iter().map(String::as_str))));
    }
    for field in ["user", "role"] {
        if pod.get("spec").into_iter().chain(containers(pod)).any(|holder| sets(holder, field)) {
            data.push(format!("{field} may not be set"));
        }
    }
    let data = data.join("; ");
    Some(format!("seLinuxOptions ({setters} set forbidden securityContext.seLinuxOptions: {data})"))
}

fn seccomp(pod: &Value, required: bool) -> Option<String> {
    let set = |holder: &Value| profile(holder, "seccompProfile");
    let bad = |holder: &Value| set(holder).filter(|p| p != "RuntimeDefault" && p != "Localhost");
    if let Some(setters) = setters(pod, |holder| bad(holder).is_some()) {
        let values = words(pod, |holder| bad(holder).into_iter().collect());
        let values = quoted(values.iter().map(String::as_str));
        return Some(format!(
            "seccompProfile ({setters} must not set securityContext.seccompProfile.type to {values})"
        ));
    }
    if !required || pod.get("spec").and_then(set).is_some() {
        return None;
    }
    let who = named(&bad_containers(pod, |container| set(container).is_none()))?;
    Some(format!(
        "seccompProfile (pod or {who} must set securityContext.seccompProfile.type to \
         \"RuntimeDefault\" or \"Localhost\")"
    ))
}

fn sysctls(pod: &Value) -> Option<String> {
    const ALLOWED: &[&str] = &[
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ];
    let set = pod.pointer("/spec/securityContext/sysctls").and_then(Value::as_array);
    let set = set.into_iter().flatten().map(name);
    let bad: Vec<&str> = set.filter(|name| !ALLOWED.contains(name)).collect();
    (!bad.is_empty()).then(|| format!("forbidden sysctls ({})", bad.join(", ")))
}

fn privilege_escalation(pod: &Value) -> Option<String> {
    let bad =
        |container: &Value| context(container, "allowPrivilegeEscalation") != Some(&json!(false));
    let who = named(&bad_containers(pod, bad))?;
    Some(format!(
        "allowPrivilegeEscalation != false ({who} must set \
         securityContext.allowPrivilegeEscalation=false)"
    ))
}

fn non_root(pod: &Value) -> Option<String> {
    if has_own_users(pod) {
        return None;
    }
    let set = |holder: &Value| context(holder, "runAsNonRoot").and_then(Value::as_bool);
    if let Some(setters) = setters(pod, |holder| set(holder) == Some(false)) {
        return Some(format!(
            "runAsNonRoot != true ({setters} must not set securityContext.runAsNonRoot=false)"
        ));
    }
    if pod.get("spec").and_then(set) == Some(true) {
        return None;
    }
    let who = named(&bad_containers(pod, |container| set(container).is_none()))?;
    Some(format!("runAsNonRoot != true (pod or {who} must set securityContext.runAsNonRoot=true)"))
}

fn root_user(pod: &Value) -> Option<String> {
    let is_root = |holder: &Value| context(holder, "runAsUser") == Some(&json!(0));
    let setters = setters(pod, is_root).filter(|_| !has_own_users(pod))?;
    Some(format!("runAsUser=0 ({setters} must not set runAsUser=0)"))
}

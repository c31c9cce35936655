//! Where the Services of its namespace are, told to a container by its environment. Pure.
//!
//! What exists when a container starts is told; what comes later is found by name only.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};

/// The Service of the API itself, which every container may know.
const API: (&str, &str) = ("default", "kubernetes");

/// The variables that lead to the API, and unless the Pod wants none to the Services beside it.
/// `answered` tells at which port a Service's port is answered on this host.
pub(crate) fn links(
    pod: &Pod,
    services: &[Arc<Service>],
    answered: impl Fn(i32) -> i32,
) -> Vec<(String, String)> {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let at = |service: &Service| {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        (text(&service.metadata.namespace), text(&service.metadata.name))
    };
    let is_api = |at: &(String, String)| (at.0.as_str(), at.1.as_str()) == API;
    let mut all = Vec::new();
    for service in services {
        let at = at(service);
        let own = wanted && at.0 == namespace && at.1 != API.1;
        if own || is_api(&at) {
            all.extend(of_service(&at.1, service, &answered));
        }
    }
    all
}

fn of_service(
    name: &str,
    service: &Service,
    answered: &impl Fn(i32) -> i32,
) -> Vec<(String, String)> {
    let spec = service.spec.as_ref();
    let ip = spec.and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    let ports = spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let Some(first) = ports.first().filter(|_| !matches!(ip, "" | "None")) else {
        return Vec::new();
    };
    let name = upper(name);
    let at = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    let mut all = vec![
        (format!("{name}_SERVICE_HOST"), ip.to_owned()),
        (format!("{name}_SERVICE_PORT"), answered(first.port).to_string()),
    ];
    for (index, port) in ports.iter().enumerate() {
        let number = answered(port.port);
        if let Some(of) = port.name.as_deref().filter(|name| !name.is_empty()) {
            all.push((format!("{name}_SERVICE_PORT_{}", upper(of)), number.to_string()));
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let plain = protocol.to_lowercase();
        let address = format!("{plain}://{at}:{number}");
        if index == 0 {
            all.push((format!("{name}_PORT"), address.clone()));
        }
        let prefix = format!("{name}_PORT_{number}_{}", protocol.to_uppercase());
        all.push((format!("{prefix}_PROTO"), plain));
        all.push((format!("{prefix}_PORT"), number.to_string()));
        all.push((format!("{prefix}_ADDR"), ip.to_owned()));
        all.push((prefix, address));
    }
    all
}

fn upper(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn service(namespace: &str, name: &str, spec: &Value) -> Arc<Service> {
        let metadata = json!({ "namespace": namespace, "name": name });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
    }

    fn told(links_wanted: Option<bool>) -> BTreeMap<String, String> {
        let https = json!({ "name": "https", "port": 443, "protocol": "TCP" });
        let two = json!([{ "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "web-ui", "port": 80 }]);
        let services = [
            service(
                "default",
                "kubernetes",
                &json!({ "clusterIP": "127.96.0.1", "ports": [https] }),
            ),
            service("shop", "kubernetes", &json!({ "clusterIP": "127.96.0.7", "ports": [https] })),
            service("shop", "my-db", &json!({ "clusterIP": "127.96.0.2", "ports": two })),
            service("shop", "headless", &json!({ "clusterIP": "None", "ports": two })),
            service("other", "far", &json!({ "clusterIP": "127.96.0.3", "ports": two })),
        ];
        let mut pod: Pod = serde_json::from_value(
            json!({ "metadata": { "namespace": "shop" }, "spec": { "containers": [] } }),
        )
        .unwrap();
        pod.spec.as_mut().unwrap().enable_service_links = links_wanted;
        links(&pod, &services, |port| port).into_iter().collect()
    }

    #[test]
    fn a_container_knows_the_api_and_the_services_beside_it() {
        let told = told(None);
        for (name, value) in [
            ("KUBERNETES_SERVICE_HOST", "127.96.0.1"),
            ("KUBERNETES_SERVICE_PORT", "443"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
            ("KUBERNETES_PORT", "tcp://127.96.0.1:443"),
            ("KUBERNETES_PORT_443_TCP", "tcp://127.96.0.1:443"),
            ("KUBERNETES_PORT_443_TCP_PROTO", "tcp"),
            ("KUBERNETES_PORT_443_TCP_PORT", "443"),
            ("KUBERNETES_PORT_443_TCP_ADDR", "127.96.0.1"),
            ("MY_DB_SERVICE_HOST", "127.96.0.2"),
            ("MY_DB_SERVICE_PORT", "53"),
            ("MY_DB_SERVICE_PORT_DNS", "53"),
            ("MY_DB_SERVICE_PORT_WEB_UI", "80"),
            ("MY_DB_PORT", "udp://127.96.0.2:53"),
            ("MY_DB_PORT_80_TCP", "tcp://127.96.0.2:80"),
        ] {
            assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}");
        }
        let strange = |name: &&String| name.starts_with("HEADLESS") || name.starts_with("FAR");
        assert_eq!(told.keys().find(strange), None);
    }

    #[test]
    fn a_pod_that_wants_no_links_knows_the_api_alone() {
        assert!(told(Some(false)).keys().all(|name| name.starts_with("KUBERNETES_")));
        assert!(told(Some(false)).contains_key("KUBERNETES_SERVICE_HOST"));
    }
}

//! The columns of built-in kinds, as a table. A kind without a row shows its name and when it was
//! created.

use serde_json::Value;

use super::cells::{
    access_modes, age, containers, count, data_count, endpoints, external_ip, images, int, ip_of,
    job_duration, joined, labels, name, node_roles, node_status, or, port_list, ratio, selector,
    since_or, slice_addresses, slice_ports, string, subjects,
};
use super::{Column, Row, address, autoscaler, cells, pod};

pub(super) const fn column(
    name: &'static str,
    ty: &'static str,
    cell: fn(&Row<'_>) -> Value,
) -> Column {
    Column { name, ty, format: "", priority: 0, cell }
}

pub(super) const fn text(name: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    column(name, "string", cell)
}

pub(super) const fn number(name: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    column(name, "integer", cell)
}

const fn wide(name: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    Column { name, ty: "string", format: "", priority: 1, cell }
}

pub(super) const NAME: Column =
    Column { name: "Name", ty: "string", format: "name", priority: 0, cell: name };
pub(super) const AGE: Column = text("Age", age);
const CREATED_AT: Column =
    column("Created At", "date", |row| string(row, "/metadata/creationTimestamp"));
const TEMPLATE_CONTAINERS: Column =
    wide("Containers", |row| containers(row, "/spec/template/spec"));
const TEMPLATE_IMAGES: Column = wide("Images", |row| images(row, "/spec/template/spec"));
const SELECTOR: Column = wide("Selector", |row| selector(row, "/spec/selector"));

/// The columns of a kind.
pub(super) fn of(group: &str, kind: &str) -> &'static [Column] {
    if let Some(columns) = super::seldom::of(group, kind) {
        return columns;
    }
    match (group, kind) {
        ("", "Pod") => POD,
        ("", "Service") => SERVICE,
        ("", "Endpoints") => ENDPOINTS,
        ("", "Node") => NODE,
        ("", "Namespace") => NAMESPACE,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "Secret") => SECRET,
        ("", "ServiceAccount") | ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => {
            NAME_AGE
        }
        ("" | "events.k8s.io", "Event") => EVENT,
        ("", "PersistentVolume") => PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => PERSISTENT_VOLUME_CLAIM,
        ("", "ResourceQuota") => RESOURCE_QUOTA,
        ("", "ReplicationController") => REPLICATION_CONTROLLER,
        ("", "PodTemplate") => POD_TEMPLATE,
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => REPLICA_SET,
        ("apps", "StatefulSet") => STATEFUL_SET,
        ("apps", "DaemonSet") => DAEMON_SET,
        ("apps", "ControllerRevision") => CONTROLLER_REVISION,
        ("batch", "Job") => JOB,
        ("batch", "CronJob") => CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => AUTOSCALER,
        ("policy", "PodDisruptionBudget") => DISRUPTION_BUDGET,
        ("networking.k8s.io", "Ingress") => INGRESS,
        ("networking.k8s.io", "IngressClass") => INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => NETWORK_POLICY,
        ("networking.k8s.io", "IPAddress") => IP_ADDRESS,
        ("networking.k8s.io", "ServiceCIDR") => SERVICE_CIDR,
        ("discovery.k8s.io", "EndpointSlice") => ENDPOINT_SLICE,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("storage.k8s.io", "StorageClass") => STORAGE_CLASS,
        ("storage.k8s.io", "CSINode") => CSI_NODE,
        ("storage.k8s.io", "VolumeAttachment") => VOLUME_ATTACHMENT,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => ROLE_BINDING,
        ("scheduling.k8s.io", "PriorityClass") => PRIORITY_CLASS,
        ("node.k8s.io", "RuntimeClass") => RUNTIME_CLASS,
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => WEBHOOKS,
        ("certificates.k8s.io", "CertificateSigningRequest") => SIGNING_REQUEST,
        _ => NAME_CREATED,
    }
}

const NAME_AGE: &[Column] = &[NAME, AGE];
const NAME_CREATED: &[Column] = &[NAME, CREATED_AT];

const POD: &[Column] = &[
    NAME,
    text("Ready", pod::ready),
    text("Status", pod::status),
    text("Restarts", pod::restarts),
    AGE,
    wide("IP", |row| or(string(row, "/status/podIPs/0/ip"), "<none>")),
    wide("Node", |row| or(string(row, "/spec/nodeName"), "<none>")),
    wide("Nominated Node", |row| or(string(row, "/status/nominatedNodeName"), "<none>")),
    wide("Readiness Gates", pod::readiness_gates),
];

const SERVICE: &[Column] = &[
    NAME,
    text("Type", |row| string(row, "/spec/type")),
    text("Cluster-IP", |row| or(string(row, "/spec/clusterIP"), "<none>")),
    text("External-IP", external_ip),
    text("Port(s)", port_list),
    AGE,
    wide("Selector", |row| labels(row, "/spec/selector")),
];

const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", endpoints), AGE];

const NODE: &[Column] = &[
    NAME,
    text("Status", node_status),
    text("Roles", node_roles),
    AGE,
    text("Version", |row| string(row, "/status/nodeInfo/kubeletVersion")),
    wide("Internal-IP", |row| ip_of(row, "InternalIP")),
    wide("External-IP", |row| ip_of(row, "ExternalIP")),
    wide("OS-Image", |row| or(string(row, "/status/nodeInfo/osImage"), "<unknown>")),
    wide("Kernel-Version", cells::kernel),
    wide("Container-Runtime", |row| {
        or(string(row, "/status/nodeInfo/containerRuntimeVersion"), "<unknown>")
    }),
];

const NAMESPACE: &[Column] = &[NAME, text("Status", |row| string(row, "/status/phase")), AGE];

const CONFIG_MAP: &[Column] =
    &[NAME, text("Data", |row| data_count(row, &["data", "binaryData"])), AGE];

const SECRET: &[Column] = &[
    NAME,
    text("Type", |row| string(row, "/type")),
    text("Data", |row| data_count(row, &["data"])),
    AGE,
];

const EVENT: &[Column] = &[
    text("Last Seen", cells::event_last),
    text("Type", |row| string(row, "/type")),
    text("Reason", |row| string(row, "/reason")),
    text("Object", cells::event_object),
    wide("Subobject", |row| {
        cells::either(row, "/involvedObject/fieldPath", "/regarding/fieldPath")
    }),
    wide("Source", cells::event_source),
    text("Message", |row| cells::either(row, "/message", "/note")),
    wide("First Seen", cells::event_first),
    wide("Count", cells::event_count),
    Column { name: "Name", ty: "string", format: "name", priority: 1, cell: name },
];

const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity", |row| string(row, "/spec/capacity/storage")),
    text("Access Modes", |row| access_modes(row, "/spec/accessModes")),
    text("Reclaim Policy", |row| string(row, "/spec/persistentVolumeReclaimPolicy")),
    text("Status", cells::volume_phase),
    text("Claim", cells::volume_claim),
    text("StorageClass", |row| string(row, "/spec/storageClassName")),
    text("VolumeAttributesClass", |row| {
        or(string(row, "/spec/volumeAttributesClassName"), "<unset>")
    }),
    text("Reason", |row| string(row, "/status/reason")),
    AGE,
    wide("VolumeMode", |row| or(string(row, "/spec/volumeMode"), "<unset>")),
];

/// What a claim shows only once it has a volume.
fn bound(row: &Row<'_>, cell: Value) -> Value {
    if string(row, "/spec/volumeName") == "" { "".into() } else { cell }
}

const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status", cells::volume_phase),
    text("Volume", |row| string(row, "/spec/volumeName")),
    text("Capacity", |row| bound(row, string(row, "/status/capacity/storage"))),
    text("Access Modes", |row| bound(row, access_modes(row, "/status/accessModes"))),
    text("StorageClass", |row| string(row, "/spec/storageClassName")),
    text("VolumeAttributesClass", |row| {
        or(string(row, "/spec/volumeAttributesClassName"), "<unset>")
    }),
    AGE,
    wide("VolumeMode", |row| or(string(row, "/spec/volumeMode"), "<unset>")),
];

const RESOURCE_QUOTA: &[Column] = &[
    NAME,
    text("Request", |row| cells::quota(row, false)),
    text("Limit", |row| cells::quota(row, true)),
    AGE,
];

const REPLICATION_CONTROLLER: &[Column] = &[
    NAME,
    number("Desired", |row| int(row, "/spec/replicas")),
    number("Current", |row| int(row, "/status/replicas")),
    number("Ready", |row| int(row, "/status/readyReplicas")),
    AGE,
    TEMPLATE_CONTAINERS,
    TEMPLATE_IMAGES,
    wide("Selector", |row| labels(row, "/spec/selector")),
];

const POD_TEMPLATE: &[Column] = &[
    NAME,
    text("Containers", |row| containers(row, "/template/spec")),
    text("Images", |row| images(row, "/template/spec")),
    text("Pod Labels", |row| labels(row, "/template/metadata/labels")),
];

const DEPLOYMENT: &[Column] = &[
    NAME,
    text("Ready", |row| ratio(row, "/status/readyReplicas", "/spec/replicas")),
    text("Up-to-date", |row| int(row, "/status/updatedReplicas")),
    text("Available", |row| int(row, "/status/availableReplicas")),
    AGE,
    TEMPLATE_CONTAINERS,
    TEMPLATE_IMAGES,
    SELECTOR,
];

const REPLICA_SET: &[Column] = &[
    NAME,
    number("Desired", |row| int(row, "/spec/replicas")),
    number("Current", |row| int(row, "/status/replicas")),
    number("Ready", |row| int(row, "/status/readyReplicas")),
    AGE,
    TEMPLATE_CONTAINERS,
    TEMPLATE_IMAGES,
    SELECTOR,
];

const STATEFUL_SET: &[Column] = &[
    NAME,
    text("Ready", |row| ratio(row, "/status/readyReplicas", "/spec/replicas")),
    AGE,
    TEMPLATE_CONTAINERS,
    TEMPLATE_IMAGES,
];

const DAEMON_SET: &[Column] = &[
    NAME,
    number("Desired", |row| int(row, "/status/desiredNumberScheduled")),
    number("Current", |row| int(row, "/status/currentNumberScheduled")),
    number("Ready", |row| int(row, "/status/numberReady")),
    number("Up-to-date", |row| int(row, "/status/updatedNumberScheduled")),
    number("Available", |row| int(row, "/status/numberAvailable")),
    text("Node Selector", |row| labels(row, "/spec/template/spec/nodeSelector")),
    AGE,
    TEMPLATE_CONTAINERS,
    TEMPLATE_IMAGES,
    SELECTOR,
];

const CONTROLLER_REVISION: &[Column] = &[
    NAME,
    text("Controller", cells::controller),
    text("Revision", |row| int(row, "/revision")),
    AGE,
];

const JOB: &[Column] = &[
    NAME,
    text("Status", cells::job_status),
    text("Completions", cells::job_completions),
    text("Duration", job_duration),
    AGE,
    TEMPLATE_CONTAINERS,
    TEMPLATE_IMAGES,
    SELECTOR,
];

const CRON_JOB: &[Column] = &[
    NAME,
    text("Schedule", |row| string(row, "/spec/schedule")),
    text("Timezone", |row| or(string(row, "/spec/timeZone"), "<none>")),
    column("Suspend", "boolean", cells::suspended),
    number("Active", |row| count(row, "/status/active")),
    text("Last Schedule", |row| since_or(row, "/status/lastScheduleTime", "<none>")),
    AGE,
    wide("Containers", |row| containers(row, "/spec/jobTemplate/spec/template/spec")),
    wide("Images", |row| images(row, "/spec/jobTemplate/spec/template/spec")),
    wide("Selector", |row| selector(row, "/spec/jobTemplate/spec/selector")),
];

const AUTOSCALER: &[Column] = &[
    NAME,
    text("Reference", |row| joined(row, "/spec/scaleTargetRef/kind", "/spec/scaleTargetRef/name")),
    text("Targets", autoscaler::targets),
    text("MinPods", |row| or(cells::scalar(row, "/spec/minReplicas"), "<unset>")),
    text("MaxPods", |row| int(row, "/spec/maxReplicas")),
    text("Replicas", |row| int(row, "/status/currentReplicas")),
    AGE,
];

const DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    text("Min Available", |row| or(cells::scalar(row, "/spec/minAvailable"), "N/A")),
    text("Max Unavailable", |row| or(cells::scalar(row, "/spec/maxUnavailable"), "N/A")),
    number("Allowed Disruptions", |row| int(row, "/status/disruptionsAllowed")),
    AGE,
];

const INGRESS: &[Column] = &[
    NAME,
    text("Class", |row| or(string(row, "/spec/ingressClassName"), "<none>")),
    text("Hosts", cells::ingress_hosts),
    text("Address", cells::load_balancer),
    text("Ports", cells::ingress_ports),
    AGE,
];

const INGRESS_CLASS: &[Column] = &[
    NAME,
    text("Controller", |row| string(row, "/spec/controller")),
    text("Parameters", cells::ingress_class_parameters),
    AGE,
];

const NETWORK_POLICY: &[Column] =
    &[NAME, text("Pod-Selector", |row| selector(row, "/spec/podSelector")), AGE];

/// There is a cell for the age, but no heading.
const IP_ADDRESS: &[Column] = &[NAME, text("ParentRef", address::parent), text("", age)];

const SERVICE_CIDR: &[Column] = &[NAME, text("CIDRs", address::ranges), AGE];

const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text("AddressType", |row| string(row, "/addressType")),
    text("Ports", slice_ports),
    text("Endpoints", slice_addresses),
    AGE,
];

const LEASE: &[Column] = &[NAME, text("Holder", |row| string(row, "/spec/holderIdentity")), AGE];

const STORAGE_CLASS: &[Column] = &[
    Column { cell: cells::storage_class_name, ..NAME },
    text("Provisioner", |row| string(row, "/provisioner")),
    text("ReclaimPolicy", |row| or(string(row, "/reclaimPolicy"), "Delete")),
    text("VolumeBindingMode", |row| or(string(row, "/volumeBindingMode"), "Immediate")),
    text("AllowVolumeExpansion", |row| cells::flag(row, "/allowVolumeExpansion")),
    AGE,
];

const CSI_NODE: &[Column] = &[NAME, number("Drivers", |row| count(row, "/spec/drivers")), AGE];

const VOLUME_ATTACHMENT: &[Column] = &[
    NAME,
    Column { format: "name", ..text("Attacher", |row| string(row, "/spec/attacher")) },
    text("PV", |row| string(row, "/spec/source/persistentVolumeName")),
    text("Node", |row| string(row, "/spec/nodeName")),
    column("Attached", "boolean", |row| cells::flag(row, "/status/attached")),
    AGE,
];

const ROLE_BINDING: &[Column] = &[
    NAME,
    text("Role", |row| joined(row, "/roleRef/kind", "/roleRef/name")),
    AGE,
    wide("Users", |row| subjects(row, "User")),
    wide("Groups", |row| subjects(row, "Group")),
    wide("ServiceAccounts", |row| subjects(row, "ServiceAccount")),
];

const PRIORITY_CLASS: &[Column] = &[
    NAME,
    number("Value", |row| int(row, "/value")),
    column("Global-Default", "boolean", |row| cells::flag(row, "/globalDefault")),
    AGE,
    text("PreemptionPolicy", |row| string(row, "/preemptionPolicy")),
];

const RUNTIME_CLASS: &[Column] = &[NAME, text("Handler", |row| string(row, "/handler")), AGE];

const WEBHOOKS: &[Column] = &[NAME, number("Webhooks", |row| count(row, "/webhooks")), AGE];

const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    text("SignerName", |row| string(row, "/spec/signerName")),
    text("Requestor", |row| string(row, "/spec/username")),
    text("RequestedDuration", |row| or(cells::scalar(row, "/spec/expirationSeconds"), "<none>")),
    text("Condition", cells::signing_condition),
];

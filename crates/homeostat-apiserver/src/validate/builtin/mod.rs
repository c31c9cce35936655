//! The rules of built-in kinds that users meet most: one function per kind, chosen by a table.
//!
//! It judges values that have the right types already (see `decode::typed`) and the defaults
//! filled in. Rules that nobody meets are left out on purpose: an object that a real cluster
//! would refuse may pass here, never the other way round.

mod address;
mod admission;
mod autoscaler;
mod certificate;
mod claim_status;
mod conditions;
mod config;
mod cron;
mod cron_schedule;
mod device_capacity;
mod device_slice;
mod devices;
mod endpoints;
mod event;
mod flow_control;
mod job;
mod job_change;
mod job_indexes;
mod job_policy;
mod job_selector;
mod job_status;
mod limit_range;
mod network_policy;
mod networking;
mod node;
mod node_selector;
mod place;
mod pod;
mod policies;
mod quota;
mod rbac;
mod report;
mod reported;
mod resize;
mod resources;
mod scaling;
mod service;
mod status;
mod storage;
mod template_meta;
mod uncommon;
mod volume;
mod volume_claim;
mod volume_claim_change;
mod volume_source;
mod workload;

use serde_json::Value;

use crate::field::FieldError;
use crate::kinds::Kind;
pub(crate) use claim_status::device as device_of;
pub(crate) use report::Report;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// What the rules of the kind refuse in the object, or in its change.
#[must_use]
pub fn builtin(kind: &Kind, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut report = Report::default();
    let check: fn(&Value, Option<&Value>, &mut Report) =
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Pod") => pod::pod,
            ("", "PodTemplate") => pod::pod_template,
            ("", "ConfigMap") => config::config_map,
            ("", "Secret") => config::secret,
            ("", "Service") => service::service,
            ("", "Endpoints") => endpoints::endpoints,
            ("discovery.k8s.io", "EndpointSlice") => endpoints::endpoint_slice,
            ("networking.k8s.io", "Ingress") => networking::ingress,
            ("networking.k8s.io", "IngressClass") => networking::ingress_class,
            ("networking.k8s.io", "NetworkPolicy") => network_policy::network_policy,
            ("networking.k8s.io", "IPAddress") => address::ip_address,
            ("networking.k8s.io", "ServiceCIDR") => address::service_cidr,
            ("apps", "ControllerRevision") => config::controller_revision,
            ("", "Namespace") => config::namespace,
            ("", "Node") => node::node,
            ("", "PersistentVolume") => volume::volume,
            ("", "PersistentVolumeClaim") => volume_claim::claim,
            ("storage.k8s.io", "StorageClass") => storage::storage_class,
            ("storage.k8s.io", "CSIStorageCapacity") => storage::capacity,
            ("storage.k8s.io", "VolumeAttributesClass") => storage::attributes_class,
            ("", "LimitRange") => limit_range::limit_range,
            ("", "ResourceQuota") => quota::resource_quota,
            ("node.k8s.io", "RuntimeClass") => uncommon::runtime_class,
            ("apiregistration.k8s.io", "APIService") => uncommon::api_service,
            ("storage.k8s.io", "CSIDriver") => storage::csi_driver,
            ("storage.k8s.io", "CSINode") => storage::csi_node,
            ("storage.k8s.io", "VolumeAttachment") => volume::attachment,
            ("resource.k8s.io", "ResourceClaim") => devices::claim,
            ("resource.k8s.io", "ResourceClaimTemplate") => devices::template,
            ("resource.k8s.io", "DeviceClass") => devices::class,
            ("resource.k8s.io", "ResourceSlice") => device_slice::slice,
            ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow_control::flow_schema,
            ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
                flow_control::priority_level
            }
            ("", "Event") => event::old_form,
            ("events.k8s.io", "Event") => event::new_form,
            ("apps", "Deployment") => workload::deployment,
            ("apps", "ReplicaSet") => workload::replica_set,
            ("apps", "StatefulSet") => workload::stateful_set,
            ("apps", "DaemonSet") => workload::daemon_set,
            ("", "ReplicationController") => workload::replication_controller,
            ("batch", "Job") => job::job,
            ("batch", "CronJob") => cron::cron_job,
            ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::autoscaler,
            ("policy", "PodDisruptionBudget") => scaling::disruption_budget,
            ("scheduling.k8s.io", "PriorityClass") => scaling::priority_class,
            ("coordination.k8s.io", "Lease") => scaling::lease,
            ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => rbac::role,
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => rbac::binding,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => definition,
            (ADMISSION, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
                admission::webhooks
            }
            (ADMISSION, "ValidatingAdmissionPolicy") => policies::validating,
            (ADMISSION, "MutatingAdmissionPolicy") => policies::mutating,
            (ADMISSION, "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding") => {
                policies::binding
            }
            ("certificates.k8s.io", "CertificateSigningRequest") => certificate::request,
            _ => return Vec::new(),
        };
    check(value, old, &mut report);
    report.errors
}

/// What may not change by a write through the subresource; the main one has no name.
#[must_use]
pub fn change(kind: &Kind, part: &str, value: &Value, old: &Value) -> Vec<FieldError> {
    let mut report = Report::default();
    if kind.custom.is_some() {
        return Vec::new();
    }
    match (kind.resource().as_str(), part) {
        ("certificatesigningrequests.certificates.k8s.io", part) => {
            certificate::change(part, value, old, &mut report);
        }
        ("resourceclaims.resource.k8s.io", "status") => {
            claim_status::change(value, old, &mut report);
        }
        ("nodes", "") => node::update(value, old, &mut report),
        ("pods", "resize") => resize::change(value, old, &mut report),
        ("pods", "ephemeralcontainers") => pod::ephemeral_change(value, old, &mut report),
        ("pods", "status") => pod::status::update(value, old, &mut report),
        ("pods", _) => pod::update(value, old, &mut report),
        (resource, "status") => reported::check(resource, value, old, &mut report),
        _ => {}
    }
    report.errors
}

fn definition(value: &Value, old: Option<&Value>, report: &mut Report) {
    report.errors.extend(crate::custom::check(value, old));
}

#[cfg(test)]
mod tests;

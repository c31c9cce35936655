//! What a WebApp is made of. Pure: a spec in, two objects out.

use std::collections::BTreeMap;

use homeostat::k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use homeostat::k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, PodSpec, PodTemplateSpec, Probe, Service, ServicePort,
    ServiceSpec, TCPSocketAction,
};
use homeostat::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use homeostat::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use homeostat::labels;
use kube::ResourceExt;
use kube::api::ObjectMeta;

use crate::{NAME, OPERATOR, WebApp};

/// The labels that select the Pods.
pub(crate) fn selector(app: &WebApp) -> BTreeMap<String, String> {
    labels::selector(NAME, &app.name_any())
}

fn all_labels(app: &WebApp) -> BTreeMap<String, String> {
    labels::recommended(NAME, &app.name_any(), OPERATOR)
}

fn metadata(app: &WebApp) -> ObjectMeta {
    ObjectMeta {
        name: Some(app.name_any()),
        labels: Some(all_labels(app)),
        ..ObjectMeta::default()
    }
}

pub(crate) fn deployment(app: &WebApp) -> Deployment {
    let port = IntOrString::Int(app.spec.port);
    let container = Container {
        name: "web".to_owned(),
        image: Some(app.spec.image.clone()),
        env: Some(vec![EnvVar {
            name: "PORT".to_owned(),
            value: Some(app.spec.port.to_string()),
            ..EnvVar::default()
        }]),
        ports: Some(vec![ContainerPort {
            container_port: app.spec.port,
            ..ContainerPort::default()
        }]),
        // A replica counts once it listens, not once it has started.
        readiness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction { port, ..TCPSocketAction::default() }),
            period_seconds: Some(1),
            ..Probe::default()
        }),
        ..Container::default()
    };
    Deployment {
        metadata: metadata(app),
        spec: Some(DeploymentSpec {
            replicas: Some(app.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(selector(app)),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(all_labels(app)),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

pub(crate) fn service(app: &WebApp) -> Service {
    Service {
        metadata: metadata(app),
        spec: Some(ServiceSpec {
            selector: Some(selector(app)),
            ports: Some(vec![ServicePort {
                name: Some("http".to_owned()),
                port: app.spec.port,
                target_port: Some(IntOrString::Int(app.spec.port)),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

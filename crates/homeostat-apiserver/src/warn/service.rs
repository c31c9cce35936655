//! Services and Ingresses.

use serde_json::{Value, json};

use super::addresses::{of_addresses, of_ranges};
use super::{has_annotation, list, text};
use crate::validate::ip;

pub(super) fn of_service(service: &Value, warnings: &mut Vec<String>) {
    let old = "service.kubernetes.io/topology-aware-hints";
    if has_annotation(service, old) {
        let new = "service.kubernetes.io/topology-mode";
        warnings.push(format!("annotation {old} is deprecated, please use {new} instead"));
    }
    let ty = text(service, "/spec/type");
    let headless = ty == "ClusterIP" && text(service, "/spec/clusterIP") == "None";
    let outside = !list(service, "/spec/externalIPs").is_empty();
    if !headless && ty != "ExternalName" {
        of_addresses(list(service, "/spec/clusterIPs"), "spec.clusterIPs", warnings);
    }
    let mut warn = |words: &str| warnings.push(words.to_owned());
    if headless {
        if !text(service, "/spec/loadBalancerIP").is_empty() {
            warn("spec.loadBalancerIP is ignored for headless services");
        }
        if outside {
            warn("spec.externalIPs is ignored for headless services");
        }
        if text(service, "/spec/sessionAffinity") != "None" {
            warn("spec.SessionAffinity is ignored for headless services");
        }
    }
    of_addresses(list(service, "/spec/externalIPs"), "spec.externalIPs", warnings);
    if outside && !headless && ty != "ExternalName" {
        let why = "is deprecated and may no longer be implemented in some clusters";
        warnings.push(format!("spec.externalIPs {why}"));
    }
    let balancer = text(service, "/spec/loadBalancerIP");
    warnings.extend(ip::warning("spec.loadBalancerIP", balancer));
    let ranges = list(service, "/spec/loadBalancerSourceRanges");
    of_ranges(ranges, "spec.loadBalancerSourceRanges", warnings);
    let mut warn = |words: &str| warnings.push(words.to_owned());
    if outside && ty == "ExternalName" {
        warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if ty != "ExternalName" && !text(service, "/spec/externalName").is_empty() {
        warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if service.pointer("/spec/trafficDistribution") == Some(&json!("PreferClose")) {
        warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
}

pub(super) fn of_ingress(ingress: &Value, warnings: &mut Vec<String>) {
    let old = "kubernetes.io/ingress.class";
    if has_annotation(ingress, old) && ingress.pointer("/spec/ingressClassName").is_none() {
        let new = "spec.ingressClassName";
        warnings.push(format!("annotation {old:?} is deprecated, please use '{new}' instead"));
    }
}

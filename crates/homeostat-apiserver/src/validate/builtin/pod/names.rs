//! How a Pod finds names: its resolver, and names of its own.

use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::{is_true, items};
use crate::validate::{ip, name};

const MOST_SERVERS: usize = 3;
const MOST_SEARCHED: usize = 32;
const LONGEST_SEARCH: usize = 2048;
/// The longest name that Linux knows for a host.
const LONGEST_NAME: usize = 64;

/// `dnsConfig` and what `dnsPolicy` asks of it.
pub(super) fn resolution(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let config = at(spec, "/dnsConfig");
    let (servers, searched) = (items(config, "nameservers"), items(config, "searches"));
    let places = [place.field("nameservers"), place.field("searches"), place.field("options")];
    if text(spec, "/dnsPolicy") == "None" {
        if config.is_null() {
            report.required(place, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            report.required(places[0], detail);
            return;
        }
    }
    if servers.len() > MOST_SERVERS {
        let detail = format!("must not have more than {MOST_SERVERS} nameservers");
        report.invalid(places[0], servers.to_vec(), detail);
    }
    for (index, server) in servers.iter().enumerate() {
        let server = server.as_str().unwrap_or_default();
        if let Some(problem) = ip::problem(server) {
            report.invalid(places[0].item(index), server, problem);
        }
    }
    if searched.len() > MOST_SEARCHED {
        let detail = format!("must not have more than {MOST_SEARCHED} search paths");
        report.invalid(places[1], searched.to_vec(), detail);
    }
    // As one line, with spaces between.
    let lengths = searched.iter().filter_map(Value::as_str).map(|search| search.len() + 1);
    if lengths.sum::<usize>() > LONGEST_SEARCH + 1 {
        let detail = format!(
            "must not have more than {LONGEST_SEARCH} characters (including spaces) in the search list"
        );
        report.invalid(places[1], searched.to_vec(), detail);
    }
    for (index, search) in searched.iter().enumerate() {
        let search = search.as_str().unwrap_or_default();
        let plain = search.strip_suffix('.').unwrap_or(search);
        if search != "." {
            report.problems(&places[1].item(index), plain, name::dns_subdomain_or_underscore);
        }
    }
    for (index, option) in items(config, "options").iter().enumerate() {
        if text(option, "/name").is_empty() {
            report.required(places[2].item(index), "must not be empty");
        }
    }
}

/// A name that the Pod insists on.
pub(super) fn host_name(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(name) = at(spec, "/hostnameOverride").as_str() else { return };
    let place = place.field("hostnameOverride");
    if is_true(spec, "/setHostnameAsFQDN") {
        report.forbidden(place, "may not be specified when setHostnameAsFQDN is true");
    }
    if is_true(spec, "/hostNetwork") {
        report.forbidden(place, "may not be specified when hostNetwork is true");
    }
    if name.len() > LONGEST_NAME {
        report.too_long(place, LONGEST_NAME);
    }
    report.problems(&place, name, name::dns_subdomain);
}

/// Names that only this Pod knows.
pub(super) fn aliases(spec: &Value, place: &Place<'_>, report: &mut Report) {
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        let place = place.item(index);
        let address = text(alias, "/ip");
        if let Some(problem) = ip::problem(address) {
            report.invalid(place.field("ip"), address, problem);
        }
        let place = place.field("hostnames");
        for (index, host) in items(alias, "hostnames").iter().enumerate() {
            let host = host.as_str().unwrap_or_default();
            report.problems(&place.item(index), host, name::dns_subdomain);
        }
    }
}

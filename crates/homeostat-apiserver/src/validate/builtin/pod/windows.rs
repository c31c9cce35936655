//! What Windows needs to know of a Pod: as whom its programs run.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::super::place::Place;
use super::super::report::{Report, at};
use super::{each_container, is_true};
use crate::validate::name;

const LONGEST_SPEC: usize = 64 * 1024;
const LONGEST_DOMAIN: usize = 255;
const LONGEST_USER: usize = 104;

/// What a domain looks like: an old short name, or one of DNS.
static DOMAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    let short = r#"[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}"#;
    Regex::new(&format!(r"^(?:{short}|{label}(?:\.{label})*)$")).ok()
});

/// The options of a Pod or of a container.
pub(super) fn options(context: &Value, place: &Place<'_>, report: &mut Report) {
    let Some(options) = context.get("windowsOptions") else { return };
    if let Some(given) = at(options, "/gmsaCredentialSpecName").as_str() {
        report.problems(&place.field("gmsaCredentialSpecName"), given, name::dns_subdomain);
    }
    if let Some(given) = at(options, "/gmsaCredentialSpec").as_str() {
        let place = place.field("gmsaCredentialSpec");
        if given.is_empty() {
            report.invalid(place, given, "gmsaCredentialSpec cannot be an empty string");
        } else if given.len() > LONGEST_SPEC {
            report.invalid(place, given, "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    if let Some(given) = at(options, "/runAsUserName").as_str() {
        let place = place.field("runAsUserName");
        for problem in user_name(given) {
            report.invalid(place, given, format!("runAsUserName{problem}"));
        }
    }
}

/// What is wrong with `user` or `domain\user`.
fn user_name(given: &str) -> Vec<&'static str> {
    let parts: Vec<&str> = given.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        _ if given.is_empty() => return vec![" cannot be an empty string"],
        _ if given.chars().any(|c| c.is_ascii_control()) => {
            return vec![" cannot contain control characters"];
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let mut problems = Vec::new();
    if domain.is_some_and(|domain| domain.len() > LONGEST_DOMAIN) {
        problems.push("'s Domain length must be under 256 characters");
    }
    let fits = |domain: &str| DOMAIN.as_ref().is_none_or(|form| form.is_match(domain));
    if domain.is_some_and(|domain| !fits(domain)) {
        problems.push("'s Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        problems.push("'s User cannot be empty");
    } else if user.len() > LONGEST_USER {
        problems.push("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        problems.push("'s User cannot contain only periods or spaces");
    }
    if user.contains(|c| r#""/\:;|=,+*?<>@[]"#.contains(c)) {
        problems.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    problems
}

/// Either all containers are processes of the node, on its network, or none is.
pub(super) fn host_processes(spec: &Value, place: &Place<'_>, report: &mut Report) {
    let pointer = "/securityContext/windowsOptions/hostProcess";
    let of_pod = at(spec, pointer).as_bool();
    let (mut count, mut of_host) = (0, 0);
    each_container(spec, place, |container, place| {
        count += 1;
        let own = at(container, pointer).as_bool();
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            let why =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            report.invalid(place.field("securityContext.windowsOptions.hostProcess"), own, why);
        }
        of_host += usize::from(own.or(of_pod) == Some(true));
    });
    if of_host == 0 {
        return;
    }
    if of_host != count {
        let why = "If pod contains any hostProcess containers then all containers must be \
                   HostProcess containers";
        report.invalid(place, "", why);
    }
    if !is_true(spec, "/hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        report.invalid(place.field("hostNetwork"), false, why);
    }
}

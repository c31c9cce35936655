//! Devices of a Pod: the claims it names.

use serde_json::{Value, json};

use super::super::place::Place;
use super::super::report::{Report, at, text};
use super::{Around, items};
use crate::validate::name;

/// The claims of a spec, each with a name of its own here.
pub(super) fn claims(spec: &Value, place: &Place<'_>, around: Around<'_>, report: &mut Report) {
    let claims = items(spec, "resourceClaims");
    for (index, claim) in claims.iter().enumerate() {
        if around.is_mirror {
            report.forbidden("", "static pods do not support resource claims");
            continue;
        }
        let place = place.item(index);
        let own = text(claim, "/name");
        if !own.is_empty() && claims[..index].iter().any(|other| text(other, "/name") == own) {
            report.duplicate(place.field("name"), own);
        } else {
            report.dns_label(&place.field("name"), own);
        }
        source(claim, &place, report);
    }
}

fn source(claim: &Value, place: &Place<'_>, report: &mut Report) {
    let fields = ["resourceClaimName", "resourceClaimTemplateName"];
    let found = fields.map(|field| claim.get(field).and_then(Value::as_str));
    let why = match found {
        [Some(_), Some(_)] => Some(
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
        [None, None] => {
            Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        }
        _ => None,
    };
    if let Some(why) = why {
        // Shown under the names that kube-apiserver has for the fields itself.
        let shown = json!({
            "Name": text(claim, "/name"),
            "ResourceClaimName": at(claim, "/resourceClaimName"),
            "ResourceClaimTemplateName": at(claim, "/resourceClaimTemplateName"),
        });
        report.invalid(place, shown, why);
    }
    for (field, given) in fields.into_iter().zip(found) {
        if let Some(given) = given {
            report.problems(&place.field(field), given, name::dns_subdomain);
        }
    }
}

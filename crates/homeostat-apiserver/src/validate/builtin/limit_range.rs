//! LimitRanges: the bounds of what containers, Pods and claims ask for, which must fit each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::place::Place;
use super::report::{Report, at, list, text};
use super::resources::{container_resource, may_overcommit, resource};
use crate::decode::Quantity;
use crate::validate::name;

type Amounts<'a> = BTreeMap<&'a str, Quantity>;

pub(super) fn limit_range(value: &Value, _: Option<&Value>, report: &mut Report) {
    let limits = list(value, "/spec/limits");
    for (index, limit) in limits.iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        let ty = text(limit, "/type");
        type_name(ty, &format!("{path}.type"), report);
        if limits[..index].iter().any(|other| text(other, "/type") == ty) {
            report.duplicate(format!("{path}.type"), ty);
        }
        let of_containers = matches!(ty, "Pod" | "Container");
        let [max, min, default, request, ratio] =
            ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"].map(|field| {
                let given = at(limit, &format!("/{field}")).as_object();
                if ty == "Pod" && matches!(field, "default" | "defaultRequest") {
                    if given.is_some_and(|given| !given.is_empty()) {
                        let why = "may not be specified when `type` is 'Pod'";
                        report.forbidden(format!("{path}.{field}"), why);
                    }
                    return Amounts::new();
                }
                let mut amounts = Amounts::new();
                for (name, amount) in given.into_iter().flatten() {
                    let path = format!("{path}.{field}[{name}]");
                    if of_containers {
                        container_resource(name, &Place::Root(&path), report);
                    } else {
                        resource(name, &path, report);
                    }
                    let amount = amount.as_str().and_then(|amount| amount.parse().ok());
                    amounts.extend(amount.map(|amount| (name.as_str(), amount)));
                }
                amounts
            });
        if ty == "PersistentVolumeClaim"
            && [&min, &max].iter().all(|all| !all.contains_key("storage"))
        {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            report.required(format!("{path}.limits"), why);
        }
        let names: BTreeSet<&str> = [&max, &min, &default, &request, &ratio]
            .iter()
            .flat_map(|all| all.keys().copied())
            .collect();
        for name in names {
            let of = |amounts: &Amounts<'_>| amounts.get(name).copied();
            let bounds = Bounds {
                max: of(&max),
                min: of(&min),
                default: of(&default),
                request: of(&request),
                ratio: of(&ratio),
            };
            bounds.check(name, &path, report);
        }
    }
}

fn type_name(ty: &str, path: &str, report: &mut Report) {
    let problems = name::qualified(ty);
    if problems.is_empty()
        && !ty.contains('/')
        && !matches!(ty, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        report.invalid(path, ty, "must be a standard limit type or fully qualified");
    }
    for problem in problems {
        report.invalid(path, ty, problem);
    }
}

/// What is said of one resource.
struct Bounds {
    max: Option<Quantity>,
    min: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Bounds {
    fn check(&self, name: &str, path: &str, report: &mut Report) {
        let Self { max, min, default, request, ratio } = *self;
        let (of_min, of_max, of_request) = ("min value", "max value", "default request value");
        // The field, the smaller and the larger one, and the one that is shown.
        for (field, [low, high, shown], [low_name, high_name]) in [
            ("min", [min, max, min], [of_min, of_max]),
            ("defaultRequest", [min, request, request], [of_min, of_request]),
            ("defaultRequest", [request, max, request], [of_request, of_max]),
            ("defaultRequest", [request, default, request], [of_request, "default limit value"]),
            ("default", [min, default, min], [of_min, "default value"]),
            ("default", [default, max, max], ["default value", of_max]),
        ] {
            let (Some(low), Some(high), Some(shown)) = (low, high, shown) else { continue };
            if low > high {
                let why = format!("{low_name} {low} is greater than {high_name} {high}");
                report.invalid(format!("{path}.{field}[{name}]"), shown.to_string(), why);
            }
        }
        if let Some(ratio) = ratio {
            let path = format!("{path}.maxLimitRequestRatio[{name}]");
            if ratio < Quantity::whole(1) {
                let why = format!("ratio {ratio} is less than 1");
                report.invalid(path.as_str(), ratio.to_string(), why);
            }
            if let (Some(min), Some(max)) = (min, max) {
                let most = max.ratio(min);
                if ratio.ratio(Quantity::whole(1)) > most {
                    let why = format!("ratio {ratio} is greater than max/min = {most:.6}");
                    report.invalid(path, ratio.to_string(), why);
                }
            }
        }
        if let (Some(default), Some(request)) = (default, request)
            && default != request
            && !may_overcommit(name)
        {
            let why = format!(
                "default value {default} must equal to defaultRequest value {request} in {name}"
            );
            report.invalid(format!("{path}.defaultRequest[{name}]"), request.to_string(), why);
        }
    }
}

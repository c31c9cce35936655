//! Capacities of devices that several claims share: how much of them may be asked for at a time.
//!
//! Amounts are in their usual form already, so they are shown as they stand.

use serde_json::Value;

use super::devices::few;
use super::report::{Report, list};
use crate::decode::Quantity;

const MOST_VALUES: usize = 10;

/// An amount as it is written, and how much it is.
#[derive(Clone, Copy)]
struct Amount<'a> {
    shown: &'a str,
    is: Quantity,
}

fn amount<'a>(holder: &'a Value, field: &str) -> Option<Amount<'a>> {
    read(holder.get(field)?)
}

fn read(value: &Value) -> Option<Amount<'_>> {
    let shown = value.as_str()?;
    Some(Amount { shown, is: shown.parse().ok()? })
}

/// The `requestPolicy` of a capacity.
pub(super) fn request_policy(capacity: &Value, path: &str, report: &mut Report) {
    let path = format!("{path}.requestPolicy");
    let Some(policy) = capacity.get("requestPolicy") else { return };
    let Some(whole) = amount(capacity, "value") else { return };
    let (values, range) = (list(policy, "/validValues"), policy.get("validRange"));
    let field = match (values.is_empty(), range) {
        (false, Some(_)) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \
                       \"validRange\" at the same time";
            return report.forbidden(path, why);
        }
        (true, None) => return,
        (false, None) => "validValues",
        (true, Some(_)) => "validRange",
    };
    let Some(default) = amount(policy, "default") else {
        let why = format!("required when {field} is defined");
        return report.required(format!("{path}.default"), &why);
    };
    let path = format!("{path}.{field}");
    match range {
        None => valid_values(values, default, whole, &path, report),
        Some(range) => valid_range(range, default, whole, &path, report),
    }
}

fn valid_values(
    values: &[Value],
    default: Amount<'_>,
    whole: Amount<'_>,
    path: &str,
    report: &mut Report,
) {
    let amounts: Vec<Amount<'_>> = values.iter().filter_map(read).collect();
    for (index, pair) in amounts.windows(2).enumerate().filter(|(_, pair)| pair[0].is > pair[1].is)
    {
        let why = "values must be sorted in ascending order";
        report.invalid(format!("{path}[{}]", index + 1), pair[1].shown, why);
    }
    let fit = few(values, MOST_VALUES, path, report);
    if fit {
        for (index, one) in amounts.iter().enumerate().filter(|(_, one)| one.is > whole.is) {
            let why = format!("option is larger than capacity value: {}", whole.shown);
            report.invalid(format!("{path}[{index}]"), one.shown, why);
        }
        let mut seen = Vec::new();
        for (index, units) in amounts.iter().map(|one| one.is.units()).enumerate() {
            if seen.contains(&units) {
                report.duplicate(format!("{path}[{index}]"), units.to_string());
            }
            seen.push(units);
        }
    }
    if !fit || amounts.iter().all(|one| one.is.cmp(&default.is).is_ne()) {
        let why = "default value is not valid according to the requestPolicy";
        report.invalid(path, default.shown, why);
    }
}

fn valid_range(
    range: &Value,
    default: Amount<'_>,
    whole: Amount<'_>,
    path: &str,
    report: &mut Report,
) {
    let Some(min) = amount(range, "min") else {
        let why = "required when validRange is defined";
        return report.required(format!("{path}.min"), why);
    };
    let (max, step) = (amount(range, "max"), amount(range, "step"));
    let mut refuse = |field: &str, shown: &str, why: String| {
        report.invalid(format!("{path}.{field}"), shown, why);
    };
    if min.is > whole.is {
        refuse("min", min.shown, format!("min is larger than capacity value: {}", whole.shown));
    }
    if default.is < min.is {
        refuse("min", default.shown, format!("default is less than min: {}", min.shown));
    }
    if let Some(max) = max {
        if min.is > max.is {
            refuse("max", min.shown, format!("min is larger than max: {}", max.shown));
        }
        if max.is > whole.is {
            refuse("max", max.shown, format!("max is larger than capacity value: {}", whole.shown));
        }
        if default.is > max.is {
            refuse("max", default.shown, format!("default is more than max: {}", max.shown));
        }
    }
    let Some(step) = step else { return };
    let first = min.is.plus(step.is);
    if first > whole.is {
        let why = format!("one step {first} is larger than capacity value: {}", whole.shown);
        refuse("step", step.shown, why);
    }
    for end in [Some(default), max].into_iter().flatten() {
        let rest = (end.is.units() - min.is.units()).checked_rem(step.is.units());
        if rest.is_some_and(|rest| rest != 0) {
            let (step, min) = (step.shown, min.shown);
            let why = format!("value is not a multiple of a given step ({step}) from ({min})");
            refuse("step", end.shown, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::request_policy;
    use crate::validate::builtin::report::Report;

    /// What is refused in the policy of a capacity of ten.
    fn refused(policy: &Value) -> Vec<String> {
        let mut report = Report::default();
        request_policy(&json!({"value": "10", "requestPolicy": policy}), "c", &mut report);
        report.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn policies_with_a_default_that_fits_pass() {
        for policy in [
            json!({"default": "3"}),
            json!({"default": "3", "validValues": ["1", "3", "10"]}),
            json!({"default": "3", "validRange": {"min": "1", "max": "9", "step": "2"}}),
        ] {
            assert_eq!(refused(&policy), [] as [&str; 0], "{policy}");
        }
    }

    #[test]
    fn values_are_in_order_and_among_them_is_the_default() {
        let policy = json!({"default": "3", "validValues": ["2", "1", "11"]});
        assert_eq!(
            refused(&policy),
            [
                "c.requestPolicy.validValues[1]: Invalid value: \"1\": values must be sorted in \
                 ascending order",
                "c.requestPolicy.validValues[2]: Invalid value: \"11\": option is larger than \
                 capacity value: 10",
                "c.requestPolicy.validValues: Invalid value: \"3\": default value is not valid \
                 according to the requestPolicy",
            ]
        );
    }

    #[test]
    fn steps_lead_from_the_beginning_of_a_range_to_its_default() {
        let policy = json!({"default": "4", "validRange": {"min": "1", "step": "2"}});
        assert_eq!(
            refused(&policy),
            [
                "c.requestPolicy.validRange.step: Invalid value: \"4\": value is not a multiple of a \
              given step (2) from (1)"
            ]
        );
    }
}

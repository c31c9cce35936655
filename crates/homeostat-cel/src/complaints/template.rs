//! Templates of texts: `'%s is %d'.format(['a', 1])`.

use kube_cel::cel::Value;

use crate::values;

/// What is wrong with the template, or with what is to be filled in.
pub(super) fn of(template: &str, arguments: &[Value]) -> Option<String> {
    fill(template, arguments).err()
}

fn fill(template: &str, arguments: &[Value]) -> Result<(), String> {
    let (mut rest, mut used) = (template, 0);
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        let Some(argument) = arguments.get(used) else {
            if rest.is_empty() {
                return Err("unexpected end of string".to_owned());
            }
            return Err(format!("index {used} out of range"));
        };
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        used += 1;
        rest = precision(rest)
            .map_err(|why| unparsed(&format!("error while parsing precision: {why}")))?;
        let clause = rest.chars().next().unwrap_or_default();
        rest = &rest[clause.len_utf8()..];
        fits(clause, argument)?;
    }
    Ok(())
}

fn unparsed(why: &str) -> String {
    format!("could not parse formatting clause: {why}")
}

/// What follows the number of digits, if there is one.
fn precision(rest: &str) -> Result<&str, String> {
    let Some(after) = rest.strip_prefix('.') else { return Ok(rest) };
    let end = after.find(|c: char| !c.is_ascii_digit());
    let end = end.ok_or("could not find end of precision specifier")?;
    let digits = &after[..end];
    digits.parse::<u32>().map_err(|_| {
        format!(
            "error while converting precision to integer: strconv.Atoi: parsing {digits:?}: \
             invalid syntax"
        )
    })?;
    Ok(&after[end..])
}

/// Whether an argument can be shown in this way.
fn fits(clause: char, argument: &Value) -> Result<(), String> {
    let whole = matches!(argument, Value::Int(_) | Value::UInt(_));
    let float = matches!(argument, Value::Float(_));
    let spelled = matches!(argument, Value::String(text)
        if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity"));
    let (good, only) = match clause {
        's' => (true, ""),
        'd' => (whole || spelled, "decimal clause can only be used on integers"),
        'f' => (float || spelled, "fixed-point clause can only be used on doubles"),
        'e' => (float || spelled, "scientific clause can only be used on doubles"),
        'b' => {
            let flag = matches!(argument, Value::Bool(_));
            (whole || flag, "only integers and bools can be formatted as binary")
        }
        'x' | 'X' => {
            let text = matches!(argument, Value::String(_) | Value::Bytes(_));
            (whole || text, "only integers, byte buffers, and strings can be formatted as hex")
        }
        'o' => (whole, "octal clause can only be used on integers"),
        other => {
            let other = other.to_string();
            return Err(unparsed(&format!("unrecognized formatting clause {other:?}")));
        }
    };
    if good {
        return Ok(());
    }
    let given = values::type_name(argument);
    Err(format!("error during formatting: {only}, was given {given}"))
}

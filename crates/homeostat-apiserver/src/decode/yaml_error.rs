//! What is said of a body that is no YAML, in the words of the reader that kube-apiserver has.

use serde_saphyr::Error;

/// Where and what the problem is. A problem on the first line is told without its place.
pub(super) fn words(error: &Error) -> String {
    let Error::ExternalMessage { msg, .. } = error.without_snippet() else {
        return error.without_snippet().to_string();
    };
    // What was being done is not told.
    let problem = match msg.split_once(", ") {
        Some((doing, problem)) if doing.starts_with("while ") => problem,
        _ => msg,
    };
    let line = error.location().map_or(0, |location| location.line());
    // Lines are counted from zero, and only those who look at letters correct that.
    let looks_at_letters =
        !["while parsing a block", "while parsing a flow", "while parsing a node"]
            .iter()
            .any(|doing| msg.starts_with(doing));
    match line {
        0 | 1 => format!("yaml: {problem}"),
        line if looks_at_letters => format!("yaml: line {line}: {problem}"),
        line => format!("yaml: line {}: {problem}", line - 1),
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::yaml;

    #[test]
    fn a_problem_is_told_without_what_was_being_done_and_with_its_line_below_the_first() {
        let why = |body: &str| yaml(body.as_bytes()).unwrap_err().to_string();
        let words = "mapping values are not allowed in this context";
        assert_eq!(why("a: b: c"), format!("error converting YAML to JSON: yaml: {words}"));
        let second = "error converting YAML to JSON: yaml: line 2: ";
        assert_eq!(why("a: b\nc: d: e"), format!("{second}{words}"));
    }
}

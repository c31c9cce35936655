//! Metrics as text: OpenMetrics for those who ask for it, the older form of Prometheus for others.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The media type of OpenMetrics.
pub(crate) const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The media type of the older form, which everything reads.
pub(crate) const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything in OpenMetrics.
pub(super) fn open(registry: &Registry) -> String {
    let mut text = String::new();
    if encode(&mut text, registry).is_err() {
        tracing::warn!("some metrics could not be written");
    }
    text
}

/// The same in the older form: a counter is described under the name that its values have, and
/// nothing marks the end.
pub(crate) fn classic(open: &str) -> String {
    let counters: Vec<&str> = open
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut text = String::with_capacity(open.len());
    for line in open.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let described = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
        let name = described.and_then(|rest| rest.split(' ').next());
        match name.filter(|name| counters.contains(name)) {
            Some(name) => {
                let end = "# HELP ".len() + name.len();
                text.push_str(&line[..end]);
                text.push_str("_total");
                text.push_str(&line[end..]);
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::classic;

    #[test]
    fn a_counter_is_described_by_its_whole_name_in_the_older_form() {
        let open = "# HELP a_request Requests.\n# TYPE a_request counter\na_request_total 1\n\
                    # HELP b Bees.\n# TYPE b gauge\nb 2\n# EOF\n";
        let expected = "# HELP a_request_total Requests.\n# TYPE a_request_total counter\n\
                        a_request_total 1\n# HELP b Bees.\n# TYPE b gauge\nb 2\n";
        assert_eq!(classic(open), expected);
    }
}

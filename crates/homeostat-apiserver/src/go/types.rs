//! The Go types of fields, which kube-apiserver names when a value does not fit, and the order in
//! which it writes them. Read when it is needed for the first time: objects that are right never ask.

use std::io::Read as _;
use std::sync::LazyLock;

const TABLE: &[u8] = include_bytes!("../../data/go-types.txt.gz");

/// Below the name of every published type, which begins a line, a line per field: after a tab its
/// name, the embedded structs around it, and its types. They are in the order of Go.
static TYPES: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::from("\n");
    #[expect(clippy::expect_used, reason = "compiled-in data, read by a test")]
    flate2::read::GzDecoder::new(TABLE).read_to_string(&mut text).expect("the generated types");
    text
});

/// What Go says about one field.
pub(crate) struct GoField {
    /// The embedded structs that it comes from, from the outside, with dots between them.
    pub(crate) within: &'static str,
    types: &'static str,
}

impl GoField {
    /// The type of the field, or of what its lists and maps hold `depth` levels down.
    pub(crate) fn type_at(&self, depth: usize) -> &'static str {
        self.types.split('\t').nth(depth).unwrap_or("interface {}")
    }
}

/// The field of that name of a published type (`io.k8s.api.core.v1.Pod`).
pub(crate) fn field(owner: &str, name: &str) -> Option<GoField> {
    let mut lines = lines(owner)?;
    let rest = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))?;
    let (within, types) = rest.split_once('\t')?;
    Some(GoField { within, types })
}

/// The names of a published type's fields, in the order in which they are written.
pub(crate) fn names(owner: &str) -> impl Iterator<Item = &'static str> {
    lines(owner).into_iter().flatten().filter_map(|line| line.split('\t').next())
}

fn lines(owner: &str) -> Option<impl Iterator<Item = &'static str> + use<>> {
    let (_, below) = TYPES.split_once(&format!("\n{owner}\n"))?;
    Some(below.lines().map_while(|line| line.strip_prefix('\t')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_its_types_down_to_what_it_holds_and_the_structs_it_is_embedded_in() {
        let limits = field("io.k8s.api.core.v1.ResourceRequirements", "limits").unwrap();
        assert_eq!(limits.type_at(0), "v1.ResourceList");
        assert_eq!(limits.type_at(1), "resource.Quantity");
        let groups = "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations";
        let groups = field(groups, "apiGroups").unwrap();
        assert_eq!(groups.within, "RuleWithOperations.Rule");
        assert!(field("io.k8s.api.core.v1.Pod", "spe").is_none());
    }
}

//! The built-in rows: every stable resource Kubernetes publishes.
//!
//! The table is generated (`cargo xtask generate`); what it cannot say is in
//! [`super::strategy`]. It is read once per process, without the schemas: those
//! are read when somebody comes to them.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::{Kind, Subresource, strategy};
use crate::schema::{KindSchema, builtin};

const TABLE: &[u8] = include_bytes!("../../data/kinds.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    group: String,
    version: String,
    kind: String,
    plural: String,
    singular: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    namespaced: bool,
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<Below>,
    schema: String,
}

#[derive(Deserialize)]
struct Below {
    name: String,
    group: String,
    version: String,
    kind: String,
    verbs: Vec<String>,
}

fn rows() -> Vec<Row> {
    #[expect(clippy::expect_used, reason = "compiled-in data, read by every test")]
    serde_json::from_slice(TABLE).expect("the generated table of kinds")
}

/// All built-in kinds in the order of discovery: the core group first, and within a group the
/// preferred version first. One shared schema arena serves them all.
#[must_use]
pub fn builtin() -> &'static [Arc<Kind>] {
    static KINDS: OnceLock<Vec<Arc<Kind>>> = OnceLock::new();
    KINDS.get_or_init(|| rows().into_iter().map(|row| Arc::new(kind(row))).collect())
}

fn kind(row: Row) -> Kind {
    let schemas = builtin::schemas();
    #[expect(clippy::expect_used, reason = "compiled-in data, read by every test")]
    let root = schemas.named(&row.schema).expect("the generated schema of a kind").id();
    let subresources: Vec<Subresource> = row
        .subresources
        .into_iter()
        .map(|below| Subresource {
            name: below.name,
            kind: below.kind,
            group: below.group,
            version: below.version,
            verbs: below.verbs,
        })
        .collect();
    let has_status = subresources.iter().any(|below| below.name == "status");
    Kind {
        strategy: strategy::of(&row.group, &row.kind, has_status),
        list_kind: format!("{}List", row.kind),
        group: row.group,
        version: row.version,
        kind: row.kind,
        plural: row.plural,
        singular: row.singular,
        short_names: row.short_names,
        categories: row.categories,
        namespaced: row.namespaced,
        verbs: row.verbs,
        subresources,
        schema: KindSchema { schemas: Arc::clone(schemas), root },
        custom: None,
    }
}

#[cfg(test)]
mod tests {
    use super::builtin;
    use crate::kinds::{Generation, Kind, Propagation};
    use crate::schema::{ListType, Type};

    fn find(group: &str, kind: &str) -> &'static Kind {
        builtin().iter().find(|row| row.group == group && row.kind == kind).unwrap()
    }

    #[test]
    fn every_stable_resource_has_a_row_with_a_schema_and_metadata() {
        assert!(builtin().len() >= 67, "{} rows", builtin().len());
        for kind in builtin() {
            let metadata = kind.schema.root().field("metadata").unwrap().node();
            let expected = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
            assert_eq!(metadata.name, expected, "{}", kind.resource());
            assert!(!kind.version.contains("alpha") && !kind.version.contains("beta"));
        }
    }

    #[test]
    fn a_kind_is_what_its_resource_is_called_and_nothing_else() {
        let names: Vec<String> = builtin().iter().map(|kind| kind.resource()).collect();
        for kind in builtin() {
            let own = kind.resource();
            assert!(names.iter().all(|name| kind.is(name) == (*name == own)), "{own}");
        }
    }

    #[test]
    fn a_row_says_how_its_objects_are_written_and_deleted() {
        let deployment = find("apps", "Deployment");
        assert_eq!(deployment.strategy.generation, Generation::SpecAndAnnotations);
        assert!(deployment.strategy.status && deployment.strategy.unconditional_update);
        assert!(deployment.subresource("scale").is_some_and(|scale| scale.group == "autoscaling"));
        assert_eq!(deployment.short_names, ["deploy"]);
        assert_eq!(find("batch", "Job").strategy.propagation, Propagation::Orphan);
        assert!(find("", "Pod").strategy.graceful);
        assert!(find("", "Node").strategy.status_on_create);
        assert!(!find("coordination.k8s.io", "Lease").strategy.unconditional_update);
        assert!(find("coordination.k8s.io", "Lease").strategy.create_on_update);
        assert!(!find("", "ConfigMap").strategy.status);
        assert!(!find("", "Binding").is_stored());
    }

    #[test]
    fn fields_carry_their_merge_rules_beside_their_type() {
        let pod = find("", "Pod").schema.root();
        let containers = pod.field("spec").unwrap().field("containers").unwrap();
        assert_eq!(containers.node().list_type, ListType::Map(vec!["name".to_owned()]));
        assert_eq!(containers.node().patch.key.as_deref(), Some("name"));
        let container = containers.items().unwrap();
        let ports = container.field("ports").unwrap();
        assert_eq!(ports.node().patch.key.as_deref(), Some("containerPort"));
        let port = ports.items().unwrap();
        assert_eq!(port.field("protocol").unwrap().node().default, Some("TCP".into()));
        let limits = container.field("resources").unwrap().field("limits").unwrap();
        assert_eq!(limits.field("cpu").unwrap().node().bounds.format.as_deref(), Some("quantity"));
        let probe = container.field("livenessProbe").unwrap().field("httpGet").unwrap();
        assert_eq!(probe.field("port").unwrap().node().ty, Type::IntOrString);
        let volumes = pod.field("spec").unwrap().field("volumes").unwrap();
        assert!(volumes.node().patch.merge && volumes.node().patch.retain_keys);
        assert!(pod.field("spec").unwrap().field("nodeSelector").unwrap().node().atomic_map);
    }
}

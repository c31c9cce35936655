//! Why an apply is refused.

use super::path::PathElement;
use super::set::display_path;

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager as the message names it: `"kubectl" using apps/v1`.
    pub manager: String,
    /// The field.
    pub path: Vec<PathElement>,
}

impl Conflict {
    /// The cause's message: `conflict with "kubectl" using apps/v1`.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }

    /// The cause's field: `.spec.replicas`.
    #[must_use]
    pub fn field(&self) -> String {
        display_path(&self.path)
    }
}

/// Why an apply is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own these fields: 409 with one `FieldManagerConflict` cause each.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The request cannot be an apply: 400.
    #[error("{0}")]
    Invalid(String),
    /// The configuration does not fit the schema (unknown fields, doubled keys, wrong types);
    /// kube-apiserver answers 500.
    #[error("{0}")]
    Untypable(String),
    /// The stored object's `managedFields` cannot be read: 500.
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(String),
    /// The object could not be converted to a version in which somebody owns fields: 500.
    #[error("failed to convert object: {0}")]
    Unconverted(String),
    /// Somebody must be asked how the object looks in another version; nobody sees this.
    #[error("a webhook has not answered")]
    Pending,
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", only.message(), only.field());
    }
    let mut lines = Vec::new();
    let mut manager = None;
    for conflict in conflicts {
        if manager != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            manager = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.field()));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

//! The cells of IPAddresses and ServiceCIDRs.

use serde_json::Value;

use super::Row;
use super::cells::{list_at, str_at};

/// `resource.group/namespace/name` of whoever has the address.
pub(super) fn parent(row: &Row<'_>) -> Value {
    let Some(parent) = row.object.pointer("/spec/parentRef") else { return "<none>".into() };
    let (group, namespace) = (str_at(parent, "/group"), str_at(parent, "/namespace"));
    let mut text = str_at(parent, "/resource").to_lowercase();
    if !group.is_empty() {
        text += &format!(".{}", group.to_lowercase());
    }
    if !namespace.is_empty() {
        text += &format!("/{namespace}");
    }
    format!("{text}/{}", str_at(parent, "/name")).into()
}

/// The ranges of both families.
pub(super) fn ranges(row: &Row<'_>) -> Value {
    let ranges = list_at(row.object, "/spec/cidrs").iter().filter_map(Value::as_str);
    ranges.collect::<Vec<_>>().join(",").into()
}

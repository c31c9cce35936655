//! The protobuf descriptors.
use super::openapi::Version;
use super::{Modules, Output};
pub(crate) fn descriptors(
    _modules: &Modules,
    _versions: &[Version],
) -> anyhow::Result<Vec<Output>> {
    Ok(Vec::new())
}

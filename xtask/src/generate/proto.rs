//! `proto.binpb.gz`: descriptors of the protobuf messages of stable kinds, with JSON names as Go
//! has them; and `proto-json.json.gz`: which of their fields are not simply left out when empty.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use protox::file::{File, FileResolver};

use super::go_tags::{self, Tag};
use super::openapi::Version;
use super::{MODULES, Modules, Output, gzip};

/// Finds `k8s.io/api/core/v1/generated.proto` in the module `k8s.io/api`.
struct Resolver(BTreeMap<&'static str, PathBuf>);

impl Resolver {
    fn locate(&self, name: &str) -> Option<PathBuf> {
        self.0.iter().find_map(|(module, dir)| {
            name.strip_prefix(module)?.strip_prefix('/').map(|rest| dir.join(rest))
        })
    }
}

impl FileResolver for Resolver {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let path = self.locate(name).ok_or_else(|| protox::Error::file_not_found(name))?;
        let source = std::fs::read_to_string(path).map_err(protox::Error::new)?;
        File::from_source(name, &source)
    }
}

/// What JSON does with a field, where the usual rule does not hold. The usual rule: a plain value
/// is left out when it is zero, a message when it is absent.
const SPREAD: &str = "spread";
const WHEN_SET: &str = "when-set";
const ALWAYS: &str = "always";

/// Both files.
pub(crate) fn descriptors(modules: &Modules, versions: &[Version]) -> anyhow::Result<Vec<Output>> {
    let mut folders = BTreeMap::new();
    for module in MODULES {
        folders.insert(module, modules.dir(module)?.to_owned());
    }
    let resolver = Resolver(folders.clone());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(false);
    for folder in packages(versions) {
        compiler.open_file(format!("{folder}/generated.proto"))?;
    }
    let mut set = compiler.file_descriptor_set();
    set.file.sort_by(|a, b| a.name.cmp(&b.name));
    let resolver = Resolver(folders);
    let mut rules = BTreeMap::new();
    for file in &mut set.file {
        let name = file.name.clone().unwrap_or_default();
        let path = resolver.locate(&name).with_context(|| format!("{name} is in no module"))?;
        let tags = go_tags::read(path.parent().context("a file outside any folder")?)?;
        let package = file.package().to_owned();
        for message in &mut file.message_type {
            let type_name = message.name.clone().unwrap_or_default();
            let Some(tags) = tags.get(&type_name) else { continue };
            let found = annotate(message, tags);
            if !found.is_empty() {
                rules.insert(format!("{package}.{type_name}"), found);
            }
        }
    }
    let set = FileDescriptorSet { file: dependencies_first(set) };
    Ok(vec![
        ("proto.binpb.gz".to_owned(), gzip(&set.encode_to_vec())?),
        ("proto-json.json.gz".to_owned(), gzip(&serde_json::to_vec(&rules)?)?),
    ])
}

/// The folders of the types of all stable kinds: `k8s.io/api/apps/v1`.
fn packages(versions: &[Version]) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for (name, schema) in versions.iter().flat_map(Version::schemas) {
        let rest = name
            .strip_prefix("io.k8s.")
            .filter(|_| !schema["x-kubernetes-group-version-kind"].is_null());
        if let Some((package, _)) = rest.and_then(|rest| rest.rsplit_once('.')) {
            folders.insert(format!("k8s.io/{}", package.replace('.', "/")));
        }
    }
    folders.insert("k8s.io/apimachinery/pkg/runtime".to_owned());
    folders
}

/// Writes JSON names into a message and returns the fields that follow another rule.
fn annotate(
    message: &mut DescriptorProto,
    tags: &BTreeMap<i32, Tag>,
) -> BTreeMap<String, &'static str> {
    let mut rules = BTreeMap::new();
    for field in &mut message.field {
        let Some(tag) = tags.get(&field.number()) else { continue };
        let name = field.name().to_owned();
        if tag.json.is_empty() {
            rules.insert(name, SPREAD);
            continue;
        }
        field.json_name = Some(tag.json.clone());
        let repeated = field.label() == Label::Repeated;
        let is_message = field.r#type() == Type::Message;
        if repeated || (is_message && tag.optional) {
            continue;
        }
        if is_message {
            rules.insert(name, ALWAYS);
        } else if field.r#type() == Type::Bytes {
            if !tag.omit_empty {
                rules.insert(name, WHEN_SET);
            }
        } else if tag.optional {
            rules.insert(name, WHEN_SET);
        } else if !tag.omit_empty {
            rules.insert(name, ALWAYS);
        }
    }
    rules
}

/// Orders files so that each comes after what it imports.
fn dependencies_first(set: FileDescriptorSet) -> Vec<FileDescriptorProto> {
    let mut waiting = set.file;
    let mut ordered: Vec<FileDescriptorProto> = Vec::new();
    while !waiting.is_empty() {
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|file| {
            file.dependency.iter().all(|name| ordered.iter().any(|done| done.name() == name))
        });
        if ready.is_empty() {
            ordered.extend(rest);
            break;
        }
        ordered.extend(ready);
        waiting = rest;
    }
    ordered
}

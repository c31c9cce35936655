//! How Go writes the published types as JSON, read from the tags of their structs.
//!
//! The protobuf definitions do not say which fields are pointers, which are left out when empty,
//! and which are spread into the object around them; the tags do.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

/// What a struct's tag says about one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The name in JSON; empty for a field that is spread into the object around it.
    pub(crate) json: String,
    /// Left out when it has its zero value.
    pub(crate) omit_empty: bool,
    /// A pointer or a byte slice: absent and zero are two things.
    pub(crate) optional: bool,
}

/// Tags by type name, then by protobuf field number.
pub(crate) type Tags = BTreeMap<String, BTreeMap<i32, Tag>>;

/// Reads every struct of a Go package.
pub(crate) fn read(package: &Path) -> anyhow::Result<Tags> {
    let mut tags = Tags::new();
    let entries = std::fs::read_dir(package);
    for entry in entries.with_context(|| format!("reading {}", package.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".go") && !name.ends_with("_test.go") && name != "generated.pb.go" {
            parse(&std::fs::read_to_string(&path)?, &mut tags);
        }
    }
    Ok(tags)
}

fn parse(source: &str, tags: &mut Tags) {
    let mut current: Option<String> = None;
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("type ") {
            current = rest.strip_suffix(" struct {").map(str::to_owned);
        } else if line == "}" {
            current = None;
        } else if let (Some(name), Some((number, tag))) = (&current, field(line.trim())) {
            tags.entry(name.clone()).or_default().insert(number, tag);
        }
    }
}

/// The tag of a line such as ``Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,…"` ``.
fn field(line: &str) -> Option<(i32, Tag)> {
    if line.starts_with("//") {
        return None;
    }
    let (declaration, tag) = line.split_once('`')?;
    let number = quoted(tag, "protobuf:")?.split(',').nth(1)?.parse().ok()?;
    let json = quoted(tag, "json:")?;
    let (name, options) = json.split_once(',').unwrap_or((json, ""));
    let ty = declaration.split_whitespace().last()?;
    let tag = Tag {
        json: name.to_owned(),
        omit_empty: options.split(',').any(|word| word == "omitempty"),
        optional: ty.starts_with('*') || ty == "[]byte",
    };
    Some((number, tag))
}

fn quoted<'a>(tag: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(key)?;
    rest.strip_prefix('"')?.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_say_the_name_and_what_empty_means() {
        let source = "type Probe struct {\n\t// `json:\"no\" protobuf:\"x,9\"`\n\
            \tProbeHandler `json:\",inline\" protobuf:\"bytes,1,opt,name=handler\"`\n\
            \tGrace *int64 `json:\"grace,omitempty\" protobuf:\"varint,7,opt,name=grace\"`\n}\n";
        let mut tags = Tags::new();
        parse(source, &mut tags);
        let probe = &tags["Probe"];
        assert_eq!(probe.len(), 2);
        assert!(probe[&1].json.is_empty() && !probe[&1].optional);
        assert!(probe[&7].optional && probe[&7].omit_empty && probe[&7].json == "grace");
    }
}

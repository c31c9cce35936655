//! One rule of a role: what it allows, and whether it covers another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::auth::attributes::Attributes;

const ALL: &str = "*";

/// A `PolicyRule`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    #[serde(deserialize_with = "null_is_empty")]
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(
        rename = "nonResourceURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_is_empty"
    )]
    pub(crate) non_resource_urls: Vec<String>,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

fn has(set: &[String], item: &str) -> bool {
    set.iter().any(|one| one == item)
}

fn has_or_all(set: &[String], item: &str) -> bool {
    set.iter().any(|one| one == ALL || one == item)
}

/// Whether a path is one that the pattern, which may end in `*`, stands for.
fn path_matches(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

impl Rule {
    /// Whether the rule allows what is wanted.
    pub(crate) fn allows(&self, wanted: &Attributes) -> bool {
        if !has_or_all(&self.verbs, &wanted.verb) {
            return false;
        }
        if !wanted.path.is_empty() {
            let mut patterns = self.non_resource_urls.iter();
            return patterns.any(|pattern| path_matches(pattern, &wanted.path));
        }
        has_or_all(&self.api_groups, &wanted.group)
            && self.names_resource(wanted)
            && (self.resource_names.is_empty() || has(&self.resource_names, &wanted.name))
    }

    fn names_resource(&self, wanted: &Attributes) -> bool {
        let whole = wanted.whole_resource();
        self.resources.iter().any(|resource| {
            resource == ALL
                || *resource == *whole
                || (!wanted.subresource.is_empty()
                    && resource.strip_prefix("*/") == Some(&wanted.subresource))
        })
    }

    /// The rule as rules of one verb on one thing each.
    pub(crate) fn atoms(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut atoms = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(atom);
                    } else {
                        let named = self.resource_names.iter();
                        atoms.extend(
                            named.map(|name| Self { resource_names: one(name), ..atom.clone() }),
                        );
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            for verb in &self.verbs {
                let (verbs, non_resource_urls) = (one(verb), one(url));
                atoms.push(Self { verbs, non_resource_urls, ..Self::default() });
            }
        }
        atoms
    }

    /// Whether whoever has this rule has what the atom allows.
    fn covers(&self, atom: &Self) -> bool {
        let verbs = has(&self.verbs, ALL) || atom.verbs.iter().all(|verb| has(&self.verbs, verb));
        let groups = has(&self.api_groups, ALL)
            || atom.api_groups.iter().all(|group| has(&self.api_groups, group));
        let resources = atom.resources.iter().all(|resource| {
            has_or_all(&self.resources, resource)
                || resource
                    .split_once('/')
                    .is_some_and(|(_, sub)| has(&self.resources, &format!("*/{sub}")))
        });
        let urls = atom
            .non_resource_urls
            .iter()
            .all(|url| self.non_resource_urls.iter().any(|pattern| path_matches(pattern, url)));
        let names = self.resource_names.is_empty()
            || (!atom.resource_names.is_empty()
                && atom.resource_names.iter().all(|name| has(&self.resource_names, name)));
        verbs && groups && resources && urls && names
    }
}

/// What `wanted` allows and `held` does not, in atoms.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let atoms = wanted.iter().flat_map(Rule::atoms);
    atoms.filter(|atom| !held.iter().any(|rule| rule.covers(atom))).collect()
}

/// The rules in words, those on the same thing as one, sorted.
pub(crate) fn describe(atoms: &[Rule]) -> String {
    let mut merged: BTreeMap<[Vec<String>; 3], Rule> = BTreeMap::new();
    let mut words: Vec<String> = Vec::new();
    for atom in atoms {
        if !atom.non_resource_urls.is_empty() {
            words.push(atom.to_string());
            continue;
        }
        let thing = [&atom.api_groups, &atom.resources, &atom.resource_names].map(Vec::clone);
        match merged.get_mut(&thing) {
            Some(rule) => rule.verbs.extend(atom.verbs.iter().cloned()),
            None => drop(merged.insert(thing, atom.clone())),
        }
    }
    words.extend(merged.values().map(ToString::to_string));
    words.sort();
    words.dedup();
    words.join("\n")
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown = fields.iter().filter(|(_, values)| !values.is_empty());
        let shown: Vec<String> =
            shown.map(|(name, values)| format!("{name}:{}", quoted(values))).collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

/// A list of texts in the form in which Go prints one.
pub(crate) fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Rule {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let (api_groups, resources) = (texts(groups), texts(resources));
        Rule { verbs: texts(verbs), api_groups, resources, ..Rule::default() }
    }

    #[test]
    fn whoever_has_all_subresources_of_a_name_has_each() {
        let held = [rule(&[""], &["*/status"], &["update"])];
        let wanted = rule(&[""], &["pods/status"], &["update"]);
        assert_eq!(missing(&held, &[wanted]), []);
        assert_eq!(missing(&held, &[rule(&[""], &["pods"], &["update"])]).len(), 1);
    }

    #[test]
    fn a_rule_for_one_name_does_not_cover_all_of_them() {
        let all = rule(&[""], &["secrets"], &["get"]);
        let one = Rule { resource_names: vec!["a".into()], ..all.clone() };
        assert_eq!(missing(std::slice::from_ref(&all), std::slice::from_ref(&one)), []);
        assert_eq!(missing(std::slice::from_ref(&one), std::slice::from_ref(&all)).len(), 1);
    }

    #[test]
    fn what_is_missing_is_said_once_per_thing() {
        let wanted = [rule(&[""], &["pods", "secrets"], &["get", "list"])];
        let words = describe(&missing(&[], &wanted));
        assert_eq!(
            words,
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}"
        );
    }
}

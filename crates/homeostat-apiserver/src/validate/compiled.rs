//! CEL rules of a schema (`x-kubernetes-validations`), compiled once and kept by the node they stand
//! on. Nothing is asked here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::join;
use crate::schema::{NodeId, Rule, Schema};
use homeostat_cel::{self as cel, Decl, Program};

/// The compiled rules of one schema. Empty by default.
#[derive(Debug, Default)]
pub struct Rules {
    nodes: BTreeMap<NodeId, NodeRules>,
}

/// The rules of one node.
#[derive(Debug)]
pub(super) struct NodeRules {
    /// What `self` is; nothing where expressions cannot see it.
    pub(super) decl: Option<Decl>,
    pub(super) rules: Vec<Compiled>,
}

/// A rule. What does not compile is kept and refuses every value; it is found when the definition
/// is written.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    pub(super) program: Result<Program, String>,
    pub(super) message: Option<Program>,
    /// Where it is told to be broken, below the value; empty for the value itself.
    pub(super) place: String,
}

impl Rules {
    /// Compiles every rule of a schema and below it. It must be a tree, as the document it was made
    /// of is, which says what expressions see. `is_resource` says whether values have `apiVersion`,
    /// `kind` and `metadata`.
    #[must_use]
    pub fn compile(schema: Schema<'_>, document: &Value, is_resource: bool) -> Self {
        let mut rules = Self::default();
        rules.collect(schema, document, is_resource);
        rules
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn of(&self, node: NodeId) -> Option<&NodeRules> {
        self.nodes.get(&node)
    }

    fn collect(&mut self, schema: Schema<'_>, document: &Value, is_resource: bool) {
        let node = schema.node();
        let mut said = node.rules.iter().filter(|rule| !rule.expression.trim().is_empty());
        if let Some(first) = said.next() {
            let decl = Decl::of(document, is_resource, "selfType");
            let own = decl.as_ref().map_or(cel::Type::Dyn, |decl| decl.ty.clone());
            let all = [first].into_iter().chain(said);
            let rules = all.map(|rule| Compiled::new(schema, rule, &own)).collect();
            self.nodes.insert(schema.id(), NodeRules { decl, rules });
        }
        let is_embedded = |id: NodeId| schema.sibling(id).node().embedded_resource;
        // Fields that expressions cannot see have no rules, nor has what is below them.
        for (name, id) in node.properties.iter().filter(|_| is_seen(document)) {
            let field = document.get("properties").and_then(|fields| fields.get(name));
            if let Some(field) = field.filter(|field| is_seen(field)) {
                self.collect(schema.sibling(*id), field, is_embedded(*id));
            }
        }
        for (id, name) in [(node.additional, "additionalProperties"), (node.items, "items")] {
            let below = document.get(name).filter(|below| below.is_object());
            if let (Some(id), Some(below)) = (id, below) {
                self.collect(schema.sibling(id), below, is_embedded(id));
            }
        }
    }
}

/// Whether expressions see values that the document describes.
fn is_seen(document: &Value) -> bool {
    let below = |name: &str| document.get(name).filter(|below| below.is_object());
    let is = |flag: &str| document.get(flag) == Some(&Value::Bool(true));
    if is("x-kubernetes-int-or-string") {
        return true;
    }
    match document.get("type").and_then(Value::as_str).unwrap_or_default() {
        "array" => below("items").is_some_and(is_seen),
        "object" if is("x-kubernetes-embedded-resource") => true,
        "object" => below("additionalProperties").is_none_or(is_seen),
        "string" | "boolean" | "number" | "integer" => true,
        _ => false,
    }
}

impl Compiled {
    fn new(schema: Schema<'_>, rule: &Rule, own: &cel::Type) -> Self {
        let old = match rule.optional_old_self {
            true => cel::Type::optional(own.clone()),
            false => own.clone(),
        };
        let variables = [("self", own.clone()), ("oldSelf", old)];
        let compile = |text: &str| Program::compile(text, &variables);
        let message = rule.message_expression.as_deref().filter(|text| !text.is_empty());
        let program = match compile(&rule.expression) {
            Ok(program) if *program.ty() != cel::Type::Bool => {
                Err("cel expression must evaluate to a bool".to_owned())
            }
            Ok(program) => Ok(program),
            Err(why) => Err(format!("compilation failed: {why}")),
        };
        let place = rule.field_path.as_deref().and_then(|path| place(schema, path));
        Self {
            program,
            message: message.and_then(|text| compile(text).ok()),
            rule: rule.clone(),
            place: place.unwrap_or_default(),
        }
    }

    pub(super) fn uses_old(&self) -> bool {
        self.program.as_ref().is_ok_and(|program| program.uses("oldSelf"))
    }

    /// What is said of it in errors.
    pub(super) fn name(&self) -> &str {
        match self.rule.message.as_deref().filter(|message| !message.is_empty()) {
            Some(message) => message.trim(),
            None => self.rule.expression.trim(),
        }
    }
}

/// `.a['b'].c` as errors show it: fields with dots, keys of maps in brackets. Nothing if it leads
/// nowhere.
fn place(schema: Schema<'_>, path: &str) -> Option<String> {
    let (mut schema, mut rest, mut shown) = (schema, path, String::new());
    while !rest.is_empty() {
        let name = if let Some(quoted) = rest.strip_prefix("['") {
            let (name, after) = quoted.split_once("']")?;
            rest = after;
            name.replace("\\'", "'")
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            rest = &after[end..];
            after[..end].to_owned()
        };
        let is_map = schema.node().properties.is_empty();
        shown = if is_map { format!("{shown}[{name}]") } else { join(&shown, &name) };
        schema = schema.field(&name)?;
    }
    Some(shown)
}

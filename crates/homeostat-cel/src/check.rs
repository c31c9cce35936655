//! The type checker: what an expression evaluates to, or everything that is wrong with it.
//!
//! Follows the rules of cel-go: overloads are tried with fresh type parameters, and `dyn` fits
//! everywhere.

use std::collections::{BTreeMap, BTreeSet};

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, StructExpr,
};

use super::declarations::{Overload, overloads};
use super::literals;
use super::source::{Mistake, Source};
use super::types::Type;
use super::unify::Bindings;

/// What an expression may speak of, by name.
pub type Variables<'a> = &'a [(&'a str, Type)];

/// What is known of an expression that has no mistakes.
#[derive(Debug)]
pub struct Checked {
    /// The type of the whole.
    pub ty: Type,
    /// The type of every node.
    pub(super) types: BTreeMap<u64, Type>,
    /// The overloads that a call may mean.
    pub(super) overloads: BTreeMap<u64, Vec<&'static str>>,
    /// The full names of functions that look like methods: `sets.contains`.
    pub(super) names: BTreeMap<u64, String>,
    /// The variables it uses.
    pub uses: BTreeSet<String>,
}

/// Checks an expression.
///
/// # Errors
/// All mistakes, in the form of cel-go.
pub fn check(source: &Source, variables: Variables<'_>) -> Result<Checked, String> {
    let mut checker = Checker {
        source,
        scopes: variables.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect(),
        bindings: Bindings::default(),
        mistakes: Vec::new(),
        checked: Checked {
            ty: Type::Error,
            types: BTreeMap::new(),
            overloads: BTreeMap::new(),
            names: BTreeMap::new(),
            uses: BTreeSet::new(),
        },
    };
    let ty = checker.node(&source.root);
    let Checker { bindings, mut checked, mut mistakes, .. } = checker;
    checked.ty = bindings.resolved(&ty, true);
    for ty in checked.types.values_mut() {
        *ty = bindings.resolved(ty, true);
    }
    if mistakes.is_empty() {
        mistakes = literals::mistakes(source, &checked.types);
    }
    if mistakes.is_empty() { Ok(checked) } else { Err(source.report(mistakes)) }
}

struct Checker<'a> {
    source: &'a Source,
    /// The innermost last.
    scopes: Vec<(String, Type)>,
    bindings: Bindings,
    mistakes: Vec<Mistake>,
    checked: Checked,
}

impl Checker<'_> {
    fn refuse(&mut self, id: u64, words: String) -> Type {
        self.mistakes.push(Mistake { offset: self.source.offset(id), words });
        Type::Error
    }

    fn node(&mut self, node: &IdedExpr) -> Type {
        let ty = self.type_of(node);
        self.checked.types.insert(node.id, ty.clone());
        ty
    }

    fn type_of(&mut self, node: &IdedExpr) -> Type {
        match &node.expr {
            Expr::Unspecified => Type::Error,
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => self.ident(node.id, name),
            Expr::Select(select) => self.select(node.id, select),
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) => {
                let mut item = None;
                for (at, element) in list.elements.iter().enumerate() {
                    let mut ty = self.node(element);
                    if list.optional_indices.contains(&at) {
                        ty = self.unwrapped(element.id, &ty);
                    }
                    item = Some(self.join(item, ty));
                }
                Type::list(item.unwrap_or_else(|| self.bindings.fresh()))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let key = self.node(&entry.key);
                    keys = Some(self.join(keys, key));
                    let mut value = self.node(&entry.value);
                    if entry.optional {
                        value = self.unwrapped(entry.value.id, &value);
                    }
                    values = Some(self.join(values, value));
                }
                let key = keys.unwrap_or_else(|| self.bindings.fresh());
                Type::map(key, values.unwrap_or_else(|| self.bindings.fresh()))
            }
            Expr::Struct(object) => self.structure(node.id, object),
            Expr::Comprehension(walk) => self.comprehension(walk),
        }
    }

    /// A structure of a type that was declared; of those inside it nothing more is known.
    fn structure(&mut self, id: u64, object: &StructExpr) -> Type {
        for entry in &object.entries {
            if let EntryExpr::StructField(field) = &entry.expr {
                self.node(&field.value);
            }
        }
        let name = object.type_name.as_str();
        let outer = name.split('.').next().unwrap_or(name);
        match self.scopes.iter().find(|(known, _)| known == outer) {
            Some((_, Type::Meta(of))) if outer == name => (**of).clone(),
            Some((_, Type::Meta(_))) => Type::Dyn,
            _ => self.refuse(id, undeclared(name)),
        }
    }

    /// The value of something optional.
    fn unwrapped(&mut self, id: u64, ty: &Type) -> Type {
        match self.bindings.resolved(ty, false) {
            Type::Optional(inner) => (*inner).clone(),
            ty if ty.is_dyn_or_error() => ty,
            ty => {
                let words = format!("expected type 'optional_type({ty})' but found '{ty}'");
                self.refuse(id, words)
            }
        }
    }

    /// The type of a literal that has one more element: anything, where they differ. Only some
    /// functions take such literals; the others are found afterwards.
    fn join(&mut self, before: Option<Type>, next: Type) -> Type {
        let Some(before) = before else { return next };
        if self.bindings.assign(&before, &next) {
            return self.bindings.most_general(&before, &next);
        }
        Type::Dyn
    }

    fn ident(&mut self, id: u64, name: &str) -> Type {
        if let Some((_, ty)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
            self.checked.uses.insert(name.to_owned());
            return ty.clone();
        }
        match Type::named(name) {
            Some(ty) => Type::Meta(ty.into()),
            None => self.refuse(id, undeclared(name)),
        }
    }

    fn select(&mut self, id: u64, select: &SelectExpr) -> Type {
        // Types of messages have dots in their names.
        if let Some(name) = qualified(&select.operand, &select.field) {
            let variable = self.scopes.iter().rev().find(|(known, _)| *known == name);
            if let Some((_, ty)) = variable {
                return ty.clone();
            }
            if let Some(ty) = Type::named(&name) {
                return Type::Meta(ty.into());
            }
        }
        let operand = self.node(&select.operand);
        let field = self.field(id, &operand, &select.field);
        if select.test { Type::Bool } else { field }
    }

    /// The type of a field. What is selected from something optional is optional.
    fn field(&mut self, id: u64, operand: &Type, field: &str) -> Type {
        let operand = self.bindings.resolved(operand, false);
        match &operand {
            Type::Optional(inner) => match self.field(id, inner, field) {
                found @ Type::Optional(_) => found,
                found => Type::optional(found),
            },
            Type::Map(pair) => pair.1.clone(),
            Type::Object(object) => match object.fields.get(field).or_else(|| {
                // Words of the language are escaped, but may be written as they are.
                object.fields.get(super::decl::escaped_word(field)?)
            }) {
                Some(ty) => ty.clone(),
                None => self.refuse(id, format!("undefined field '{field}'")),
            },
            Type::Variable(_) => {
                self.bindings.assign(&operand, &Type::Dyn);
                Type::Dyn
            }
            ty if ty.is_dyn_or_error() => Type::Dyn,
            ty => self.refuse(id, format!("type '{ty}' does not support field selection")),
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        if call.func_name == "_?._"
            && let [operand, field] = &call.args[..]
            && let Expr::Literal(LiteralValue::String(field)) = &field.expr
        {
            let operand = self.node(operand);
            return match self.field(id, &operand, field.inner()) {
                found @ Type::Optional(_) => found,
                found => Type::optional(found),
            };
        }
        if let Some(overload) = match call.func_name.as_str() {
            "_&&_" => Some("logical_and"),
            "_||_" => Some("logical_or"),
            _ => None,
        } {
            for argument in &call.args {
                let ty = self.node(argument);
                self.expect(argument.id, &ty, &Type::Bool);
            }
            self.checked.overloads.insert(id, vec![overload]);
            return Type::Bool;
        }
        if let Some(target) = &call.target {
            // A function of a library: `sets.contains(a, b)`.
            let name = qualified(target, &call.func_name);
            if let Some(name) = name.filter(|name| is_function(name))
                && !self.is_variable(target)
            {
                self.checked.names.insert(id, name.clone());
                return self.resolve(id, &name, false, &call.args, None);
            }
            let target = self.node(target);
            if !is_function(&call.func_name) {
                for argument in &call.args {
                    self.node(argument);
                }
                return self.refuse(id, undeclared(&call.func_name));
            }
            return self.resolve(id, &call.func_name, true, &call.args, Some(target));
        }
        if !is_function(&call.func_name) {
            for argument in &call.args {
                self.node(argument);
            }
            return self.refuse(id, undeclared(&call.func_name));
        }
        self.resolve(id, &call.func_name, false, &call.args, None)
    }

    /// Whether a chain of names begins with a variable.
    fn is_variable(&self, node: &IdedExpr) -> bool {
        match &node.expr {
            Expr::Ident(name) => self.scopes.iter().any(|(known, _)| known == name),
            Expr::Select(select) => self.is_variable(&select.operand),
            _ => false,
        }
    }

    /// Finds the overloads that fit; where several do, the result is known only if they agree.
    fn resolve(
        &mut self,
        id: u64,
        name: &str,
        member: bool,
        arguments: &[IdedExpr],
        target: Option<Type>,
    ) -> Type {
        let mut given: Vec<Type> = target.into_iter().collect();
        for argument in arguments {
            let ty = self.node(argument);
            given.push(ty);
        }
        let mut result: Option<Type> = None;
        for overload in overloads(name).filter(|overload| overload.member == member) {
            if let Some(ty) = self.apply(overload, &given) {
                self.checked.overloads.entry(id).or_default().push(overload.id);
                let ty = self.bindings.resolved(&ty, false);
                result = match result {
                    None => Some(ty),
                    Some(first) if first == ty => Some(first),
                    Some(_) => Some(Type::Dyn),
                };
            }
        }
        if let Some(result) = result {
            return result;
        }
        let shown: Vec<String> =
            given.iter().map(|ty| self.bindings.resolved(ty, true).to_string()).collect();
        if given.contains(&Type::Error) {
            return Type::Error;
        }
        let applied = match (member, &shown[..]) {
            (true, [target, rest @ ..]) => format!("{target}.({})", rest.join(", ")),
            (_, all) => format!("({})", all.join(", ")),
        };
        self.refuse(id, format!("found no matching overload for '{name}' applied to '{applied}'"))
    }

    /// The result of an overload, if it takes these arguments.
    fn apply(&mut self, overload: &Overload, given: &[Type]) -> Option<Type> {
        if overload.arguments.len() != given.len() {
            return None;
        }
        let mut fresh = BTreeMap::new();
        let mut attempt = self.bindings.clone();
        let mut instance = |ty: &Type, attempt: &mut Bindings| {
            ty.replaced(&mut |part| match part {
                Type::Param(name) => {
                    Some(fresh.entry(*name).or_insert_with(|| attempt.fresh()).clone())
                }
                _ => None,
            })
        };
        for (wanted, given) in overload.arguments.iter().zip(given) {
            let wanted = instance(wanted, &mut attempt);
            if !attempt.assign(given, &wanted) {
                return None;
            }
        }
        let result = instance(&overload.result, &mut attempt);
        self.bindings = attempt;
        Some(result)
    }

    fn comprehension(&mut self, walk: &ComprehensionExpr) -> Type {
        let range = self.node(&walk.iter_range);
        let range = self.bindings.resolved(&range, false);
        let (first, second) = match &range {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Variable(_) => {
                self.bindings.assign(&range, &Type::Dyn);
                (Type::Dyn, Type::Dyn)
            }
            ty if ty.is_dyn_or_error() && *ty != Type::Any => (Type::Dyn, Type::Dyn),
            ty => {
                let words = format!(
                    "expression of type '{ty}' cannot be range of a comprehension (must be list, \
                     map, or dynamic)"
                );
                self.refuse(walk.iter_range.id, words);
                (Type::Error, Type::Error)
            }
        };
        let accumulator = self.node(&walk.accu_init);
        let depth = self.scopes.len();
        self.scopes.push((walk.accu_var.clone(), accumulator.clone()));
        match &walk.iter_var2 {
            Some(name) => {
                self.scopes.push((walk.iter_var.clone(), first));
                self.scopes.push((name.clone(), second));
            }
            None => {
                let item = if matches!(range, Type::List(_)) { second } else { first };
                self.scopes.push((walk.iter_var.clone(), item));
            }
        }
        let condition = self.node(&walk.loop_cond);
        self.expect(walk.loop_cond.id, &condition, &Type::Bool);
        let step = self.node(&walk.loop_step);
        self.expect(walk.loop_step.id, &step, &accumulator);
        self.scopes.truncate(depth + 1);
        let result = self.node(&walk.result);
        self.scopes.truncate(depth);
        self.bindings.resolved(&result, false)
    }

    fn expect(&mut self, id: u64, given: &Type, wanted: &Type) {
        if !self.bindings.assign(given, wanted) {
            let given = self.bindings.resolved(given, false);
            let wanted = self.bindings.resolved(wanted, false);
            self.refuse(id, format!("expected type '{wanted}' but found '{given}'"));
        }
    }
}

fn is_function(name: &str) -> bool {
    overloads(name).next().is_some()
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

/// `a.b.c` of a chain of names.
fn qualified(node: &IdedExpr, last: &str) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(format!("{name}.{last}")),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{last}", qualified(&select.operand, &select.field)?))
        }
        _ => None,
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

//! The interpreter: walks an expression, counts what that costs, and stops when it is too much.
//!
//! Costs are those of cel-go's tracker, oddities included: a field costs as much as a variable, a
//! branch of `?:` that is only a name is free, and arguments that failed are paid for.

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators as named;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr,
};

use super::expand::RESULT;
use super::lists::Known;
use super::memory::{Memory, Range};
use super::operators::{self, NO_OVERLOAD};
use super::price::{LIST, MAP, STRUCT};
use super::program::{Fault, Program, Scope};
use super::types::Type;
use super::{authorization, functions, spent, values};

type Outcome = Result<Value, Fault>;

fn failed<T>(why: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(why.into()))
}

/// What is said of a value that nobody can walk through.
fn walked(value: &Value) -> String {
    let name = values::type_name(value);
    let (first, rest) = name.split_at(1);
    format!("got 'types.{}{rest}', expected iterable type", first.to_uppercase())
}

/// One run of a program.
pub(super) struct Machine<'a> {
    program: &'a Program,
    scope: &'a dyn Scope,
    /// Variables of comprehensions, the innermost last. Mistakes are gathered like values.
    locals: Vec<(&'a str, Result<Value, String>)>,
    lists: Known<'a>,
    memory: Memory,
    pub(super) cost: u64,
    limit: u64,
}

impl<'a> Machine<'a> {
    pub(super) fn new(program: &'a Program, scope: &'a dyn Scope, limit: u64) -> Self {
        let lists = Known::new(scope.lists());
        Self {
            program,
            scope,
            locals: Vec::new(),
            lists,
            memory: Memory::default(),
            cost: 0,
            limit,
        }
    }

    fn charge(&mut self, cost: u64) -> Result<(), Fault> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Fault::Exceeded) } else { Ok(()) }
    }

    /// The value of a node.
    pub(super) fn eval(&mut self, node: &'a IdedExpr) -> Outcome {
        if let Some(value) = self.program.constants.get(&node.id) {
            return Ok(value.clone());
        }
        if is_attribute(node) {
            let outcome = self.resolve(node);
            if outcome == Err(Fault::Exceeded) {
                return outcome;
            }
            self.charge(u64::from(!is_free(node)))?;
            return outcome;
        }
        match &node.expr {
            Expr::Call(call) => self.call(node.id, call),
            Expr::List(list) => {
                let made = self.list(&list.elements, &list.optional_indices);
                self.paid(LIST, made)
            }
            Expr::Map(map) => {
                let made = self.entries(&map.entries);
                self.paid(MAP, made)
            }
            Expr::Struct(object) => {
                let made = self.entries(&object.entries);
                self.paid(STRUCT, made)
            }
            Expr::Comprehension(walk) => self.comprehension(walk),
            _ => failed(NO_OVERLOAD),
        }
    }

    /// An outcome that costs something, whatever it is.
    fn paid(&mut self, cost: u64, outcome: Outcome) -> Outcome {
        if outcome == Err(Fault::Exceeded) {
            return outcome;
        }
        self.charge(cost)?;
        outcome
    }

    /// The value of a variable, of a field, of an item or of a choice: what these cost by
    /// themselves is on whoever asks.
    fn resolve(&mut self, node: &'a IdedExpr) -> Outcome {
        match &node.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                if let Some(value) = self.qualified(node) {
                    return Ok(value);
                }
                if let Expr::Ident(name) = &select.operand.expr
                    && name == "variables"
                    && !self.locals.iter().any(|(known, _)| known == name)
                    && !select.test
                {
                    self.charge(1)?;
                    return self.scope.composed(&select.field).map_err(Fault::Failed);
                }
                let whole = self.base(&select.operand)?;
                let field = values::string(self.field(&select.operand, &select.field));
                if select.test {
                    let found = match &whole {
                        Value::Map(_) => Ok(operators::maybe_at(&whole, &field).is_some()),
                        other => values::optional(other)
                            .map(|_| operators::maybe_at(other, &field).is_some())
                            .ok_or_else(|| NO_OVERLOAD.to_owned()),
                    };
                    self.charge(u64::from(!is_free(&select.operand)))?;
                    return found.map(Value::Bool).map_err(Fault::Failed);
                }
                self.part(&whole, &field, false)
            }
            Expr::Call(call) if call.func_name == named::CONDITIONAL => {
                let branch = match self.eval(&call.args[0])? {
                    Value::Bool(true) => &call.args[1],
                    Value::Bool(false) => &call.args[2],
                    _ => return failed(NO_OVERLOAD),
                };
                self.base(branch)
            }
            Expr::Call(call) => {
                let whole = self.base(&call.args[0])?;
                let optional = call.func_name != named::INDEX;
                match self.base(&call.args[1]) {
                    Ok(Value::String(field)) if call.func_name == named::OPT_SELECT => {
                        let field = self.field(&call.args[0], &field).to_owned();
                        self.part(&whole, &values::string(&field), optional)
                    }
                    Ok(place) => self.part(&whole, &place, optional),
                    failed => self.paid(1, failed),
                }
            }
            _ => failed(NO_OVERLOAD),
        }
    }

    fn base(&mut self, node: &'a IdedExpr) -> Outcome {
        match self.program.constants.get(&node.id) {
            Some(value) => Ok(value.clone()),
            None if is_attribute(node) => self.resolve(node),
            None => self.eval(node),
        }
    }

    /// What is at a place, for the price of one.
    fn part(&mut self, whole: &Value, place: &Value, optional: bool) -> Outcome {
        if optional || values::optional(whole).is_some() {
            let found = operators::maybe_at(whole, place);
            self.charge(u64::from(found.is_some()))?;
            return Ok(values::maybe(found));
        }
        let found = operators::at(whole, place).map_err(Fault::Failed);
        self.paid(1, found)
    }

    /// The name that a field has in values: words of the language are escaped in structures.
    fn field<'n>(&self, operand: &IdedExpr, name: &'n str) -> &'n str
    where
        'a: 'n,
    {
        match self.program.checked.types.get(&operand.id) {
            Some(Type::Object(object)) if !object.fields.contains_key(name) => {
                super::decl::escaped_word(name).unwrap_or(name)
            }
            _ => name,
        }
    }

    fn variable(&mut self, name: &str) -> Outcome {
        if let Some((_, value)) = self.locals.iter().rev().find(|(known, _)| *known == name) {
            return value.clone().map_err(Fault::Failed);
        }
        let value = self.scope.variable(name);
        value.ok_or_else(|| Fault::Failed(format!("no such attribute(s): {name}")))
    }

    /// Variables with dots in their names.
    fn qualified(&self, node: &IdedExpr) -> Option<Value> {
        let Expr::Select(select) = &node.expr else { return None };
        let Expr::Ident(first) = &select.operand.expr else { return None };
        self.scope.variable(&format!("{first}.{}", select.field))
    }

    fn list(&mut self, elements: &'a [IdedExpr], optional: &[usize]) -> Outcome {
        let mut items = Vec::with_capacity(elements.len());
        for (at, element) in elements.iter().enumerate() {
            let value = self.eval(element)?;
            if !optional.contains(&at) {
                items.push(value);
            } else if let Some(inner) = values::optional(&value) {
                items.extend(inner.cloned());
            } else {
                return failed("cannot initialize optional list element from non-optional value");
            }
        }
        Ok(Value::List(items.into()))
    }

    fn entries(&mut self, entries: &'a [IdedEntryExpr]) -> Outcome {
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            let (key, node, optional) = match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    let key = self.eval(&entry.key)?;
                    (key, &entry.value, entry.optional)
                }
                EntryExpr::StructField(field) => {
                    (values::string(&field.field), &field.value, field.optional)
                }
            };
            let Some(key) = values::key(&key) else { return failed("unsupported key type") };
            let value = self.eval(node)?;
            match values::optional(&value).filter(|_| optional) {
                Some(inner) => made.extend(inner.map(|inner| (key, inner.clone()))),
                None => made.push((key, value)),
            }
        }
        Ok(values::entries(made))
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> Outcome {
        let checked = &self.program.checked;
        let name = checked.names.get(&id).map_or(call.func_name.as_str(), String::as_str);
        let overload = match checked.overloads.get(&id).map(Vec::as_slice) {
            Some([only]) => only,
            _ => "",
        };
        match (name, &call.args[..], call.target.as_deref()) {
            (named::LOGICAL_AND, [left, right], _) => return self.either(left, right, false),
            (named::LOGICAL_OR, [left, right], _) => return self.either(left, right, true),
            (named::NOT_STRICTLY_FALSE, [only], _) => {
                let outcome = self.eval(only);
                let holds = !matches!(outcome, Ok(Value::Bool(false)));
                return self.paid(
                    1,
                    outcome
                        .or_else(|fault| match fault {
                            Fault::Exceeded => Err(fault),
                            Fault::Failed(_) => Ok(Value::Null),
                        })
                        .map(|_| Value::Bool(holds)),
                );
            }
            ("or" | "orValue", [otherwise], Some(target)) => {
                let value = self.eval(target)?;
                return match values::optional(&value) {
                    Some(None) => self.eval(otherwise),
                    Some(Some(inner)) if name == "orValue" => Ok(inner.clone()),
                    Some(Some(_)) => Ok(value),
                    None => failed(NO_OVERLOAD),
                };
            }
            // Whether something is among constants is looked up in a table.
            (named::IN, [part, list], _) if overload == "in_list" => {
                if let Some(Value::List(items)) = self.program.constants.get(&list.id)
                    && items.iter().all(is_primitive)
                {
                    let part = self.eval(part)?;
                    return Ok(Value::Bool(items.contains(&part)));
                }
            }
            // What is gathered is added to, not copied.
            (named::ADD | super::expand::INSERT, [gathered, rest @ ..], _) if matches!(&gathered.expr, Expr::Ident(name) if name == RESULT) =>
            {
                return self.gather(name, overload, rest);
            }
            _ => {}
        }
        let is_member = call.target.is_some() && !checked.names.contains_key(&id);
        let target = call.target.as_deref().filter(|_| is_member);
        let given = self.arguments(target.into_iter().chain(&call.args), &[])?;
        self.carry_out(name, overload, is_member, given)
    }

    /// The values of arguments, and what failed first.
    fn arguments(
        &mut self,
        nodes: impl Iterator<Item = &'a IdedExpr>,
        before: &[Result<Value, String>],
    ) -> Result<Vec<Result<Value, String>>, Fault> {
        let nodes: Vec<&IdedExpr> = nodes.collect();
        let count = nodes.len() + before.len();
        let mut given = before.to_vec();
        for node in nodes {
            match self.eval(node) {
                Ok(value) => given.push(Ok(value)),
                // With three arguments and more the first mistake ends it, for nothing.
                Err(fault) if count > 2 || fault == Fault::Exceeded => return Err(fault),
                Err(Fault::Failed(why)) => given.push(Err(why)),
                Err(fault) => return Err(fault),
            }
        }
        Ok(given)
    }

    fn carry_out(
        &mut self,
        name: &str,
        overload: &str,
        is_member: bool,
        given: Vec<Result<Value, String>>,
    ) -> Outcome {
        if name == "lists.range"
            && let [Ok(Value::Int(count))] = &given[..]
            && u64::try_from(*count).is_ok_and(|count| count > self.limit)
        {
            return Err(Fault::Exceeded);
        }
        let why = given.iter().find_map(|value| value.as_ref().err().cloned());
        let mut known: Vec<Value> =
            given.into_iter().map(|value| value.unwrap_or(Value::Null)).collect();
        let sizes: Vec<u64> = known.iter().map(|value| self.memory.size(value)).collect();
        if let Some(why) = why {
            self.charge(spent::of(name, overload, &known, &sizes, None))?;
            return failed(why);
        }
        // What costs too much is not carried out first: it may take as long as it costs.
        let least = spent::of(name, overload, &known, &sizes, None);
        if self.cost.saturating_add(least) > self.limit {
            return self.charge(least).map(|()| Value::Null);
        }
        // Only a join is paid by what it makes; what is added to must have one owner.
        let is_gathering = name == named::ADD;
        let price = is_gathering.then_some(least);
        let kept = if is_gathering { Vec::new() } else { known.clone() };
        let given = std::mem::take(&mut known);
        let can_ask = is_member || matches!(name, named::EQUALS | named::NOT_EQUALS);
        let asked = can_ask.then(|| authorization::call(name, &given, self.scope)).flatten();
        let result = if let Some(result) = asked {
            result
        } else if let Some(result) = self.lists.apply(name, &given) {
            Ok(result)
        } else if let ("size", [Value::String(_)], [size]) = (name, &given[..], &sizes[..]) {
            i64::try_from(*size).map(Value::Int).map_err(|error| error.to_string())
        } else if let ("matches", [Value::String(text), Value::String(pattern)]) =
            (name, &given[..])
            && let Some(found) = self.memory.matches(text, pattern)
        {
            Ok(Value::Bool(found))
        } else if operators::is_operator(name) {
            operators::apply(name, given)
        } else {
            functions::call(name, is_member, given)
        };
        let price =
            price.unwrap_or_else(|| spent::of(name, overload, &kept, &sizes, result.as_ref().ok()));
        self.charge(price)?;
        result.map_err(Fault::Failed)
    }

    fn gather(&mut self, name: &str, overload: &str, rest: &'a [IdedExpr]) -> Outcome {
        self.charge(1)?;
        let mut given = self.arguments(rest.iter(), &[])?;
        let local = self.locals.iter_mut().rev().find(|(known, _)| *known == RESULT);
        let gathered =
            local.map_or(Ok(Value::Null), |(_, value)| std::mem::replace(value, Ok(Value::Null)));
        given.insert(0, gathered);
        self.carry_out(name, overload, false, given)
    }

    /// `&&` and `||`: `decisive` is the value of one side that the other cannot change.
    fn either(&mut self, left: &'a IdedExpr, right: &'a IdedExpr, decisive: bool) -> Outcome {
        let mut why = None;
        for side in [left, right] {
            match self.eval(side) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(value)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => drop(why.get_or_insert_with(|| NO_OVERLOAD.to_owned())),
                Err(Fault::Exceeded) => return Err(Fault::Exceeded),
                Err(Fault::Failed(words)) => drop(why.get_or_insert(words)),
            }
        }
        why.map_or(Ok(Value::Bool(!decisive)), failed)
    }

    fn comprehension(&mut self, walk: &'a ComprehensionExpr) -> Outcome {
        let range = self.eval(&walk.iter_range)?;
        let kind = walked(&range);
        let Some(range) = self.memory.range(range) else { return failed(kind) };
        let depth = self.locals.len();
        let start = self.eval(&walk.accu_init);
        let start = gathered(start)?;
        self.locals.push((&walk.accu_var, start));
        // One step at a time: most walks end early.
        for at in 0.. {
            let Some((key, value)) = range.step(at) else { break };
            match &walk.iter_var2 {
                Some(second) => {
                    self.locals.push((&walk.iter_var, Ok(key)));
                    self.locals.push((second, Ok(value)));
                }
                None => {
                    let only = if matches!(range, Range::Items(_)) { value } else { key };
                    self.locals.push((&walk.iter_var, Ok(only)));
                }
            }
            if gathered(self.eval(&walk.loop_cond))? == Ok(Value::Bool(false)) {
                self.locals.truncate(depth + 1);
                break;
            }
            let next = gathered(self.eval(&walk.loop_step))?;
            self.locals.truncate(depth + 1);
            self.locals[depth].1 = next;
        }
        let result = self.eval(&walk.result);
        self.locals.truncate(depth);
        result
    }
}

/// An outcome as comprehensions gather it: only the limit ends them.
fn gathered(outcome: Outcome) -> Result<Result<Value, String>, Fault> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Failed(why)) => Ok(Err(why)),
        Err(fault) => Err(fault),
    }
}

/// Names, fields, items and choices.
fn is_attribute(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Ident(_) | Expr::Select(_) => true,
        Expr::Call(call) => matches!(
            call.func_name.as_str(),
            named::CONDITIONAL | named::INDEX | named::OPT_INDEX | named::OPT_SELECT
        ),
        _ => false,
    }
}

/// Whether an attribute costs no more than its parts.
fn is_free(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Select(select) => select.test || is_free(&select.operand),
        Expr::Call(call) if call.func_name == named::CONDITIONAL => true,
        Expr::Call(call) if is_attribute(node) => is_free(&call.args[0]),
        _ => false,
    }
}

fn is_primitive(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::String(_)
    )
}

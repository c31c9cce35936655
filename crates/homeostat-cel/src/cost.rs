//! What an expression can cost at most, before it is ever evaluated: cel-go's estimate with the
//! prices of Kubernetes' libraries.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue,
};

use super::amount::Amount;
use super::check::Checked;
use super::decl::Decl;
use super::price::{self, Call, Node};
use super::types::Type;

/// Fields, and `@items`, `@keys`, `@values`, from a variable on.
pub(super) type Path = Vec<String>;

/// The most that a checked expression about `root` can cost.
pub fn most(expression: &IdedExpr, checked: &Checked, root: &Decl) -> u64 {
    let mut coster = Coster {
        checked,
        root,
        paths: BTreeMap::new(),
        sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
        locals: Vec::new(),
    };
    coster.cost(expression).max
}

/// What is known of the entries of a list or map.
#[derive(Debug, Clone, Copy)]
struct Entry {
    is_list: bool,
    key: Amount,
    value: Amount,
}

/// A variable of a comprehension.
struct Local {
    name: String,
    path: Path,
    size: Option<Amount>,
    entry: Option<Entry>,
}

struct Coster<'a> {
    checked: &'a Checked,
    root: &'a Decl,
    paths: BTreeMap<u64, Path>,
    sizes: BTreeMap<u64, Amount>,
    entries: BTreeMap<u64, Entry>,
    locals: Vec<Local>,
}

impl Coster<'_> {
    fn cost(&mut self, node: &IdedExpr) -> Amount {
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => Amount::fixed(0),
            Expr::Ident(name) => {
                let path = self.local(name).map(|local| local.path.clone());
                self.paths.insert(node.id, path.unwrap_or_else(|| vec![name.clone()]));
                Amount::fixed(1)
            }
            Expr::Select(select) => {
                let operand = self.cost(&select.operand);
                if select.test {
                    return operand;
                }
                let mut path = self.path(&select.operand);
                path.push(select.field.clone());
                self.paths.insert(node.id, path);
                match self.ty(&select.operand) {
                    Type::Map(_) | Type::Object(_) | Type::Variable(_) => {
                        operand.plus(Amount::fixed(1))
                    }
                    _ => operand,
                }
            }
            Expr::Call(call) => self.call(node, call),
            Expr::List(list) => {
                let mut sum = Amount::fixed(price::LIST);
                let mut item = Amount::NOTHING;
                for element in &list.elements {
                    sum = sum.plus(self.cost(element));
                    item = item.union(self.size_or_unknown(element));
                }
                if list.elements.is_empty() {
                    item.min = 0;
                }
                let entry = Entry { is_list: true, key: Amount::fixed(1), value: item };
                self.entries.insert(node.id, entry);
                sum
            }
            Expr::Map(map) => {
                let mut sum = Amount::fixed(price::MAP);
                let (mut key, mut value) = (Amount::NOTHING, Amount::NOTHING);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                if map.entries.is_empty() {
                    (key.min, value.min) = (0, 0);
                }
                self.entries.insert(node.id, Entry { is_list: false, key, value });
                sum
            }
            Expr::Struct(_) => Amount::fixed(price::STRUCT),
            Expr::Comprehension(walk) => self.comprehension(node, walk),
        }
    }

    fn call(&mut self, node: &IdedExpr, call: &CallExpr) -> Amount {
        if call.func_name == "dyn"
            && let [argument] = &call.args[..]
        {
            let cost = self.cost(argument).plus(Amount::fixed(1));
            if let Some(size) = self.size(argument) {
                self.sizes.insert(node.id, size);
            }
            if let Some(entry) = self.entry(argument) {
                self.entries.insert(node.id, entry);
            }
            return cost;
        }
        let costs: Vec<Amount> = call.args.iter().map(|argument| self.cost(argument)).collect();
        let arguments: Vec<Node<'_>> =
            call.args.iter().map(|argument| self.node(argument)).collect();
        let Some(overloads) = self.checked.overloads.get(&node.id) else { return Amount::fixed(0) };
        let overloads = overloads.clone();
        let mut sum = Amount::fixed(0);
        let is_function = call.target.is_some() && !self.checked.names.contains_key(&node.id);
        let target = call.target.as_ref().filter(|_| is_function).map(|target| {
            sum = self.cost(target);
            self.node(target)
        });
        let name = self.checked.names.get(&node.id).map_or(call.func_name.as_str(), String::as_str);
        let mut whole = Amount::NOTHING;
        let mut size: Option<Amount> = None;
        for overload in overloads {
            let asked = Call { name, overload, target: target.as_ref(), arguments: &arguments };
            let price = price::of(&asked, &costs, &|path| self.declared(path));
            whole = whole.union(price.cost);
            size = match (size, price.size) {
                (Some(a), Some(b)) => Some(a.union(b)),
                (a, b) => a.or(b),
            };
            match overload {
                "conditional" => {
                    let entries = (self.entry(&call.args[1]), self.entry(&call.args[2]));
                    self.join_entries(node.id, entries);
                }
                "add_list" | "add_string" | "add_bytes" => {
                    let entries = (self.entry(&call.args[0]), self.entry(&call.args[1]));
                    self.join_entries(node.id, entries);
                }
                "index_list" | "index_map" => {
                    let part = if overload == "index_list" { "@items" } else { "@values" };
                    size = self.entry(&call.args[0]).map(|entry| entry.value);
                    let mut path = self.path(&call.args[0]);
                    path.push(part.to_owned());
                    self.paths.insert(node.id, path);
                }
                _ => {}
            }
            if size.is_none() {
                size = self.size(node);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(node.id, size);
        }
        sum.plus(whole)
    }

    fn join_entries(&mut self, id: u64, entries: (Option<Entry>, Option<Entry>)) {
        if let (Some(a), Some(b)) = entries {
            let (key, value) = (a.key.union(b.key), a.value.union(b.value));
            self.entries.insert(id, Entry { is_list: a.is_list, key, value });
        }
    }

    fn comprehension(&mut self, node: &IdedExpr, walk: &ComprehensionExpr) -> Amount {
        let mut sum = self.cost(&walk.iter_range).plus(self.cost(&walk.accu_init));
        let depth = self.locals.len();
        let accumulator = Local {
            name: walk.accu_var.clone(),
            path: self.path(&walk.accu_init),
            size: self.size(&walk.accu_init),
            entry: self.entry(&walk.accu_init),
        };
        self.locals.push(accumulator);
        let entry = self.entry(&walk.iter_range);
        let is_list =
            entry.map_or_else(|| matches!(self.ty(&walk.iter_range), Type::List(_)), |e| e.is_list);
        let key = (if is_list { "@indices" } else { "@keys" }, entry.map(|entry| entry.key));
        let value = (if is_list { "@items" } else { "@values" }, entry.map(|entry| entry.value));
        let path = self.path(&walk.iter_range);
        let mut push = |name: &str, (part, size): (&str, Option<Amount>)| {
            let mut path = path.clone();
            path.push(part.to_owned());
            self.locals.push(Local { name: name.to_owned(), path, size, entry: None });
        };
        match &walk.iter_var2 {
            Some(second) => {
                push(&walk.iter_var, key);
                push(second, value);
            }
            None => push(&walk.iter_var, if is_list { value } else { key }),
        }
        let once = self.cost(&walk.loop_cond).plus(self.cost(&walk.loop_step));
        let step_entry = self.entry(&walk.loop_step);
        self.locals.truncate(depth + 1);
        sum = sum.plus(self.cost(&walk.result));
        self.locals.truncate(depth);
        let times = self.size_or_unknown(&walk.iter_range);
        match &walk.accu_init.expr {
            Expr::Literal(_) => {
                if let Some(size) = self.size(&walk.accu_init) {
                    self.sizes.insert(node.id, size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(node.id, times);
                if let Some(entry) = step_entry {
                    self.entries.insert(node.id, entry);
                }
            }
            _ => {}
        }
        sum.plus(times.times(once))
    }

    fn ty(&self, node: &IdedExpr) -> Type {
        self.checked.types.get(&node.id).cloned().unwrap_or(Type::Dyn)
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, node: &IdedExpr) -> Path {
        if let Expr::Ident(name) = &node.expr
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&node.id).cloned().unwrap_or_default()
    }

    fn node<'n>(&mut self, node: &'n IdedExpr) -> Node<'n> {
        let mut path = self.path(node);
        if path.first().is_some_and(|first| first == "__result__" || first == "@result") {
            path.clear();
        }
        Node { expr: &node.expr, path, ty: self.ty(node), size: self.size(node) }
    }

    fn size_or_unknown(&mut self, node: &IdedExpr) -> Amount {
        self.size(node).unwrap_or(Amount::UNKNOWN)
    }

    fn size(&mut self, node: &IdedExpr) -> Option<Amount> {
        if let Some(size) = self.sizes.get(&node.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(&node.expr) {
            return Some(Amount::fixed(size));
        }
        if let Some(size) = self.declared(&self.path(node)) {
            self.sizes.insert(node.id, size);
            return Some(size);
        }
        if is_scalar(&self.ty(node)) {
            return Some(Amount::fixed(1));
        }
        match &node.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    fn entry(&self, node: &IdedExpr) -> Option<Entry> {
        if let Some(entry) = self.entries.get(&node.id) {
            return Some(*entry);
        }
        match &node.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        }
    }

    /// What the schema says about the size of what is at a path. Where it begins does not matter:
    /// there is only the object, old or new.
    fn declared(&self, path: &[String]) -> Option<Amount> {
        let (_, rest) = path.split_first()?;
        let mut decl = self.root;
        for part in rest {
            decl = match part.as_str() {
                "@items" | "@values" => decl.element.as_deref()?,
                "@keys" if matches!(decl.ty, Type::Map(_)) => {
                    return Some(Amount { min: 0, max: decl.max_key });
                }
                name => match decl.fields.get(name) {
                    None if decl.is_open => decl.element.as_deref()?,
                    field => field?,
                },
            };
        }
        Some(Amount { min: 0, max: decl.max_elements })
    }
}

fn literal_size(expr: &Expr) -> Option<u64> {
    Some(match expr {
        Expr::Literal(LiteralValue::String(text)) => text.inner().chars().count() as u64,
        Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len() as u64,
        Expr::Literal(_) => 1,
        Expr::List(list) => list.elements.len() as u64,
        Expr::Map(map) => map.entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

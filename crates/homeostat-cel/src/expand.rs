//! Macros that the parser leaves as calls: comprehensions with two variables, `sortBy`, `optMap`, and
//! `cel.bind` where it is known.
//!
//! They become the trees that cel-go makes of them, so that types and costs come out the same.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::operators;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
};

/// The variable that a comprehension gathers its result in.
pub(super) const RESULT: &str = "@result";
/// The variable of a comprehension that goes through nothing.
const UNUSED: &str = "#unused";
/// The list that is being sorted.
const SORTED: &str = "@__sortBy_input__";
/// Puts entries into a map.
pub(super) const INSERT: &str = "cel.@mapInsert";

/// A tree without macros.
pub(super) struct Expanded {
    pub(super) root: IdedExpr,
    /// The call that every node was made for which is not in the text.
    pub(super) origins: BTreeMap<u64, u64>,
    /// What is wrong with a macro, and where.
    pub(super) mistakes: Vec<(u64, String)>,
}

/// Expands every macro below `root`.
pub(super) fn expand(mut root: IdedExpr, binds: bool) -> Expanded {
    let mut next = 0;
    visit(&mut root, &mut |node| next = next.max(node.id));
    let (origins, mistakes) = (BTreeMap::new(), Vec::new());
    let mut expander = Expander { binds, next, origin: 0, origins, mistakes };
    visit(&mut root, &mut |node| expander.node(node));
    Expanded { root, origins: expander.origins, mistakes: expander.mistakes }
}

/// Shows every node to `see`, the innermost first.
pub(super) fn visit(node: &mut IdedExpr, see: &mut impl FnMut(&mut IdedExpr)) {
    match &mut node.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => visit(&mut select.operand, see),
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                visit(target, see);
            }
            call.args.iter_mut().for_each(|argument| visit(argument, see));
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|element| visit(element, see)),
        Expr::Map(MapExpr { entries }) => {
            for entry in entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    visit(&mut entry.key, see);
                    visit(&mut entry.value, see);
                }
            }
        }
        Expr::Struct(object) => {
            for entry in &mut object.entries {
                if let EntryExpr::StructField(field) = &mut entry.expr {
                    visit(&mut field.value, see);
                }
            }
        }
        Expr::Comprehension(walk) => {
            visit(&mut walk.iter_range, see);
            visit(&mut walk.accu_init, see);
            visit(&mut walk.loop_cond, see);
            visit(&mut walk.loop_step, see);
            visit(&mut walk.result, see);
        }
    }
    see(node);
}

/// Whether it is the name of the language, which has functions of its own.
fn is_cel(target: Option<&IdedExpr>) -> bool {
    target.is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "cel"))
}

struct Expander {
    /// Whether `cel.bind` is known.
    binds: bool,
    next: u64,
    /// The call that is being expanded.
    origin: u64,
    origins: BTreeMap<u64, u64>,
    mistakes: Vec<(u64, String)>,
}

impl Expander {
    fn node(&mut self, node: &mut IdedExpr) {
        let Expr::Call(call) = &node.expr else { return };
        let count = call.args.len();
        let is_macro = match call.func_name.as_str() {
            "all" | "exists" | "exists_one" | "existsOne" => count == 3,
            "transformList" | "transformMap" | "transformMapEntry" => matches!(count, 3 | 4),
            "sortBy" | "optMap" | "optFlatMap" => count == 2,
            "bind" => self.binds && count == 3 && is_cel(call.target.as_deref()),
            _ => false,
        };
        if !is_macro || call.target.is_none() {
            return;
        }
        self.origin = node.id;
        let Expr::Call(CallExpr { func_name, target: Some(target), args }) =
            std::mem::take(&mut node.expr)
        else {
            return;
        };
        let made = match func_name.as_str() {
            "sortBy" => self.sort_by(*target, args),
            "bind" => self.bind_written(args),
            "optMap" | "optFlatMap" => self.of_optional(&func_name, *target, args),
            _ => self.two_variables(&func_name, *target, args),
        };
        // What could not be expanded is refused; what stands there instead does not matter.
        node.expr = made.map_or(Expr::Literal(LiteralValue::Null), |made| made.expr);
    }

    fn make(&mut self, expr: Expr) -> IdedExpr {
        self.next += 1;
        self.origins.insert(self.next, self.origin);
        IdedExpr { id: self.next, expr }
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.make(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    }

    fn member(&mut self, target: IdedExpr, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        let target = Some(Box::new(target));
        self.make(Expr::Call(CallExpr { func_name: name.to_owned(), target, args }))
    }

    fn ident(&mut self, name: &str) -> IdedExpr {
        self.make(Expr::Ident(name.to_owned()))
    }

    fn bool(&mut self, value: bool) -> IdedExpr {
        self.make(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn int(&mut self, value: i64) -> IdedExpr {
        self.make(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn list(&mut self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.make(Expr::List(ListExpr::new(elements)))
    }

    fn name_of(&mut self, argument: &IdedExpr, otherwise: &str) -> Option<String> {
        if let Expr::Ident(name) = &argument.expr {
            return Some(name.clone());
        }
        self.mistakes.push((argument.id, otherwise.to_owned()));
        None
    }

    fn two_variables(
        &mut self,
        name: &str,
        target: IdedExpr,
        mut args: Vec<IdedExpr>,
    ) -> Option<IdedExpr> {
        let simple = "argument must be a simple name";
        let first = self.name_of(&args[0], simple)?;
        let second = self.name_of(&args[1], simple)?;
        if first == second {
            self.mistakes.push((args[1].id, format!("duplicate variable name: {first}")));
            return None;
        }
        let body = args.pop()?;
        let filter = if args.len() == 3 { args.pop() } else { None };
        let result = self.ident(RESULT);
        let mut gathered = self.ident(RESULT);
        let (init, condition, mut step) = match name {
            "all" => {
                let going = self.call(operators::NOT_STRICTLY_FALSE, vec![result]);
                let step = self.call(operators::LOGICAL_AND, vec![gathered.clone(), body]);
                (self.bool(true), going, step)
            }
            "exists" => {
                let not = self.call(operators::LOGICAL_NOT, vec![result]);
                let going = self.call(operators::NOT_STRICTLY_FALSE, vec![not]);
                let step = self.call(operators::LOGICAL_OR, vec![gathered.clone(), body]);
                (self.bool(false), going, step)
            }
            "exists_one" | "existsOne" => {
                let one = self.int(1);
                let more = self.call(operators::ADD, vec![result, one]);
                let step = self.call(operators::CONDITIONAL, vec![body, more, gathered.clone()]);
                let one = self.int(1);
                gathered = self.call(operators::EQUALS, vec![gathered, one]);
                (self.int(0), self.bool(true), step)
            }
            "transformList" => {
                let made = self.list(vec![body]);
                let step = self.call(operators::ADD, vec![result, made]);
                (self.list(Vec::new()), self.bool(true), step)
            }
            _ => {
                let mut inserted = vec![result];
                if name == "transformMap" {
                    inserted.push(self.ident(&first));
                }
                inserted.push(body);
                let step = self.call(INSERT, inserted);
                (self.make(Expr::Map(MapExpr::default())), self.bool(true), step)
            }
        };
        if let Some(filter) = filter {
            let unchanged = self.ident(RESULT);
            step = self.call(operators::CONDITIONAL, vec![filter, step, unchanged]);
        }
        let walk = ComprehensionExpr {
            iter_range: target,
            iter_var: first,
            iter_var2: Some(second),
            accu_var: RESULT.to_owned(),
            accu_init: init,
            loop_cond: condition,
            loop_step: step,
            result: gathered,
        };
        Some(self.make(Expr::Comprehension(Box::new(walk))))
    }

    /// `value` under a name, in `body`: a comprehension that goes through nothing.
    fn bind(&mut self, name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
        let walk = ComprehensionExpr {
            iter_range: self.list(Vec::new()),
            iter_var: UNUSED.to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: self.bool(false),
            loop_step: self.ident(name),
            result: body,
        };
        self.make(Expr::Comprehension(Box::new(walk)))
    }

    fn bind_written(&mut self, mut args: Vec<IdedExpr>) -> Option<IdedExpr> {
        let (body, value) = (args.pop()?, args.pop()?);
        let words = "cel.bind() variable names must be simple identifiers";
        let name = self.name_of(&args[0], words)?;
        Some(self.bind(&name, value, body))
    }

    fn sort_by(&mut self, target: IdedExpr, mut args: Vec<IdedExpr>) -> Option<IdedExpr> {
        let key = args.pop()?;
        let item = self.name_of(&args[0], "argument is not an identifier")?;
        let made = self.list(vec![key]);
        let gathered = self.ident(RESULT);
        let step = self.call(operators::ADD, vec![gathered, made]);
        let keys = ComprehensionExpr {
            iter_range: self.ident(SORTED),
            iter_var: item,
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: self.list(Vec::new()),
            loop_cond: self.bool(true),
            loop_step: step,
            result: self.ident(RESULT),
        };
        let keys = self.make(Expr::Comprehension(Box::new(keys)));
        let sorted = self.ident(SORTED);
        let sorted = self.member(sorted, "@sortByAssociatedKeys", vec![keys]);
        Some(self.bind(SORTED, target, sorted))
    }

    fn of_optional(
        &mut self,
        name: &str,
        target: IdedExpr,
        mut args: Vec<IdedExpr>,
    ) -> Option<IdedExpr> {
        let body = args.pop()?;
        let words = format!("{name}() variable name must be a simple identifier");
        let variable = self.name_of(&args[0], &words)?;
        let there = self.member(target.clone(), "hasValue", Vec::new());
        let value = self.member(target, "value", Vec::new());
        let mut made = self.bind(&variable, value, body);
        if name == "optMap" {
            made = self.call("optional.of", vec![made]);
        }
        let nothing = self.call("optional.none", Vec::new());
        Some(self.call(operators::CONDITIONAL, vec![there, made, nothing]))
    }
}

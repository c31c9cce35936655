//! `existsOne` with one variable: a macro of the parser that Kubernetes does not have, where only
//! `exists_one` is one. It becomes the call of a function that nobody declared.

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};

use super::expand::visit;

const NAME: &str = "existsOne";

/// Undoes the macro below `root`, wherever `is_named` says that a node was called by this name.
pub(super) fn undo(root: &mut IdedExpr, is_named: impl Fn(u64, &str) -> bool) {
    visit(root, &mut |node| {
        if !matches!(node.expr, Expr::Comprehension(_)) || !is_named(node.id, NAME) {
            return;
        }
        let Expr::Comprehension(walk) = std::mem::take(&mut node.expr) else { return };
        let Expr::Call(CallExpr { args, .. }) = walk.loop_step.expr else { return };
        let Some(mut body) = args.into_iter().next() else { return };
        // The name of the variable is read right before the body.
        let mut first = body.id;
        visit(&mut body, &mut |node| first = first.min(node.id));
        let variable = IdedExpr { id: first.saturating_sub(1), expr: Expr::Ident(walk.iter_var) };
        node.expr = Expr::Call(CallExpr {
            func_name: NAME.to_owned(),
            target: Some(Box::new(walk.iter_range)),
            args: vec![variable, body],
        });
    });
}

#[cfg(test)]
mod tests {
    use crate::{Program, Type};

    #[test]
    fn with_one_variable_it_is_no_macro() {
        let variables = [("l", Type::list(Type::String))];
        let refused = |text: &str| Program::compile(text, &variables).err();
        assert_eq!(
            refused("l.existsOne(x, x == yy)").unwrap(),
            "ERROR: <input>:1:12: undeclared reference to 'existsOne' (in container '')\n \
             | l.existsOne(x, x == yy)\n | ...........^\n\
             ERROR: <input>:1:13: undeclared reference to 'x' (in container '')\n \
             | l.existsOne(x, x == yy)\n | ............^\n\
             ERROR: <input>:1:16: undeclared reference to 'x' (in container '')\n \
             | l.existsOne(x, x == yy)\n | ...............^\n\
             ERROR: <input>:1:21: undeclared reference to 'yy' (in container '')\n \
             | l.existsOne(x, x == yy)\n | ....................^"
        );
        assert_eq!(refused("l.exists_one(x, x == 'existsOne(')"), None);
        assert_eq!(refused("l.existsOne(i, x, x == 'a')"), None);
    }
}

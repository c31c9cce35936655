//! Expressions beside cel-go: `data/costs.json` is what Kubernetes' own environment printed.

use kube_cel::cel::Value;
use serde_json::{Value as Json, json};

use super::program::{Fault, Program, Scope};
use super::{Decl, Lists, Type, typed, untyped, values};

struct Given {
    own: Value,
    any: Value,
}

impl Scope for Given {
    fn variable(&self, name: &str) -> Option<Value> {
        match name {
            "self" => Some(self.own.clone()),
            "any" => Some(self.any.clone()),
            _ => None,
        }
    }
}

/// A value as the table shows it.
fn shown(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => json!(flag),
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::String(text) => json!(text.as_str()),
        Value::Bytes(bytes) => {
            use base64::Engine as _;
            json!(base64::engine::general_purpose::STANDARD.encode(bytes.as_slice()))
        }
        Value::List(items) => items.iter().map(shown).collect(),
        Value::Map(map) => {
            let entries = values::in_order(map).into_iter();
            Json::Object(entries.map(|(key, value)| (key.to_string(), shown(&value))).collect())
        }
        Value::Duration(_) | Value::Timestamp(_) => json!("a moment"),
        other => match values::optional(other) {
            Some(Some(inner)) => json!({"some": shown(inner)}),
            Some(None) => json!({}),
            None => json!("a thing"),
        },
    }
}

/// What the table says, as far as [`shown`] shows it.
fn comparable(told: &Json, value: &Value) -> Json {
    match value {
        Value::Duration(_) | Value::Timestamp(_) => json!("a moment"),
        Value::Opaque(_) if values::optional(value).is_none() => json!("a thing"),
        // JSON has one kind of numbers.
        Value::Float(_) => json!(told.as_f64()),
        _ => told.clone(),
    }
}

#[test]
fn expressions_give_and_cost_what_they_do_in_kubernetes() {
    let table: Json = serde_json::from_str(include_str!("../data/costs.json")).unwrap();
    let decl = Decl::of(&table["schema"], false, "selfType").unwrap();
    let variables = [("self", decl.ty.clone()), ("any", Type::Dyn)];
    let own = typed(&table["object"], &decl, &mut Lists::default());
    let given = Given { own, any: untyped(&table["object"]) };
    let mut wrong = Vec::new();
    for row in table["results"].as_array().unwrap() {
        let expression = row["expression"].as_str().unwrap();
        let error = row["error"].as_str().unwrap_or_default();
        let told = (row["cost"].as_u64().unwrap(), &row["gives"], error);
        match Program::compile(expression, &variables) {
            Err(why) => {
                if format!("refused: {why}") != error {
                    wrong.push(format!("{expression}: refused: {why}, not {told:?}"));
                }
            }
            Ok(program) => {
                let run = program.run(&given);
                let same = match &run.result {
                    Ok(value) => {
                        error.is_empty() && shown(value) == comparable(&row["gives"], value)
                    }
                    Err(why) => why.to_string() == error,
                };
                if !same || run.cost != told.0 {
                    wrong
                        .push(format!("{expression}: {} {:?}, not {told:?}", run.cost, run.result));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// It would take hours.
#[test]
fn what_is_sure_to_cost_too_much_is_not_carried_out() {
    let given = Given { own: Value::Null, any: Value::Null };
    let program = Program::compile("lists.range(900000).distinct().size() > 0", &[]).unwrap();
    let run = program.run(&given);
    assert_eq!(run.result, Err(Fault::Exceeded));
    assert!(run.cost > 900_000 * 900_000, "{}", run.cost);
}

#[test]
fn what_follows_an_expression_is_told_in_the_words_of_cel_go() {
    for (text, words) in [
        ("X y/", "mismatched input 'y' expecting <EOF>"),
        ("X y", "extraneous input 'y' expecting <EOF>"),
        ("'x' 'y' z", "mismatched input ''y'' expecting <EOF>"),
        ("a in b c d", "mismatched input 'c' expecting <EOF>"),
        ("a ) b", "mismatched input ')' expecting <EOF>"),
        ("(a b c)", "mismatched input 'b' expecting ')'"),
        ("[a b c]", "mismatched input 'b' expecting {']', ','}"),
        ("f(a b c)", "mismatched input 'b' expecting ')'"),
        ("{1: 2 3 4}", "mismatched input '3' expecting {'}', ','}"),
        ("a[b c d]", "mismatched input 'c' expecting ']'"),
        ("[a b]", "extraneous input 'b' expecting {']', ','}"),
        ("a ? b c", "missing ':' at 'c'"),
    ] {
        let told = crate::Source::parse(text).unwrap_err();
        let first = told.lines().next().unwrap_or_default();
        assert!(first.ends_with(&format!("Syntax error: {words}")), "{text}: {first}");
    }
}

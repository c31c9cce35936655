//! Expressions as text and as a tree, with the place of every node: what mistakes point at.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use kube_cel::cel::common::ast::{IdedExpr, SourceInfo};
use kube_cel::cel::parser::Parser;

use super::exists_one;
use super::expand::{Expanded, expand};

/// An expression that was read.
#[derive(Debug)]
pub struct Source {
    /// The tree.
    pub root: IdedExpr,
    text: String,
    /// Where each node is. The parser tells it only along with an error.
    places: Option<Arc<SourceInfo>>,
    /// The nodes that stand for macros, and where those were called.
    origins: BTreeMap<u64, u64>,
}

/// One mistake, at an offset in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub offset: usize,
    pub words: String,
}

impl Source {
    /// Reads an expression.
    ///
    /// # Errors
    /// Every mistake of syntax, in the form of cel-go.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, false)
    }

    /// The same, with `cel.bind`, which not everybody knows.
    ///
    /// # Errors
    /// Every mistake of syntax, in the form of cel-go.
    pub fn parse_binding(text: &str) -> Result<Self, String> {
        Self::read(text, true)
    }

    fn read(text: &str, binds: bool) -> Result<Self, String> {
        let parse = |text: &str| Parser::new().enable_optional_syntax(true).parse(text);
        match parse(text) {
            Ok(mut root) => {
                // The tree of an expression does not depend on the bracket that follows it, which
                // no expression can end with.
                let broken = parse(&format!("{text}\n]")).err();
                let first = broken.and_then(|errors| errors.errors.into_iter().next());
                let places = first.and_then(|error| error.source_info);
                exists_one::undo(&mut root, |id, name| {
                    let bracket = places.as_ref().and_then(|places| places.offset_for(id));
                    let before = bracket.and_then(|(start, _)| usize::try_from(start).ok());
                    let before: String = text.chars().take(before.unwrap_or_default()).collect();
                    before.trim_end().ends_with(name)
                });
                let Expanded { root, origins, mistakes } = expand(root, binds);
                let source = Self { root, text: text.to_owned(), places, origins };
                if mistakes.is_empty() {
                    return Ok(source);
                }
                let placed = mistakes
                    .into_iter()
                    .map(|(id, words)| Mistake { offset: source.offset(id), words });
                Err(source.report(placed.collect()))
            }
            Err(errors) => {
                let mistakes = errors.errors.iter().map(|error| {
                    let line = usize::try_from(error.pos.0).unwrap_or(1).max(1);
                    let column = usize::try_from(error.pos.1).unwrap_or(1).max(1);
                    shown(text, line, column - 1, &after_a_whole(&error.msg))
                });
                Err(mistakes.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Where a node begins, or where its operator is.
    pub fn offset(&self, id: u64) -> usize {
        let id = self.origins.get(&id).copied().unwrap_or(id);
        let found = self.places.as_ref().and_then(|places| places.offset_for(id));
        found.and_then(|(start, _)| usize::try_from(start).ok()).unwrap_or_default()
    }

    /// The mistakes in the order of the text, in the form of cel-go.
    pub fn report(&self, mut mistakes: Vec<Mistake>) -> String {
        mistakes.sort_by_key(|mistake| mistake.offset);
        let lines = mistakes.iter().map(|mistake| {
            let before: String = self.text.chars().take(mistake.offset).collect();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or("").chars().count();
            shown(&self.text, line, column, &mistake.words)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// What may go on with an expression.
const OPERATORS: &[&str] = &[
    "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "'.'", "'-'",
    "'?'", "'+'", "'*'", "'/'", "'%'",
];

/// Where a whole expression was read, cel-go waits for what ends it and for nothing else.
fn after_a_whole(words: &str) -> Cow<'_, str> {
    let told = words.strip_suffix('}').and_then(|words| words.split_once(" expecting {"));
    let Some((found, expected)) = told else { return words.into() };
    let expected: Vec<&str> = expected.split(", ").collect();
    if !OPERATORS.iter().all(|operator| expected.contains(operator)) {
        return words.into();
    }
    let ends: Vec<&str> = expected.into_iter().filter(|token| !OPERATORS.contains(token)).collect();
    match ends.as_slice() {
        [end] => format!("{found} expecting {end}").into(),
        // Arguments end with this, whatever else may come before.
        ends if ends.contains(&"')'") => format!("{found} expecting ')'").into(),
        ends => format!("{found} expecting {{{}}}", ends.join(", ")).into(),
    }
}

/// One mistake with the line it is on; lines count from one, columns from nought.
fn shown(text: &str, line: usize, column: usize, words: &str) -> String {
    if text.is_empty() {
        return format!("ERROR: <input>:{line}:{column}: {words}");
    }
    let mut shown = format!("ERROR: <input>:{line}:{}: {words}", column + 1);
    if let Some(snippet) = text.split('\n').nth(line - 1) {
        let dots = ".".repeat(column);
        let _ = write!(shown, "\n | {snippet}\n | {dots}^");
    }
    shown
}

//! Reading label selectors as people write them: `app=web,tier in (a,b),!old`.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};

use crate::error::{Error, Result};

/// Parses a label selector; the empty one selects everything.
///
/// # Errors
/// A terminal [`Error`] that names the requirement that cannot be read.
pub fn parse(text: &str) -> Result<Selector> {
    split_outside_parentheses(text)
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(requirement)
        .collect()
}

/// Whether whatever `narrow` selects is selected by `wide` too, as far as their words tell: every
/// requirement of `wide` is one of `narrow`.
pub(crate) fn is_within(narrow: &Selector, wide: &str) -> bool {
    let requirements = |selector: Selector| -> BTreeSet<String> {
        selector.into_iter().map(|requirement| requirement.to_string()).collect()
    };
    let narrow = requirements(narrow.clone());
    parse(wide).is_ok_and(|wide| requirements(wide).is_subset(&narrow))
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |symbol| {
        match symbol {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        symbol == ',' && depth == 0
    })
}

fn requirement(part: &str) -> Result<Expression> {
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(label_key(key, part)?));
    }
    if let Some((key, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let words: Vec<&str> = key.split_whitespace().collect();
        return match words[..] {
            [key, "in"] => Ok(Expression::In(label_key(key, part)?, values)),
            [key, "notin"] => Ok(Expression::NotIn(label_key(key, part)?, values)),
            _ => Err(unreadable(part)),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(Expression::NotEqual(label_key(key, part)?, value.trim().to_owned()));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Expression::Equal(label_key(key, part)?, value.trim().to_owned()));
    }
    Ok(Expression::Exists(label_key(part, part)?))
}

fn label_key(key: &str, part: &str) -> Result<String> {
    let key = key.trim();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if key.is_empty() || !key.bytes().all(fits) {
        return Err(unreadable(part));
    }
    Ok(key.to_owned())
}

fn unreadable(part: &str) -> Error {
    Error::terminal(format!(
        "`{part}` is not a label requirement such as `app=web` or `app in (a,b)`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_requirement_is_understood() {
        for text in ["a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "x.io/a=b,c,!d", ""] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse(" a == b , c in ( d, e )").unwrap().to_string(), "a=b,c in (d,e)");
    }

    #[test]
    fn a_selector_is_within_another_when_it_asks_for_at_least_as_much() {
        let within = |narrow: &str, wide: &str| is_within(&parse(narrow).unwrap(), wide);
        assert!(within("a=b,c in (d,e)", " c in (d, e) ") && within("a=b", "a == b"));
        assert!(within("a=b", "") && within("", ""));
        assert!(!within("", "a=b") && !within("c in (d)", "a=b,c in (d)"));
        assert!(!within("a=b", "a in b"), "nonsense selects nothing");
    }

    #[test]
    fn nonsense_is_refused_with_the_words_in_question() {
        for text in ["a in b", "=b", "a near (b)", "a b"] {
            assert!(parse(text).unwrap_err().to_string().contains(text), "{text}");
        }
    }
}

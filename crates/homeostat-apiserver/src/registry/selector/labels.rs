//! Reads label selectors: a small grammar of keys, operators and sets, refused in the words that
//! clients know from kube-apiserver.

use super::{Requirement, Test};
use crate::field::{FieldError, Reason};
use crate::validate::{label_value_problems, qualified_name_problems};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Open,
    Close,
    Comma,
    Not,
    /// `=`, `==`, `!=`, `>`, `<`, and in the place of an operator `in` and `notin`.
    Operator(&'a str),
    Word(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Operator(text) | Self::Word(text) => text,
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    const SPECIAL: &[char] = &['(', ')', ',', '!', '=', '>', '<'];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let operator = ["!=", "==", "=", ">", "<"].into_iter().find(|sign| rest.starts_with(sign));
        let (token, length) = match (operator, rest.as_bytes()[0]) {
            (Some(sign), _) => (Token::Operator(sign), sign.len()),
            (None, b'(') => (Token::Open, 1),
            (None, b')') => (Token::Close, 1),
            (None, b',') => (Token::Comma, 1),
            (None, b'!') => (Token::Not, 1),
            _ => {
                let ends = |letter: char| letter.is_whitespace() || SPECIAL.contains(&letter);
                let length = rest.find(ends).unwrap_or(rest.len());
                match &rest[..length] {
                    word @ ("in" | "notin") => (Token::Operator(word), length),
                    word => (Token::Word(word), length),
                }
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The requirements of a selector, or why it cannot be read.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut reader = Reader { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match reader.peek() {
            Token::Word(_) | Token::Not | Token::Operator("in" | "notin") => {
                let requirement = reader.requirement();
                let words = |why: String| format!("unable to parse requirement: {why}");
                requirements.push(requirement.map_err(words)?);
                match reader.next() {
                    Token::End => return Ok(requirements),
                    Token::Comma => match reader.peek() {
                        Token::Word(_) | Token::Not | Token::Operator("in" | "notin") => {}
                        other => return Err(found(other, "identifier after ','")),
                    },
                    other => return Err(found(other, "',' or 'end of string'")),
                }
            }
            Token::End => return Ok(requirements),
            other => return Err(found(other, "!, identifier, or 'end of string'")),
        }
    }
}

fn found(token: Token<'_>, expected: &str) -> String {
    format!("found '{}', expected: {expected}", token.text())
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// A word; `in` and `notin` are words wherever no operator can stand.
    fn word(&mut self) -> Result<&'a str, String> {
        match self.next() {
            Token::Word(word) | Token::Operator(word @ ("in" | "notin")) => Ok(word),
            other => Err(found(other, "identifier")),
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Token::Not;
        if absent {
            self.next();
        }
        let key = self.word()?.to_owned();
        check_key(&key)?;
        if matches!(self.peek(), Token::End | Token::Comma) {
            let test = if absent { Test::Absent } else { Test::Exists };
            return Ok(Requirement { key, test });
        }
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        let operator = match self.next() {
            Token::Operator(operator) => operator,
            other => return Err(found(other, "in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            "in" | "notin" => self.values()?,
            _ => vec![self.value()?],
        };
        let shown =
            if matches!(operator, "in" | "notin" | "=" | "==" | "!=") { &values[..] } else { &[] };
        check_values(&key, shown)?;
        let bound = |values: &[String]| {
            values[0].parse().map_err(|_| {
                refused(
                    "values[0]",
                    &values[0],
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                )
            })
        };
        let test = match operator {
            "in" | "=" | "==" => Test::In(values),
            ">" => Test::Greater(bound(&values)?),
            "<" => Test::Less(bound(&values)?),
            _ => Test::NotIn(values),
        };
        Ok(Requirement { key, test })
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        self.word().map(str::to_owned)
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Open => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        match self.peek() {
            Token::Close => {
                self.next();
                return Ok(Vec::new());
            }
            Token::Word(_) | Token::Comma | Token::Operator("in" | "notin") => {}
            other => return Err(found(other, "',', ')' or identifier")),
        }
        let mut values = vec![String::new()];
        loop {
            match self.next() {
                Token::Word(word) | Token::Operator(word @ ("in" | "notin")) => {
                    if let Some(last) = values.last_mut() {
                        word.clone_into(last);
                    }
                    if !matches!(self.peek(), Token::Comma | Token::Close) {
                        return Err(found(self.peek(), "',' or ')'"));
                    }
                }
                Token::Comma => values.push(String::new()),
                Token::Close => break,
                other => return Err(found(other, "',', or identifier")),
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

fn refused(path: &str, value: &str, detail: &str) -> String {
    FieldError::new(path, Reason::Invalid, value.into(), detail).to_string()
}

fn check_key(key: &str) -> Result<(), String> {
    match &qualified_name_problems(key)[..] {
        [] => Ok(()),
        problems => Err(refused("key", key, &problems.join("; "))),
    }
}

fn check_values(key: &str, values: &[String]) -> Result<(), String> {
    for (index, value) in values.iter().enumerate() {
        let problems = label_value_problems(value);
        if !problems.is_empty() {
            return Err(refused(&format!("values[{index}][{key}]"), value, &problems.join("; ")));
        }
    }
    Ok(())
}

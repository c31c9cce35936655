//! Regular expressions, as Go's library reads them.

/// What is wrong with the pattern.
pub(super) fn of(pattern: &str) -> Option<String> {
    parse(pattern).err().map(|why| format!("error parsing regexp: {why}"))
}

fn said(why: &str, what: &str) -> Result<(), String> {
    Err(format!("{why}: `{what}`"))
}

/// What stands before a place in a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Nothing that could be repeated.
    Nothing,
    Something,
    /// A repetition, which began there.
    Repetition(usize),
}

fn parse(pattern: &str) -> Result<(), String> {
    let (mut at, mut depth, mut before) = (0, 0_usize, Before::Nothing);
    while let Some(character) = pattern[at..].chars().next() {
        let rest = &pattern[at..];
        let mut length = character.len_utf8();
        before = match character {
            '(' => {
                depth += 1;
                length = group(rest)?;
                Before::Nothing
            }
            ')' if depth == 0 => return said("unexpected )", rest),
            ')' => {
                depth -= 1;
                Before::Something
            }
            '|' => Before::Nothing,
            '[' => {
                length = class(rest)?;
                Before::Something
            }
            '*' | '+' | '?' | '{' => match repetition(rest)? {
                None => Before::Something,
                Some(whole) => {
                    length = whole;
                    match before {
                        Before::Nothing => {
                            let why = "missing argument to repetition operator";
                            return said(why, &rest[..length]);
                        }
                        Before::Repetition(begin) => {
                            let why = "invalid nested repetition operator";
                            return said(why, &pattern[begin..at + length]);
                        }
                        Before::Something => Before::Repetition(at),
                    }
                }
            },
            '\\' => {
                length = escape(rest)?;
                Before::Something
            }
            _ => Before::Something,
        };
        at += length;
    }
    if depth > 0 { said("missing closing )", pattern) } else { Ok(()) }
}

/// The length of what opens a group.
fn group(rest: &str) -> Result<usize, String> {
    let Some(after) = rest.strip_prefix("(?") else { return Ok(1) };
    let name = after.strip_prefix("P<").or_else(|| after.strip_prefix('<'));
    if let Some(name) = name {
        let begin = rest.len() - name.len();
        let end = name.find('>');
        let good =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        return match end {
            Some(end) if good(&name[..end]) => Ok(begin + end + 1),
            Some(end) => said("invalid named capture", &rest[..=begin + end]).map(|()| 0),
            None => said("invalid named capture", rest).map(|()| 0),
        };
    }
    let flags = after.find(|c: char| !"imsU-".contains(c)).unwrap_or(after.len());
    match after[flags..].chars().next() {
        Some(':' | ')') => Ok(2 + flags + usize::from(after[flags..].starts_with(':'))),
        None => said("missing closing )", rest).map(|()| 0),
        Some(other) => {
            let shown = &rest[..2 + flags + other.len_utf8()];
            said("invalid or unsupported Perl syntax", shown).map(|()| 0)
        }
    }
}

/// The length of a class of characters.
fn class(rest: &str) -> Result<usize, String> {
    let unclosed = || format!("missing closing ]: `{rest}`");
    let mut at = if rest.starts_with("[^") { 2 } else { 1 };
    let begin = at;
    loop {
        if rest[at..].starts_with(']') && at > begin {
            return Ok(at + 1);
        }
        if let Some(named) = rest[at..].strip_prefix("[:").and_then(|named| named.find(":]")) {
            at += named + 4;
            continue;
        }
        let low_at = at;
        let low = member(rest, &mut at).ok_or_else(unclosed)??;
        let range = rest[at..].strip_prefix('-').filter(|after| !after.starts_with(']'));
        if range.is_some() {
            at += 1;
            let high = member(rest, &mut at).ok_or_else(unclosed)??;
            if high < low {
                said("invalid character class range", &rest[low_at..at])?;
            }
        }
    }
}

/// One character of a class; `None` at the end of the pattern.
fn member(rest: &str, at: &mut usize) -> Option<Result<char, String>> {
    let character = rest[*at..].chars().next()?;
    if character != '\\' {
        *at += character.len_utf8();
        return Some(Ok(character));
    }
    match escape(&rest[*at..]) {
        Err(why) => Some(Err(why)),
        Ok(length) => {
            let escaped = rest[*at + 1..].chars().next()?;
            *at += length;
            Some(Ok(escaped))
        }
    }
}

/// The length of a repetition with its mark for few, or nothing if it is none after all.
fn repetition(rest: &str) -> Result<Option<usize>, String> {
    let mut length = 1;
    if let Some(inner) = rest.strip_prefix('{') {
        let Some(end) = inner.find('}') else { return Ok(None) };
        let (least, most) = inner[..end].split_once(',').unwrap_or((&inner[..end], ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if least.is_empty() || !digits(least) || !digits(most) {
            return Ok(None);
        }
        length = end + 2;
        let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        let too_many = number(least) > 1000 || (!most.is_empty() && number(most) > 1000);
        if too_many || (!most.is_empty() && number(most) < number(least)) {
            said("invalid repeat count", &rest[..length])?;
        }
    }
    Ok(Some(length + usize::from(rest[length..].starts_with('?'))))
}

/// The length of an escape.
fn escape(rest: &str) -> Result<usize, String> {
    let Some(character) = rest[1..].chars().next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let length = 1 + character.len_utf8();
    let known = "aftnrvdDsSwWbBAzQEpPxC0".contains(character) || character.is_ascii_punctuation();
    if known {
        Ok(length)
    } else {
        said("invalid escape sequence", &rest[..length]).map(|()| length)
    }
}

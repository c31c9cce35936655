//! What Go's reader says of bytes that are no JSON: the first that cannot stand where it does.

/// What may come next.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    Value,
    /// A value, or the end of an empty list.
    ValueOrEnd,
    /// A name, or the end of an empty object.
    NameOrEnd,
    Name,
    Colon,
    AfterValue,
}

/// Why the bytes are not one JSON value; nothing if they are.
pub(crate) fn complaint(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader { bytes, at: 0 };
    reader.document().err().map(|problem| match problem {
        Problem::End => "unexpected end of JSON input".to_owned(),
        Problem::Byte(byte, place) => format!("invalid character {} {place}", quoted(byte)),
    })
}

enum Problem {
    End,
    Byte(u8, String),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<(), Problem> {
        // Whether each list or object around is an object.
        let mut around: Vec<bool> = Vec::new();
        let mut expected = Expected::Value;
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.at += 1;
            }
            let Some(byte) = self.peek() else {
                let is_whole = expected == Expected::AfterValue && around.is_empty();
                return if is_whole { Ok(()) } else { Err(Problem::End) };
            };
            self.at += 1;
            expected = match (expected, byte) {
                (Expected::ValueOrEnd, b']') | (Expected::NameOrEnd, b'}') => {
                    around.pop();
                    Expected::AfterValue
                }
                (Expected::Value | Expected::ValueOrEnd, b'{') => {
                    around.push(true);
                    Expected::NameOrEnd
                }
                (Expected::Value | Expected::ValueOrEnd, b'[') => {
                    around.push(false);
                    Expected::ValueOrEnd
                }
                (Expected::Value | Expected::ValueOrEnd, byte) => {
                    self.scalar(byte)?;
                    Expected::AfterValue
                }
                (Expected::Name | Expected::NameOrEnd, b'"') => {
                    self.string()?;
                    Expected::Colon
                }
                (Expected::Name | Expected::NameOrEnd, byte) => {
                    return refused(byte, "looking for beginning of object key string");
                }
                (Expected::Colon, b':') => Expected::Value,
                (Expected::Colon, byte) => return refused(byte, "after object key"),
                (Expected::AfterValue, byte) => match (around.last(), byte) {
                    (None, byte) => return refused(byte, "after top-level value"),
                    (Some(true), b',') => Expected::Name,
                    (Some(false), b',') => Expected::Value,
                    (Some(true), b'}') | (Some(false), b']') => {
                        around.pop();
                        Expected::AfterValue
                    }
                    (Some(true), byte) => return refused(byte, "after object key:value pair"),
                    (Some(false), byte) => return refused(byte, "after array element"),
                },
            };
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Problem> {
        let byte = self.peek().ok_or(Problem::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn scalar(&mut self, first: u8) -> Result<(), Problem> {
        match first {
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' => match self.next()? {
                digit @ b'0'..=b'9' => self.number(digit),
                other => refused(other, "in numeric literal"),
            },
            digit @ b'0'..=b'9' => self.number(digit),
            other => refused(other, "looking for beginning of value"),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Problem> {
        for wanted in word.chars().skip(1) {
            let byte = self.next()?;
            if char::from(byte) != wanted {
                return refused(byte, &format!("in literal {word} (expecting '{wanted}')"));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), Problem> {
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn digit(&mut self, place: &str) -> Result<(), Problem> {
        match self.next()? {
            b'0'..=b'9' => Ok(()),
            other => refused(other, place),
        }
    }

    fn string(&mut self) -> Result<(), Problem> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return refused(byte, "in \\u hexadecimal character escape");
                            }
                        }
                    }
                    other => return refused(other, "in string escape code"),
                },
                control @ ..0x20 => return refused(control, "in string literal"),
                _ => {}
            }
        }
    }
}

fn refused<T>(byte: u8, place: &str) -> Result<T, Problem> {
    Err(Problem::Byte(byte, place.to_owned()))
}

/// A byte between quotes.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        7 => r"'\a'".to_owned(),
        8 => r"'\b'".to_owned(),
        11 => r"'\v'".to_owned(),
        12 => r"'\f'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{:04x}'", u32::from(byte)),
        other => format!("'{}'", char::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn the_first_byte_that_cannot_stand_there_is_named_with_its_place() {
        for (bytes, words) in [
            ("{\"a\": x}", "invalid character 'x' looking for beginning of value"),
            ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\": 1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} {}", "invalid character '{' after top-level value"),
            ("nil", "invalid character 'i' in literal null (expecting 'u')"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("[1.]", "invalid character ']' after decimal point in numeric literal"),
            ("{\"a\": ", "unexpected end of JSON input"),
        ] {
            assert_eq!(complaint(bytes.as_bytes()).as_deref(), Some(words), "{bytes}");
        }
        assert_eq!(complaint(b" {\"a\": [1e3, -0.5, \"\\u00e4\", true, null]} "), None);
    }
}

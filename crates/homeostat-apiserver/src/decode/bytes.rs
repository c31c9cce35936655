//! Bytes in base64, as Go's library reads them: line breaks are passed over, bits that are left over
//! are ignored, and a mistake is told with its place.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Brings a text into the form in which it is written again.
pub(super) fn read(text: &mut String) -> Result<(), String> {
    if BASE64_STANDARD.decode(text.as_bytes()).is_ok() {
        return Ok(());
    }
    if let Some(at) = mistake(text.as_bytes()) {
        return Err(format!("illegal base64 data at input byte {at}"));
    }
    let together: String = text.chars().filter(|letter| !is_break(*letter)).collect();
    let bytes = LENIENT.decode(together).map_err(|error| error.to_string())?;
    *text = BASE64_STANDARD.encode(bytes);
    Ok(())
}

fn is_break(letter: char) -> bool {
    matches!(letter, '\r' | '\n')
}

/// Where Go finds the first mistake, if there is one: it reads four letters at a time, and what ends
/// too early is told where its four letters begin, counted back without line breaks.
fn mistake(text: &[u8]) -> Option<usize> {
    let mut letters = 0;
    let mut rest = text.iter().copied().enumerate().filter(|(_, byte)| !is_break((*byte).into()));
    while let Some((at, byte)) = rest.next() {
        match (byte, letters % 4) {
            (b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/', _) => letters += 1,
            (b'=', 2) => {
                return match rest.next() {
                    None => Some(text.len()),
                    Some((_, b'=')) => rest.next().map(|(at, _)| at),
                    Some((at, _)) => Some(at - 1),
                };
            }
            (b'=', 3) => return rest.next().map(|(at, _)| at),
            _ => return Some(at),
        }
    }
    (letters % 4 != 0).then(|| text.len() - letters % 4)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn bytes_are_read_and_refused_as_go_does() {
        for (given, kept) in [("", ""), ("aGk=", "aGk="), ("aG\nk=\r\n", "aGk="), ("aGl=", "aGk=")]
        {
            let mut text = given.to_owned();
            assert_eq!(read(&mut text), Ok(()), "{given:?}");
            assert_eq!(text, kept);
        }
        for (given, at) in
            [("v", 0), ("aGkxv", 4), ("aG", 0), ("aG=", 3), ("a=", 1), ("a b", 1), ("aGk=x", 4)]
        {
            let why = format!("illegal base64 data at input byte {at}");
            assert_eq!(read(&mut given.to_owned()), Err(why), "{given:?}");
        }
    }
}

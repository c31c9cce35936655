//! Names made up for objects that only say how theirs begins.

use homeostat_env::Env;

/// No vowels and nothing that looks like another letter: no words by accident.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
const LONGEST_BASE: usize = 63 - SUFFIX;

/// `base` (shortened if need be) and five random characters.
pub(crate) fn generate(env: &Env, base: &str) -> String {
    let mut end = base.len().min(LONGEST_BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    for _ in 0..SUFFIX {
        let at = usize::try_from(env.random_below(ALPHABET.len() as u64)).unwrap_or(0);
        name.push(char::from(ALPHABET[at]));
    }
    name
}

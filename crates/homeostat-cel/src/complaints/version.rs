//! Versions as semver.org has them.

/// What is wrong with the text.
pub(super) fn of(text: &str) -> Option<String> {
    parse(text).err()
}

fn parse(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts[..] else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    number("Major", major)?;
    number("Minor", minor)?;
    let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, b)| (rest, Some(b)));
    let (patch, before) = rest.split_once('-').map_or((rest, None), |(p, b)| (p, Some(b)));
    number("Patch", patch)?;
    for part in before.into_iter().flat_map(|before| before.split('.')) {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        if part.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if digits && part.len() > 1 && part.starts_with('0') {
            let why = "Numeric PreRelease version must not contain leading zeroes";
            return Err(format!("{why} {part:?}"));
        }
        if !is_word(part) {
            return Err(format!("Invalid character(s) found in prerelease {part:?}"));
        }
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_word(part) {
            return Err(format!("Invalid character(s) found in build meta data {part:?}"));
        }
    }
    Ok(())
}

fn is_word(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn number(name: &str, digits: &str) -> Result<(), String> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let name = name.to_lowercase();
        return Err(format!("Invalid character(s) found in {name} number {digits:?}"));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {digits:?}"));
    }
    match digits.parse::<u64>() {
        Ok(_) => Ok(()),
        Err(_) => {
            let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            Err(format!("strconv.ParseUint: parsing {digits:?}: {why}"))
        }
    }
}

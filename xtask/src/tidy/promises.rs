//! The tables of `semantics.rs`, which say for every promise which test keeps it: a test that is renamed
//! or removed must not stay in them. It looks for names, and never judges what a test does.

use std::path::Path;

/// Where the tables are.
pub(super) const TABLES: &str = "crates/homeostat/tests/runtime/semantics.rs";
/// Where the tests are that they name.
pub(super) const CRATE: &str = "crates/homeostat/";

/// The names in the tables that no test and no module has; `files` are those of the crate, by path.
pub(super) fn broken(files: &[(String, String)]) -> Vec<String> {
    let Some((_, tables)) = files.iter().find(|(path, _)| path == TABLES) else {
        return Vec::new();
    };
    let mut is_of_tests = false;
    let mut missing = Vec::new();
    for line in tables.lines() {
        let Some(row) = line.strip_prefix("//! | ").and_then(|row| row.strip_suffix(" |")) else {
            // Between its head and its rows a table has a line of dashes.
            is_of_tests &= line.starts_with("//! |-");
            continue;
        };
        let last = row.rsplit(" | ").next().unwrap_or_default();
        if last == "test" {
            is_of_tests = true;
        } else if is_of_tests {
            let unknown = names(last).filter(|name| !exists(name, files));
            missing.extend(unknown.map(|name| format!("there is no test `{name}`")));
        }
    }
    missing
}

/// What is between backticks and looks like the name of a test.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    let is_name = |text: &&str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:*".contains(c);
        text.chars().all(fits)
    };
    cell.split('`').skip(1).step_by(2).filter(is_name)
}

/// Whether there is such a test: `module::name`, `module::begins_*`, a module alone, or, without a
/// module, a test beside the tables.
fn exists(name: &str, files: &[(String, String)]) -> bool {
    let mut modules: Vec<&str> = name.split("::").collect();
    let test = modules.pop().unwrap_or_default();
    let is_in = |path: &str, modules: &[&str]| {
        let path = Path::new(path).with_extension("");
        let mut parts = path.iter().filter_map(|part| part.to_str());
        modules.iter().all(|module| parts.any(|part| part == *module))
    };
    let mut candidates = files.iter().filter(|(path, _)| match &*modules {
        [] => path == TABLES,
        modules => is_in(path, modules),
    });
    let function = match test.strip_suffix('*') {
        Some(beginning) => format!("fn {beginning}"),
        None => format!("fn {test}("),
    };
    let tests = |text: &str| text.contains("#[test]") || text.contains("#[tokio::test");
    let has_it = candidates.any(|(_, text)| tests(text) && text.contains(&function));
    has_it || files.iter().any(|(path, _)| is_in(path, &[&*modules, &[test]].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_a_table_names_and_nobody_has_is_found() {
        let table = "//! | what | test |\n//! |---|---|\n\
            //! | a | `here`, `queue::one`, `queue::tw*`, `queue::*`, `queue::model`, `signals` |\n\
            //! | b | cannot be written: `Result<Outcome, Error>`, `gone`, `queue::gone`, `wait::*` |\n\
            //!\n//! | left out | why |\n//! |---|---|\n//! | c | `nothing_is_looked_for` |\n\
            #[test]\nfn here() {}\n";
        let files = [
            (TABLES, table),
            ("crates/homeostat/src/queue/tests.rs", "#[test]\nfn one() {}\n#[test]\nfn two() {}\n"),
            ("crates/homeostat/src/queue/model.rs", ""),
            ("crates/homeostat/src/queue/wait.rs", "fn wait() {}\n"),
            ("crates/homeostat/tests/signals.rs", "#[test]\nfn gone_too() {}\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let missing = ["gone", "queue::gone", "wait::*"];
        assert_eq!(broken(&files), missing.map(|name| format!("there is no test `{name}`")));
    }
}

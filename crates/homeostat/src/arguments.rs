//! The command line of a program that takes no arguments, for a `main` that asks no more of it:
//! [`take_no_arguments!`](crate::take_no_arguments).
//!
//! Like [`log`](crate::log) it is for programs: nothing in this crate calls it.

use std::ffi::OsString;
use std::io::{self, Write as _};

/// What a program says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name: `at-operator`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
}

/// Answers `--help` and `--version`, refuses every other argument, and returns when there is none.
///
/// The help says what the package of the program is described as, and which environment it heeds.
/// Ends the process with 0 after an answer, and with 2 after an argument that is not understood.
///
/// ```no_run
/// homeostat::take_no_arguments!();
/// ```
#[macro_export]
macro_rules! take_no_arguments {
    () => {
        $crate::arguments::Program {
            name: ::std::option_env!("CARGO_BIN_NAME").unwrap_or(::std::env!("CARGO_PKG_NAME")),
            version: ::std::env!("CARGO_PKG_VERSION"),
            about: ::std::env!("CARGO_PKG_DESCRIPTION"),
        }
        .take_no_arguments()
    };
}

impl Program {
    /// As [`take_no_arguments!`](crate::take_no_arguments), for a program that says this of itself.
    pub fn take_no_arguments(self) {
        let (code, written) = match self.answer(std::env::args_os().skip(1)) {
            None => return,
            Some(Ok(text)) => (0, io::stdout().write_all(text.as_bytes())),
            Some(Err(text)) => (2, io::stderr().write_all(text.as_bytes())),
        };
        // Whoever asked may have gone.
        drop(written);
        std::process::exit(code)
    }

    /// What to say, if anything: an answer, or what is wrong.
    fn answer(self, arguments: impl Iterator<Item = OsString>) -> Option<Result<String, String>> {
        let Self { name, version, .. } = self;
        let first = arguments.into_iter().next()?;
        match first.to_str() {
            Some("-h" | "--help") => Some(Ok(self.help())),
            Some("-V" | "--version") => Some(Ok(format!("{name} {version}\n"))),
            _ => Some(Err(format!(
                "error: unexpected argument '{}' found\n\n  \
                 tip: {name} takes no arguments; the environment says which cluster it works on: \
                 KUBECONFIG=FILE {name}\n\n\
                 For more information, try '--help'.\n",
                first.display()
            ))),
        }
    }

    fn help(self) -> String {
        let Self { name, about, .. } = self;
        // A package may have no description.
        let about = if about.is_empty() { name } else { about };
        format!(
            "{about}

It works on the cluster that the environment names, until SIGINT (Ctrl-C) or
SIGTERM.

Usage: {name}

Options:
  -h, --help     Print help
  -V, --version  Print version

Environment:
  KUBECONFIG   The kubeconfig that names the cluster; by default ~/.kube/config,
               and in a Pod its service account
  HTTPS_PROXY  A proxy on the way there, if the kubeconfig names none; NO_PROXY
               lists hosts that are reached without
  RUST_LOG     Which lines of the log go to standard error; by default info
  NO_COLOR     If set to anything, the log has no colours
"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program { name: "web", version: "1.2.3", about: "Web: serves." };

    fn answer(arguments: &[&str]) -> Option<Result<String, String>> {
        PROGRAM.answer(arguments.iter().map(OsString::from))
    }

    #[test]
    fn help_says_what_the_program_does_and_what_it_heeds() {
        for asked in ["-h", "--help"] {
            let help = answer(&[asked]).unwrap().unwrap();
            assert!(help.starts_with("Web: serves.\n") && help.contains("Usage: web\n"), "{help}");
            assert!(help.contains("KUBECONFIG") && help.contains("RUST_LOG"), "{help}");
            assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        }
        assert_eq!(answer(&["--version"]), Some(Ok("web 1.2.3\n".to_owned())));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_a_tip_and_nothing_is_no_question() {
        assert_eq!(answer(&[]), None);
        for wrong in ["--namespace", "run", ""] {
            let words = answer(&[wrong, "--help"]).unwrap().unwrap_err();
            assert!(words.starts_with(&format!("error: unexpected argument '{wrong}'")), "{words}");
            assert!(words.contains("\n\n  tip: web takes no arguments"), "{words}");
        }
    }
}

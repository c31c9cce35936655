//! What to do now, for somebody who sits at a terminal: how to reach the cluster, what to try, how
//! to end it. Elsewhere nothing of it is printed.

use std::io::IsTerminal as _;
use std::path::Path;

use crate::say::say;

/// With the objects of the demo there.
const TRY_DEMO: &str =
    "Then try `kubectl delete deployment hello` and see it come back. Ctrl-C ends everything.";

/// With nothing there yet.
const TRY: &str = "Then try `kubectl create deployment web --image=homeostat.dev/hello:1` and `kubectl get pods`. Ctrl-C ends it.";

/// Two lines.
pub(crate) fn advice(kubeconfig: &Path, demo: bool) -> String {
    let next = if demo { TRY_DEMO } else { TRY };
    format!("In another terminal: export KUBECONFIG={}\n{next}", quoted(kubeconfig))
}

/// Says it, if somebody is there to read it.
pub(crate) fn hint(kubeconfig: &Path, demo: bool) {
    if std::io::stdout().is_terminal() {
        say(format_args!("{}\n", advice(kubeconfig, demo)));
    }
}

/// The path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+,@%:=".contains(letter);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_can_be_copied_into_a_shell_whatever_is_in_it() {
        let first = |path: &str| advice(Path::new(path), false).lines().next().unwrap().to_owned();
        assert!(first("/home/a-b/.config/k").ends_with(" KUBECONFIG=/home/a-b/.config/k"));
        assert!(first("/my files/it's").ends_with(r" KUBECONFIG='/my files/it'\''s'"));
    }
}

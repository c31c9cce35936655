//! Where things are, and how commands are run so that their failure is told in one line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};

/// The root of the source tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The project's folder in the user's cache, shared by every clone.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(
            std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?,
        )
        .join(".cache"),
    };
    Ok(base.join("homeostat"))
}

/// The program of that name on the `PATH`.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Runs a command in the source tree, with its output shown.
pub(crate) fn run(program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<()> {
    run_with(program, arguments, &[])
}

/// The same with extra environment variables.
pub(crate) fn run_with(
    program: impl AsRef<OsStr>,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
) -> Result<()> {
    let shown = shown(program.as_ref(), arguments);
    println!("$ {shown}");
    let status = command(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("`{shown}` could not be started"))?;
    ensure!(status.success(), "`{shown}` failed ({status})");
    Ok(())
}

/// A command as somebody would type it who wants to run it again.
fn shown(program: &OsStr, arguments: &[&str]) -> String {
    let program = match program {
        this if this == THIS_PROGRAM => "cargo xtask".into(),
        this if this == cargo().as_str() => "cargo".into(),
        other => other.to_string_lossy(),
    };
    format!("{program} {}", arguments.join(" "))
}

/// The same beside another one: what it says comes with its end, and whether it failed.
pub(crate) fn run_aside(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, PathBuf)],
) -> Result<(String, Result<()>)> {
    let shown = format!("{program} {}", arguments.join(" "));
    let ended = command(program)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(root())
        .output()
        .with_context(|| format!("`{shown}` could not be started"))?;
    let words = [ended.stderr, ended.stdout].concat();
    let told = format!("$ {shown}\n{}", String::from_utf8_lossy(&words));
    let status = ended.status;
    let result =
        if status.success() { Ok(()) } else { Err(anyhow!("`{shown}` failed ({status})")) };
    Ok((told, result))
}

/// This very program, for whoever starts it again. Not by its name: the builds that it runs may put
/// another in its place.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// A program that hears nothing of what `cargo run` tells this one about itself: build scripts that
/// ask for it would take another cargo's build for a new one, and half the tree would be built again.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if told {
            command.env_remove(name);
        }
    }
    command
}

/// The standard output of a command.
pub(crate) fn output(program: &str, arguments: &[&str], folder: &Path) -> Result<String> {
    let shown = format!("{program} {}", arguments.join(" "));
    let output = command(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .with_context(|| format!("`{shown}` could not be started"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Says, before a build that compiles everything, why it takes long and that the next one will not.
/// What was built before is told by the program that every command builds.
pub(crate) fn announce_first_build() -> Result<()> {
    if !target()?.join("debug/homeostat").exists() {
        let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
        let crates = lock.matches("[[package]]").count();
        println!(
            "First build: up to {crates} crates are compiled, which takes minutes; \
             the next one compiles only what has changed."
        );
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = output(&cargo(), &["metadata", "--format-version=1", "--no-deps"], &root())?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"].as_str();
    Ok(PathBuf::from(target.context("cargo names no target directory")?))
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_can_be_typed() {
        let shown = |program: &str| shown(program.as_ref(), &["generate", "--check"]);
        assert_eq!(shown(THIS_PROGRAM), "cargo xtask generate --check");
        assert_eq!(shown(&cargo()), "cargo generate --check");
        assert_eq!(shown("/bin/go"), "/bin/go generate --check");
    }
}

//! PostgreSQL on the host: found, or installed where the system's package manager may.

use std::path::{Path, PathBuf};

use crate::workspace::{find, run};

/// The folder of the newest installed server's programs.
pub(crate) fn server() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let newest = debian
        .filter_map(|entry| {
            let major: u32 = entry.file_name().to_str()?.parse().ok()?;
            let programs = entry.path().join("bin");
            programs.join("postgres").is_file().then_some((major, programs))
        })
        .max();
    newest.map(|(_, programs)| programs).or_else(|| {
        let postgres = find("postgres")?;
        postgres.parent().map(Path::to_path_buf)
    })
}

/// Whether both the server and `psql` are there.
fn complete() -> bool {
    server().is_some() && find("psql").is_some()
}

/// Makes sure of PostgreSQL; `Err` holds a sentence that says what to install.
pub(crate) fn ensure() -> Result<(), String> {
    if complete() {
        return Ok(());
    }
    let advice = "PostgreSQL is missing: install its server and psql \
                  (Debian, Ubuntu: `apt-get install postgresql`; Fedora: `dnf install postgresql-server`; \
                  macOS: `brew install postgresql`)";
    if find("apt-get").is_none() || !nix::unistd::geteuid().is_root() {
        return Err(advice.to_owned());
    }
    println!("PostgreSQL is missing; installing it with apt-get");
    let installed = run("apt-get", &["update", "-q"]).and_then(|()| {
        run("env", &["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-qy", "postgresql"])
    });
    match installed {
        Ok(()) if complete() => Ok(()),
        Ok(()) => Err(advice.to_owned()),
        Err(error) => Err(format!("{advice} ({error:#})")),
    }
}

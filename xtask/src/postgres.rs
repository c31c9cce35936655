//! PostgreSQL on the host: found, or installed where the system's package manager may.

use std::path::Path;

use crate::workspace::{find, run};

/// Where distributions keep versions apart: `15/bin`, `pgsql-15/bin`. The node agent looks there too.
const PLACES: [&str; 3] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql", "/usr"];

/// Whether a server is installed.
fn has_server() -> bool {
    PLACES.iter().any(|place| has_server_in(Path::new(place))) || find("postgres").is_some()
}

fn has_server_in(place: &Path) -> bool {
    std::fs::read_dir(place).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let version = name.strip_prefix("pgsql-").unwrap_or(name);
        version.parse::<u32>().is_ok() && entry.path().join("bin").join("postgres").is_file()
    })
}

/// Whether both the server and `psql` are there.
fn complete() -> bool {
    has_server() && find("psql").is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_under_the_names_that_distributions_give_it() {
        let place = tempfile::tempdir().unwrap();
        let install = |folder: &str| {
            let programs = place.path().join(folder).join("bin");
            std::fs::create_dir_all(&programs).unwrap();
            std::fs::write(programs.join("postgres"), "").unwrap();
        };
        install("elsewhere");
        assert!(!has_server_in(place.path()));
        install("pgsql-16");
        assert!(has_server_in(place.path()));
        assert!(!has_server_in(&place.path().join("pgsql-16")));
        install("pgsql-16/15");
        assert!(has_server_in(&place.path().join("pgsql-16")));
    }
}

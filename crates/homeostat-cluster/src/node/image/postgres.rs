//! `postgres:N`: the host's PostgreSQL behind the environment contract of the official image.
//!
//! The entrypoint starts as root (or as the agent's user), makes the data directory, gives it to
//! the database's user, runs `initdb` when it is empty, and becomes `postgres`.

use std::fs;
use std::io::{Error, Result, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{User, geteuid};

use super::{Image, Missing, StopSignal, host_user, this_binary};

const DATA: &str = "/var/lib/postgresql/data";
const SOCKETS: &str = "/var/run/postgresql";

pub(super) fn image(tag: &str) -> std::result::Result<Image, Missing> {
    let (major, bin) = choose(tag, installed()).map_err(Missing)?;
    let bin = bin.display().to_string();
    Ok(Image {
        entrypoint: this_binary(&["postgres", &bin]),
        env: vec![("PGDATA".into(), DATA.into()), ("PG_MAJOR".into(), major.to_string())],
        volumes: vec![DATA.into()],
        stop_signal: StopSignal::Interrupt,
        // One that the host knows: `initdb` looks its user up.
        rootless_user: host_user("postgres").map(|user| user.uid.as_raw()),
        ..Image::default()
    })
}

/// A major version and where its programs are.
type Version = (u32, PathBuf);

/// The version that a tag asks for, or the newest where it names none; else what to do. Another
/// major version is no substitute: it cannot read the same data.
fn choose(tag: &str, mut found: Vec<Version>) -> std::result::Result<Version, String> {
    let asked = tag.split(['.', '-']).next().and_then(|major| major.parse::<u32>().ok());
    let at = match asked {
        Some(asked) => found.iter().position(|(major, _)| *major == asked),
        None => found.len().checked_sub(1),
    };
    if let Some(at) = at {
        return Ok(found.swap_remove(at));
    }
    if found.is_empty() {
        return Err(
            "image \"postgres\" needs PostgreSQL on the host, and none was found; install \
                    it (Debian and Ubuntu: apt-get install postgresql) and the Pod will start"
                .into(),
        );
    }
    let there: Vec<String> = found.iter().map(|(major, _)| format!("postgres:{major}")).collect();
    Err(format!(
        "image \"postgres:{tag}\" needs PostgreSQL {} on the host, which has {} only; use that, or \
         install the other version and the Pod will start",
        asked.unwrap_or_default(),
        there.join(", ")
    ))
}

/// The major versions of PostgreSQL on this host that `postgres:N` can run, the newest last.
#[must_use]
pub fn versions() -> Vec<u32> {
    installed().into_iter().map(|(major, _)| major).collect()
}

fn installed() -> Vec<Version> {
    let mut found: Vec<Version> = ["/usr/lib/postgresql", "/usr/local/lib/postgresql", "/usr"]
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let major = name.strip_prefix("pgsql-").unwrap_or(&name).parse().ok()?;
            let bin = entry.path().join("bin");
            bin.join("initdb").exists().then_some((major, bin))
        })
        .collect();
    if found.is_empty() {
        found.extend(from_path());
    }
    found.sort();
    found
}

/// PostgreSQL in `PATH`, where a distribution does not keep versions apart.
fn from_path() -> Option<Version> {
    let path = std::env::var_os("PATH")?;
    let bin = std::env::split_paths(&path)
        .find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())?;
    let said = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let major = said.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?;
    Some((major.parse().ok()?, bin))
}

/// `image postgres BIN [postgres] [options…]`.
pub(super) fn main(args: &[String]) -> Result<()> {
    let (bin, args) = args.split_first().ok_or_else(|| Error::other("no directory of programs"))?;
    if let Some((program, rest)) = args.split_first()
        && program != "postgres"
        && !program.starts_with('-')
    {
        return Err(Command::new(program).args(rest).exec());
    }
    let server = Server::from_env(Path::new(bin))?;
    server.prepare()?;
    if !server.data.join("PG_VERSION").exists() {
        server.initialise()?;
    }
    let options = args.iter().skip_while(|word| *word == "postgres");
    Err(server
        .command("postgres")
        .args(["-h", &server.address, "-p", "5432", "-k", SOCKETS])
        .args(options)
        .exec())
}

struct Server {
    bin: PathBuf,
    data: PathBuf,
    address: String,
    user: String,
    password: Option<String>,
    database: String,
    trust: bool,
    /// Whom to become; `None` when the agent is not root.
    owner: Option<User>,
}

impl Server {
    fn from_env(bin: &Path) -> Result<Self> {
        let get = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let user = get("POSTGRES_USER").unwrap_or_else(|| "postgres".into());
        let trust = get("POSTGRES_HOST_AUTH_METHOD").as_deref() == Some("trust");
        let owner = if geteuid().is_root() {
            Some(host_user("postgres").ok_or_else(|| {
                Error::other(
                    "PostgreSQL does not run as root and there is no user postgres or nobody",
                )
            })?)
        } else {
            None
        };
        Ok(Self {
            bin: bin.to_owned(),
            data: get("PGDATA").unwrap_or_else(|| DATA.into()).into(),
            address: get("POD_IP").unwrap_or_else(|| "127.0.0.1".into()),
            password: get("POSTGRES_PASSWORD"),
            database: get("POSTGRES_DB").unwrap_or_else(|| user.clone()),
            user,
            trust,
            owner,
        })
    }

    /// A program of PostgreSQL, run as the database's user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.env("PGDATA", &self.data).current_dir("/");
        if let Some(owner) = &self.owner {
            command.uid(owner.uid.as_raw()).gid(owner.gid.as_raw()).env("HOME", &self.data);
        }
        command
    }

    fn prepare(&self) -> Result<()> {
        for (directory, mode) in [(self.data.as_path(), 0o700), (Path::new(SOCKETS), 0o775)] {
            fs::create_dir_all(directory)?;
            if let Some(owner) = &self.owner {
                chown(directory, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))?;
            }
            fs::set_permissions(directory, fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// The password in a file that only the database's user can read.
    fn secret(&self, password: &str) -> Result<PathBuf> {
        let file = Path::new(SOCKETS).join(format!("password-{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let mut opened = options.write(true).create_new(true).mode(0o600).open(&file)?;
        writeln!(opened, "{password}")?;
        if let Some(owner) = &self.owner {
            chown(&file, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))?;
        }
        Ok(file)
    }

    fn initialise(&self) -> Result<()> {
        if self.password.is_none() && !self.trust {
            return Err(Error::other(
                "the database is empty and no superuser password is given: set POSTGRES_PASSWORD, \
                 or POSTGRES_HOST_AUTH_METHOD=trust for a database without passwords",
            ));
        }
        let method = if self.trust { "trust" } else { "scram-sha-256" };
        let mut initdb = self.command("initdb");
        initdb.args(["--encoding=UTF8", "--locale=C", "--no-sync", "--auth-local=trust"]);
        initdb.args([format!("--username={}", self.user), format!("--auth-host={method}")]);
        let secret = self.password.as_deref().map(|password| self.secret(password)).transpose()?;
        if let Some(file) = &secret {
            initdb.arg("--pwfile").arg(file);
        }
        let made = feed(&mut initdb, "");
        if let Some(file) = secret {
            fs::remove_file(file)?;
        }
        made?;
        let hba = self.data.join("pg_hba.conf");
        let mut rules = fs::OpenOptions::new().append(true).open(hba)?;
        writeln!(rules, "host all all all {method}")?;
        if self.database != "postgres" {
            let name = self.database.replace('"', "\"\"");
            let mut single = self.command("postgres");
            single.args(["--single", "-j", "-D"]).arg(&self.data).arg("postgres");
            single.stdout(Stdio::null());
            feed(&mut single, &format!("CREATE DATABASE \"{name}\";\n\n"))?;
        }
        Ok(())
    }
}

/// Runs a command to its end with `input` on standard input.
fn feed(command: &mut Command, input: &str) -> Result<()> {
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input is judged by its exit code alone.
        let _ = stdin.write_all(input.as_bytes());
    }
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::other(format!("{} failed: {status}", command.get_program().display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(tag: &str, majors: &[u32]) -> std::result::Result<u32, String> {
        let found = majors.iter().map(|major| (*major, PathBuf::new())).collect();
        choose(tag, found).map(|(major, _)| major)
    }

    #[test]
    fn a_tag_gets_its_own_major_version_and_no_other() {
        assert_eq!(chosen("15", &[13, 15, 17]), Ok(15));
        assert_eq!(chosen("15.4-alpine", &[13, 15, 17]), Ok(15));
        assert_eq!(chosen("latest", &[13, 15, 17]), Ok(17));
        let words = chosen("99", &[13, 15]).unwrap_err();
        assert!(words.contains("PostgreSQL 99"), "{words}");
        assert!(words.contains("postgres:13, postgres:15 only"), "{words}");
        let words = chosen("15", &[]).unwrap_err();
        assert!(words.contains("none was found") && words.contains("install"), "{words}");
    }
}

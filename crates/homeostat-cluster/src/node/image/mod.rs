//! The catalogue: what an image name means on a host without a container registry.
//!
//! A table of names, each with the command it stands for. Nothing is ever downloaded.

pub(crate) mod builtin;
mod hello;
mod postgres;
mod reference;

use nix::unistd::User;

pub use postgres::versions as postgresql_versions;

/// What an image stands for: the defaults that a container's own fields override.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// The image with its tag, as status reports it.
    pub reference: String,
    /// Run before `command`; replaced by a container's `command`.
    pub entrypoint: Vec<String>,
    /// Replaced by a container's `args` (and dropped by its `command`).
    pub command: Vec<String>,
    /// Environment that the image brings.
    pub env: Vec<(String, String)>,
    /// Paths that are volumes even when the Pod names none.
    pub volumes: Vec<String>,
    /// The signal that asks the program to stop.
    pub stop_signal: StopSignal,
    /// The user to run as when the agent is not root; root runs the entrypoint as root.
    pub rootless_user: Option<u32>,
}

/// How a program is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopSignal {
    /// SIGTERM, the default.
    #[default]
    Terminate,
    /// SIGINT: a fast shutdown of PostgreSQL.
    Interrupt,
}

impl StopSignal {
    /// Its number.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Terminate => nix::sys::signal::Signal::SIGTERM as i32,
            Self::Interrupt => nix::sys::signal::Signal::SIGINT as i32,
        }
    }
}

/// An image that the catalogue does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(String);

/// A text that cannot be the name of an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{reference:?} is not the name of an image: {why}; write one as in busybox:1.36 or registry.example/team/app:2"
)]
pub struct InvalidName {
    reference: String,
    why: String,
}

/// Looks at the name alone.
///
/// # Errors
/// [`InvalidName`] says which part of it is wrong.
pub fn check_name(reference: &str) -> Result<(), InvalidName> {
    let invalid = |why| InvalidName { reference: reference.to_owned(), why };
    reference::fault(reference).map(invalid).map_or(Ok(()), Err)
}

type Row = (&'static [&'static str], fn(&str) -> Result<Image, Missing>);

/// Names (without registry, `library/` and tag) and what they stand for.
const CATALOGUE: [Row; 4] = [
    (&["busybox", "alpine", "debian", "ubuntu", "bash"], shell),
    (&["postgres"], postgres::image),
    (&["homeostat.dev/hello"], hello::image),
    (&["pause"], pause),
];

/// Looks an image up.
///
/// # Errors
/// [`Missing`] says which images there are and what to do.
pub fn resolve(reference: &str) -> Result<Image, Missing> {
    let (name, tag) = split(reference);
    let row = CATALOGUE.iter().find(|(names, _)| names.contains(&short(name)));
    let Some((_, make)) = row else {
        let known: Vec<&str> =
            CATALOGUE.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        return Err(Missing(format!(
            "image {reference:?} is not in the catalogue of this node, which runs programs of the \
             host and pulls nothing; use one of {}, or run this Pod on a cluster with \
             a container runtime",
            known.join(", ")
        )));
    };
    let mut image = make(tag)?;
    image.reference = reference.to_owned();
    Ok(image)
}

/// Name and tag; `latest` by default, a digest counts as no tag.
fn split(reference: &str) -> (&str, &str) {
    let name = reference.split('@').next().unwrap_or(reference);
    match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (name, "latest"),
    }
}

/// The name without the registries that the well-known images come from.
fn short(name: &str) -> &str {
    ["docker.io/library/", "docker.io/", "library/", "registry.k8s.io/"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name)
}

#[expect(clippy::unnecessary_wraps, reason = "a row of the catalogue may fail")]
fn shell(_tag: &str) -> Result<Image, Missing> {
    Ok(Image { command: vec!["sh".into()], ..Image::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "a row of the catalogue may fail")]
fn pause(_tag: &str) -> Result<Image, Missing> {
    Ok(Image { entrypoint: this_binary(&["pause"]), ..Image::default() })
}

/// This binary as the program, with the arguments that make it a built-in image.
fn this_binary(args: &[&str]) -> Vec<String> {
    ["/proc/self/exe", "image"].iter().chain(args).map(|&word| word.to_owned()).collect()
}

/// A user of the host by name, or `nobody`.
fn host_user(name: &str) -> Option<User> {
    let find = |name| User::from_name(name).ok().flatten();
    find(name).or_else(|| find("nobody"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_found_under_each_of_its_usual_names() {
        for name in ["busybox", "busybox:1.36", "docker.io/library/busybox:1.36", "library/alpine"]
        {
            assert_eq!(resolve(name).unwrap().command, ["sh"], "{name}");
        }
        assert_eq!(
            resolve("homeostat.dev/hello:2").unwrap().entrypoint,
            ["/proc/self/exe", "image", "hello", "2"]
        );
    }

    #[test]
    fn a_missing_image_says_what_there_is() {
        let said = resolve("nginx:1.27").unwrap_err().to_string();
        assert!(said.contains("\"nginx:1.27\"") && said.contains("busybox"), "{said}");
        assert!(resolve("localhost:5000/thing").is_err());
    }
}

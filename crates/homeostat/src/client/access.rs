//! Which cluster is meant: the one of a kubeconfig, or the one whose Pod this is. What is wrong with
//! a kubeconfig is told in one sentence: which file, what, and what to do. Connects to nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::Env;
use crate::error::{Error, Result};

/// A client for the cluster that `$KUBECONFIG`, `~/.kube/config` or the Pod's service account names,
/// in this order (Go's controller-runtime asks the Pod before `~/.kube/config`, which few Pods have);
/// [`connect`](super::connect) says what it does. The first of them that is meant is the one that
/// counts: files that `$KUBECONFIG` names, and a `~/.kube/config` that is there, are never passed over
/// for another cluster because they cannot be used.
///
/// # Errors
/// When none of them is there, or the one that is meant cannot be used: which, why, and what to do.
pub async fn from_env(env: Env) -> Result<kube::Client> {
    super::connect(&config_from_env().await?, env)
}

/// Which cluster the environment names.
pub(crate) async fn config_from_env() -> Result<Config> {
    let files = files();
    // The usual one is meant only where it is; the named ones should be there.
    let is_meant = |file: &PathBuf| file.exists() || usual_file().as_ref() != Some(file);
    let mut config = if files.iter().any(is_meant) {
        of_files(&files, None).await?
    } else if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        let said = |error| format!("the service account of this Pod cannot be used: {error}");
        Config::incluster().map_err(|error| Error::transient(said(error)))?
    } else {
        return Err(Error::transient(
            "no cluster is named: point KUBECONFIG at a kubeconfig file, or run in a Pod",
        ));
    };
    config.apply_debug_overrides();
    Ok(config)
}

/// The current context of a kubeconfig file.
pub(crate) async fn config_of_file(path: &Path) -> Result<Config> {
    of_files(&[path.to_owned()], None).await
}

/// The context of that name in the environment's kubeconfig.
pub(crate) async fn config_of_context(name: &str) -> Result<Config> {
    of_files(&files(), Some(name)).await
}

/// The files that `$KUBECONFIG` lists, or else the usual one.
fn files() -> Vec<PathBuf> {
    let list = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let named = std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty());
    let named: Vec<PathBuf> = named.collect();
    if named.is_empty() { usual_file().into_iter().collect() } else { named }
}

fn usual_file() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".kube/config"))
}

async fn of_files(files: &[PathBuf], context: Option<&str>) -> Result<Config> {
    let mut merged = Kubeconfig::default();
    for file in files {
        let read = Kubeconfig::read_from(file).and_then(|next| merged.merge(next));
        merged = read.map_err(|error| trouble(std::slice::from_ref(file), &error))?;
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let config = Config::from_custom_kubeconfig(merged, &options).await;
    config.map_err(|error| trouble(files, &error))
}

fn trouble(files: &[PathBuf], error: &KubeconfigError) -> Error {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let names = names.join(", ");
    if let KubeconfigError::ReadConfig(cause, _) = error
        && cause.kind() == ErrorKind::NotFound
    {
        return Error::transient(format!(
            "there is no kubeconfig {names}: start the cluster that writes it, or point KUBECONFIG \
             at another file"
        ));
    }
    let what = match error {
        KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
        // The first line says it; the others show the place, and there may be secrets in it.
        KubeconfigError::Parse(error) => {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
        KubeconfigError::CurrentContextNotSet => "it names no current-context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context {name:?}"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name:?}"),
        error => error.to_string(),
    };
    Error::transient(format!(
        "the kubeconfig {names} cannot be used: {what}; mend it, or point KUBECONFIG at another file"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: &str =
        "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: u}}]\n";

    async fn said(name: &str, text: Option<&str>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let error = config_of_file(&path).await.unwrap_err();
        error.chain().replace(&path.display().to_string(), "FILE")
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_one_sentence_with_the_file_and_a_way_out() {
        let cases = [
            (None, "there is no kubeconfig FILE: start"),
            (Some(""), "FILE cannot be used: it names no current-context; mend"),
            (Some("hello"), "FILE cannot be used: line 1 column 1: expected mapping start; mend"),
            (Some("current-context: a"), "FILE cannot be used: it has no context \"a\"; mend"),
            (Some(CONTEXT), "FILE cannot be used: it has no cluster \"a\"; mend"),
        ];
        for (text, expected) in cases {
            let said = said("config", text).await;
            assert!(said.contains(expected), "{said}");
            assert!(said.ends_with("point KUBECONFIG at another file"), "{said}");
            assert!(said.lines().count() == 1 && said.matches("FILE").count() == 1, "{said}");
        }
    }
}

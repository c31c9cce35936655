//! Why `homeostat` could not do what it was asked, and what to do about it.

use std::path::{Path, PathBuf};

use console::style;
use homeostat::error::chain;
use homeostat_apiserver::DataDirectory;
use homeostat_apiserver::store::StorageError;
use miette::Diagnostic;

/// A failure that ends the program with exit code 1.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum Failure {
    #[error("port {port} is taken")]
    #[diagnostic(help(
        "stop what listens there, choose another with --port, or leave --port out to get a free one"
    ))]
    PortTaken {
        port: u16,
        #[source]
        source: std::io::Error,
    },

    #[error("cannot listen on 127.0.0.1:{port}")]
    #[diagnostic(help("ports below 1024 need privileges; leave --port out to get a free one"))]
    Listen {
        port: u16,
        #[source]
        source: std::io::Error,
    },

    #[error("cannot write the kubeconfig to {}", path.display())]
    #[diagnostic(help("name a file you may write with --kubeconfig FILE"))]
    Kubeconfig {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("{} is the kubeconfig of a cluster that is running", path.display())]
    #[diagnostic(help("name another file with --kubeconfig FILE, or stop that cluster first"))]
    KubeconfigTaken { path: PathBuf },

    #[error("{} is there already, and is not a kubeconfig of homeostat's alone", path.display())]
    #[diagnostic(help(
        "name a new file with --kubeconfig FILE: it is overwritten, and removed at the end"
    ))]
    KubeconfigOfAnother { path: PathBuf },

    #[error("there is no operator {name:?}")]
    #[diagnostic(help("choose from: {known}"))]
    UnknownOperator { name: String, known: String },

    #[error("--with has an empty place where a name should be")]
    #[diagnostic(help(
        "write one comma between two names and none at the ends, as in --with at,webapp, or leave --with out; \
         choose from: {known}"
    ))]
    NamelessOperator { known: String },

    #[error("--with names the operator {name:?} more than once")]
    #[diagnostic(help("name each operator once"))]
    RepeatedOperator { name: String },

    #[error("the home folder is unknown: neither XDG_CONFIG_HOME nor HOME is set")]
    #[diagnostic(help("name a file with --kubeconfig FILE"))]
    NoHome,

    #[error("the data directory cannot be used")]
    #[diagnostic(help(
        "name a directory that you may write, or a new one, with --data DIR; \
         without --data everything is kept in memory"
    ))]
    Data(#[source] StorageError),

    #[error("the data directory is damaged")]
    #[diagnostic(help(
        "put a copy of {dir} that was made before in its place, or move it away and start again with an empty one: \
         mv {dir} {dir}.damaged",
        dir = path.display()
    ))]
    DataDamaged {
        path: PathBuf,
        #[source]
        source: StorageError,
    },

    #[error("the data directory was written by a newer homeostat")]
    #[diagnostic(help(
        "use the version that wrote it, or a newer one, or name another directory with --data DIR"
    ))]
    DataTooNew(#[source] StorageError),

    #[error("{} is not a directory", path.display())]
    #[diagnostic(help(
        "name a directory, or one that is to be made, with --data DIR; \
         without --data everything is kept in memory"
    ))]
    DataNoDirectory { path: PathBuf },

    #[error("{} holds {found}, and nothing that homeostat wrote", path.display())]
    #[diagnostic(help(
        "name an empty directory, or one that is to be made, with --data DIR; nothing was written"
    ))]
    DataOfAnother { path: PathBuf, found: String },

    #[error("{} is the data directory of a cluster that is running", path.display())]
    #[diagnostic(help(
        "stop that cluster first (Ctrl-C where it runs), or name another directory with --data DIR; \
         without --data everything is kept in memory"
    ))]
    DataInUse { path: PathBuf },

    #[error("the addresses of this directory's Services, {}, are in use", range.trim())]
    #[diagnostic(help("another cluster on this host has them: stop that one first"))]
    RangeTaken { range: String },

    #[error("the cluster did not start")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),

    #[error("the cluster did not stop cleanly")]
    Stop(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Failure {
    /// Why the data directory at `path` is of no use.
    pub(crate) fn data(path: &Path, error: StorageError) -> Self {
        match error {
            StorageError::InUse { path } => Self::DataInUse { path },
            StorageError::NotADirectory { path } => Self::DataNoDirectory { path },
            StorageError::OfAnother { path, found } => Self::DataOfAnother { path, found },
            source @ StorageError::Damaged { .. } => {
                Self::DataDamaged { path: path.to_owned(), source }
            }
            error @ StorageError::TooNew { .. } => Self::DataTooNew(error),
            error => Self::Data(error),
        }
    }

    /// That a small file of the data directory does not hold what it should.
    pub(crate) fn damaged(directory: &DataDirectory, name: &str, what: &str) -> Self {
        let (path, what) = (directory.path().join(name), what.to_owned());
        Self::data(directory.path(), StorageError::Damaged { path, at: 0, what })
    }

    /// Says on standard error what is wrong, why, and what to do, in the form of `clap`'s own errors.
    #[allow(clippy::print_stderr, reason = "this is where words go")]
    pub(crate) fn tell(&self) {
        eprintln!("{} {}", style("error:").for_stderr().red().bold(), chain(self));
        if let Some(help) = self.help() {
            eprintln!("\n  {} {help}", style("tip:").for_stderr().green());
        }
    }
}

/// Says on standard error what is not as somebody may expect, and what to do about it.
#[allow(clippy::print_stderr, reason = "this is where words go")]
pub(crate) fn warn(what: &str, tip: &str) {
    remark(what);
    eprintln!("\n  {} {tip}\n", style("tip:").for_stderr().green());
}

/// The same where it goes without a tip: a line.
#[allow(clippy::print_stderr, reason = "this is where words go")]
pub(crate) fn remark(what: &str) {
    eprintln!("{} {what}", style("warning:").for_stderr().yellow().bold());
}

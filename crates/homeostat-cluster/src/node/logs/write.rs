//! Writes log files and tells followers that there is more.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homeostat_env::Env;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};

/// Longer lines are written in parts.
const LONGEST: u64 = 16 * 1024;

/// The log of one run of a container; cheap to clone.
#[derive(Debug, Clone)]
pub struct Log {
    path: Arc<Path>,
    file: Arc<Mutex<File>>,
    /// Bytes written so far, and whether no more will come.
    written: watch::Sender<(u64, bool)>,
}

impl Log {
    /// Makes an empty log.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub async fn create(path: PathBuf) -> Result<Self> {
        let file = File::create(&path).await?;
        let (written, _) = watch::channel((0, false));
        Ok(Self { path: path.into(), file: Arc::new(Mutex::new(file)), written })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says when there is more to read: bytes so far, and whether the log is complete.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<(u64, bool)> {
        self.written.subscribe()
    }

    /// No more will be written.
    pub fn close(&self) {
        self.written.send_modify(|(_, closed)| *closed = true);
    }

    async fn append(&self, record: &[u8]) -> Result<()> {
        let mut file = self.file.lock().await;
        file.write_all(record).await?;
        file.flush().await?;
        self.written.send_modify(|(bytes, _)| *bytes += record.len() as u64);
        Ok(())
    }
}

/// Copies an output stream into the log until it ends.
pub async fn pump(log: Log, stream: &'static str, output: impl AsyncRead + Unpin, env: Env) {
    use tokio::io::AsyncReadExt;
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let tag = if line.last() == Some(&b'\n') { "F" } else { "P" };
        let mut record = format!("{:.9} {stream} {tag} ", env.now()).into_bytes();
        record.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(&line));
        record.push(b'\n');
        if let Err(error) = log.append(&record).await {
            tracing::warn!(path = %log.path.display(), %error, "log lines are lost");
        }
    }
}

//! A program that is spoken to: lines in, lines out. It ends when nobody holds it any more.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

pub(super) struct Spoken {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Spoken {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { child, input, output })
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}")?;
        Ok(self.input.flush()?)
    }

    /// Its next line, empty when it has ended.
    pub(super) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// All its lines until it ends.
    pub(super) fn lines(&mut self) -> impl Iterator<Item = std::io::Result<String>> {
        (&mut self.output).lines()
    }

    /// Waits for its end; whether it was a good one.
    pub(super) fn ends_well(&mut self) -> Result<bool> {
        Ok(self.child.wait()?.success())
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its processor time so far.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        process::processor_time(self.id())
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        // It has ended by itself, or nobody needs what it has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

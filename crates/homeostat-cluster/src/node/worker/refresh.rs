//! Keeps the files in running containers up to date: Secrets and ConfigMaps when they change,
//! tokens before they expire.

use std::time::Duration;

use jiff::Timestamp;

use super::{Message, Worker};
use crate::node::configuration::Problem;
use crate::node::machine::Notice;

/// How long to wait before volumes are brought up to date again that could not be.
const RETRY: Duration = Duration::from_secs(10);

/// Whether a Pod's files are being written, and when they are to be written next.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    busy: bool,
    /// Something changed while it was busy.
    again: bool,
    due: Option<Timestamp>,
}

impl Refresh {
    /// Not later than this.
    pub(super) fn by(&mut self, time: Option<Timestamp>) {
        self.due = self.due.into_iter().chain(time).min();
    }

    /// When to begin, unless it has begun.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.due.filter(|_| !self.busy)
    }
}

impl Worker {
    /// Writes the files that are due.
    pub(super) fn refresh_when_due(&mut self) {
        if self.refresh.due().is_some_and(|due| due <= self.host.env.now()) {
            self.refresh_volumes();
        }
    }

    /// Writes the files of running containers now, or once more when that is being done.
    pub(super) fn refresh_volumes(&mut self) {
        if self.running.is_empty() {
            self.refresh.due = None;
            return;
        }
        if self.refresh.busy {
            self.refresh.again = true;
            return;
        }
        self.refresh = Refresh { busy: true, again: false, due: None };
        let (host, pod, ip) = (self.host.clone(), self.machine.pod().clone(), self.ip);
        let (volumes, sender) = (self.volumes.clone(), self.sender.clone());
        self.tasks.spawn(async move {
            let outcome = volumes.update(&host, &pod, ip).await.map(|now| now.renewal);
            // Nobody to tell means that the Pod is gone.
            let _ = sender.send(Message::Refreshed(outcome)).await;
        });
    }

    pub(super) fn refreshed(&mut self, outcome: Result<Option<Timestamp>, Problem>) {
        self.refresh.busy = false;
        match outcome {
            Ok(renewal) => self.refresh.by(renewal),
            Err(Problem(message)) => {
                let notice = Notice { warning: true, reason: "FailedMount", message };
                self.host.note(self.machine.pod(), &notice);
                self.refresh.by(self.host.env.now().checked_add(RETRY).ok());
            }
        }
        if std::mem::take(&mut self.refresh.again) {
            self.refresh_volumes();
        }
    }
}

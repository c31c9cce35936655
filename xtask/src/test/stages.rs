//! What a whole run consists of, and what of it did not run: because something is missing here, or
//! because a failure came before.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One part of a run, as people are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Formatting,
    Tidy,
    Clippy,
    Dependencies,
    Documentation,
    BuildOfTests,
    Peers,
    GeneratedTables,
    Tests,
    Conformance,
    OnKubeApiserver,
}

impl Stage {
    /// All of them, in the order in which they begin.
    const ALL: [Self; 11] = [
        Self::Formatting,
        Self::Tidy,
        Self::Clippy,
        Self::Dependencies,
        Self::Documentation,
        Self::BuildOfTests,
        Self::Peers,
        Self::GeneratedTables,
        Self::Tests,
        Self::Conformance,
        Self::OnKubeApiserver,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Formatting => "formatting",
            Self::Tidy => "the rules of the code base (tidy)",
            Self::Clippy => "clippy",
            Self::Dependencies => "licences and bans of dependencies",
            Self::Documentation => "the documentation's build",
            Self::BuildOfTests => "the build of the tests",
            Self::Peers => "whether the bench's peers still build",
            Self::GeneratedTables => "whether the generated tables are up to date",
            Self::Tests => "the tests",
            Self::Conformance => "the conformance suite on the embedded server",
            Self::OnKubeApiserver => {
                "the tests for both clusters once more, on kube-apiserver, and the comparison with its answers"
            }
        }
    }
}

/// What is ahead of a run, and what it leaves out. Threads share it.
pub(super) struct Stages(Mutex<State>);

struct State {
    ahead: Vec<Stage>,
    left_out: Vec<String>,
}

impl Stages {
    /// Everything is ahead.
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { ahead: Stage::ALL.to_vec(), left_out: Vec::new() }))
    }

    /// It runs now.
    pub(super) fn begin(&self, stage: Stage) {
        self.lock().ahead.retain(|other| *other != stage);
    }

    /// It cannot run here.
    pub(super) fn leave_out(&self, stage: Stage, why: &str) {
        self.begin(stage);
        self.miss(&format!("{}: {why}", stage.words()));
    }

    /// Part of what runs cannot run here.
    pub(super) fn miss(&self, what: &str) {
        self.lock().left_out.push(what.to_owned());
    }

    /// What did not run, once a run has ended: nothing is ahead of one that came to its end.
    pub(super) fn not_run(&self) -> Vec<String> {
        let state = self.lock();
        let cut_off = state.ahead.iter().map(|stage| format!("{}: after a failure", stage.words()));
        state.left_out.iter().cloned().chain(cut_off).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failure_cuts_off_is_named_with_what_could_not_run() {
        let stages = Stages::new();
        for stage in &Stage::ALL[..3] {
            stages.begin(*stage);
        }
        stages.leave_out(Stage::Dependencies, "install cargo-deny");
        for stage in &Stage::ALL[4..9] {
            stages.begin(*stage);
        }
        let not_run = stages.not_run();
        assert_eq!(not_run.len(), 3, "{not_run:?}");
        assert_eq!(not_run[0], "licences and bans of dependencies: install cargo-deny");
        assert_eq!(not_run[1], "the conformance suite on the embedded server: after a failure");
        assert!(not_run[2].contains("on kube-apiserver"), "{not_run:?}");
    }

    #[test]
    fn a_run_that_came_to_its_end_left_nothing_out() {
        let stages = Stages::new();
        Stage::ALL.into_iter().for_each(|stage| stages.begin(stage));
        assert_eq!(stages.not_run(), [""; 0]);
    }
}

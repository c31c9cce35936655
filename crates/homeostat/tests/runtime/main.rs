//! The runtime against an API: the embedded one on virtual time, or a real one when
//! `HOMEOSTAT_TEST_KUBECONFIG` names it.

#![allow(unreachable_pub, reason = "a test has no outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod budget;
mod busy;
mod children;
mod cluster;
mod contract;
mod crew;
mod definitions;
mod deletes;
mod events;
mod faults;
mod finalizers;
mod follow;
mod gaps;
mod health;
mod history;
mod informer;
mod isolation;
mod kinds;
mod leader;
mod lifecycle;
mod marks;
mod mending;
mod namespaces;
mod outside;
mod panics;
mod partial;
mod patches;
mod permissions;
mod replaces;
mod replay;
mod restless;
mod selections;
mod semantics;
mod sets;
mod sources;
mod spans;
mod status;
mod strangers;
mod threads;
mod trouble;
mod voices;
mod wakeups;
mod words;

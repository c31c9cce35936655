//! Long work on a thread that also serves others: it lets them go on elsewhere.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use homeostat_cel::{Fault, Program, Run, Scope};
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// How much is done aside at this moment, in the whole process.
static LONG: AtomicUsize = AtomicUsize::new(0);

/// What an expression may cost before the others are let go: less than a millisecond, unless every
/// step is about something large.
pub(crate) const SHORT: u64 = 2_000;
/// What expressions may cost together where others wait meanwhile.
pub(crate) const SHORT_IN_ALL: u64 = 10 * SHORT;
/// The nodes and bytes of an object that is not large.
const SMALL: usize = 64 * 1024;

/// Runs an expression. One that turns out to be long begins again, aside: what it gives and what
/// it costs is the same.
pub(crate) fn run(program: &Program, scope: &dyn Scope) -> Run {
    let run = program.run_within(scope, SHORT);
    if run.result != Err(Fault::Exceeded) {
        return run;
    }
    long(|| program.run(scope))
}

/// Whether an object is not a large one.
pub(crate) fn is_small(object: &Value) -> bool {
    is_within(object, &mut { SMALL })
}

/// Judges an object, aside if it is a large one.
pub(crate) fn judge<T>(object: &Value, work: impl FnOnce() -> T) -> T {
    if is_small(object) { work() } else { long(work) }
}

/// Reads a body, aside if it is a large one.
pub(crate) fn read<T>(bytes: &[u8], work: impl FnOnce() -> T) -> T {
    if bytes.len() <= SMALL { work() } else { long(work) }
}

/// Whether a value has no more nodes and bytes than are `left`.
fn is_within(value: &Value, left: &mut usize) -> bool {
    let own = value.as_str().map_or(1, |text| 1 + text.len());
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| is_within(item, left)),
        Value::Object(fields) => fields.values().all(|field| is_within(field, left)),
        _ => true,
    }
}

fn long<T>(work: impl FnOnce() -> T) -> T {
    LONG.fetch_add(1, Ordering::Relaxed);
    let done = aside(work);
    LONG.fetch_sub(1, Ordering::Relaxed);
    done
}

/// Locks something that is held for a moment only, unless something long is done meanwhile.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let wait = || mutex.lock().unwrap_or_else(PoisonError::into_inner);
    match mutex.try_lock() {
        Ok(held) => held,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) if LONG.load(Ordering::Relaxed) > 0 => aside(wait),
        Err(TryLockError::WouldBlock) => wait(),
    }
}

/// Does something that takes long or waits. On a runtime with one thread there is nowhere else to
/// go, and the order of everything stays what it is.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    if others_go_on() { tokio::task::block_in_place(work) } else { work() }
}

/// Whether others go on while something is done aside.
pub(crate) fn others_go_on() -> bool {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    matches!(flavor, Ok(RuntimeFlavor::MultiThread))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// One worker: whatever is done there and not aside keeps everything else from happening.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_somebody_works_aside() {
        let done = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let working = tokio::spawn({
            let done = done.clone();
            async move {
                // The limit only ends a run that fails.
                aside(|| told.recv_timeout(Duration::from_secs(10))).unwrap();
                done.store(true, Ordering::SeqCst);
            }
        });
        tokio::spawn(async move { tell.send(()).unwrap() }).await.unwrap();
        working.await.unwrap();
        assert!(done.load(Ordering::SeqCst));
    }

    #[test]
    fn an_object_is_large_by_its_nodes_or_by_its_texts() {
        let is_small = |value: &Value| is_within(value, &mut SMALL.clone());
        assert!(is_small(&json!({"a": [1, 2, {"b": "c"}]})));
        assert!(!is_small(&json!({"a": "x".repeat(SMALL)})));
        assert!(!is_small(&json!(vec![0; SMALL])));
    }

    struct Nothing;

    impl Scope for Nothing {
        fn variable(&self, _name: &str) -> Option<homeostat_cel::Value> {
            None
        }
    }

    #[test]
    fn a_long_expression_gives_and_costs_what_it_would_at_once() {
        for text in
            ["1 + 1 == 2", "lists.range(9000).all(x, x >= 0)", "lists.range(400000).all(x, x >= 0)"]
        {
            let program = Program::compile(text, &[]).unwrap();
            let (at_once, aside) = (program.run(&Nothing), run(&program, &Nothing));
            assert_eq!((at_once.result, at_once.cost), (aside.result, aside.cost), "{text}");
        }
    }
}

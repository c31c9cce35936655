//! Who makes commits durable: the thread of the log, or the writer itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};

use super::{
    Commit, Expect, Limits, Loaded, Snapshot, Storage, StorageError, Store, StoreError, draft, key,
};

/// A storage that tells who uses it, and waits to be told to go on.
#[derive(Debug)]
struct Watched {
    writes: Sender<ThreadId>,
    go_on: Receiver<()>,
}

impl Storage for Watched {
    fn load(&mut self, _: &mut dyn FnMut(Loaded)) -> Result<(), StorageError> {
        Ok(())
    }

    fn append(&mut self, _: &[Commit], _: &Snapshot) -> Result<(), StorageError> {
        self.writes.send(thread::current().id()).unwrap();
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let failed = StorageError::Io { what: "write", path: "log".into(), source };
        self.go_on.recv().map_err(|_| failed)
    }
}

fn watched() -> (Store, Receiver<ThreadId>, Sender<()>) {
    let ((writes, written), (tell, go_on)) = (channel(), channel());
    let store = Store::open(Limits::default(), Watched { writes, go_on }).unwrap();
    (store, written, tell)
}

fn put(store: &Store, name: &str) -> u64 {
    store.put("maps", &key(name), Expect::Absent, draft(1)).unwrap().revision
}

#[test]
fn a_writer_that_is_alone_makes_its_commits_durable_itself_and_all_at_once() {
    let (store, written, go_on) = watched();
    go_on.send(()).unwrap();
    let last = store.in_place(|| {
        put(&store, "a");
        put(&store, "b")
    });
    assert_eq!(store.revision(), last);
    assert_eq!(written.try_iter().collect::<Vec<_>>(), [thread::current().id()]);
}

#[tokio::test]
async fn a_writer_that_is_not_alone_leaves_its_commits_to_the_others() {
    let (store, written, go_on) = watched();
    let first = put(&store, "a");
    let other = written.recv().unwrap();
    let second = store.in_place(|| put(&store, "b"));
    assert!(store.revision() < first);
    go_on.send(()).unwrap();
    go_on.send(()).unwrap();
    store.wait_for(second).await.unwrap();
    assert_eq!(written.try_iter().collect::<Vec<_>>(), [other]);
    assert_ne!(other, thread::current().id());
}

#[tokio::test]
async fn commits_that_come_while_a_writer_is_at_it_are_written_by_the_thread() {
    let (store, written, go_on) = watched();
    let alone = thread::spawn({
        let store = store.clone();
        move || store.in_place(|| put(&store, "a"))
    });
    let writer = written.recv().unwrap();
    assert_eq!(writer, alone.thread().id());
    let second = put(&store, "b");
    go_on.send(()).unwrap();
    go_on.send(()).unwrap();
    store.wait_for(second).await.unwrap();
    assert_ne!(written.recv().unwrap(), writer);
    alone.join().unwrap();
}

#[tokio::test]
async fn what_was_committed_before_a_panic_is_made_durable_all_the_same() {
    let (store, written, go_on) = watched();
    go_on.send(()).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        store.in_place(|| {
            put(&store, "a");
            panic!("after the commit");
        });
    }));
    assert!(panicked.is_err());
    store.settle().await.unwrap();
    assert_ne!(written.recv().unwrap(), thread::current().id());
}

#[tokio::test]
async fn a_storage_that_fails_a_writer_ends_all_writing() {
    let (store, _written, go_on) = watched();
    drop(go_on);
    let revision = store.in_place(|| put(&store, "a"));
    assert!(store.revision() < revision);
    assert_eq!(store.settle().await, Err(StoreError::Failed));
    let refused = store.put("maps", &key("b"), Expect::Absent, draft(1));
    assert_eq!(refused, Err(StoreError::Failed));
}

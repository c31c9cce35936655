//! `homeostat up` on a terminal. The demo: the window shows the picture and nothing else, whatever
//! becomes of its size, and the terminal is given back as it was.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod running;

use std::fs::{self, File};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use running::eventually;
use tempfile::TempDir;

const OTHER_SCREEN: &str = "\x1b[?1049h";
const ORDINARY_SCREEN: &str = "\x1b[?1049l";
const HOME: &str = "\x1b[H";
const EMPTY: &str = "\x1b[2K";

/// `homeostat up` in a window.
struct OnTerminal {
    child: Child,
    window: File,
    seen: Arc<Mutex<Vec<u8>>>,
    _folder: TempDir,
}

impl OnTerminal {
    fn start(ws_row: u16, ws_col: u16) -> Self {
        Self::start_with(ws_row, ws_col, &["--demo", "--with", "at"])
    }

    fn start_with(ws_row: u16, ws_col: u16, arguments: &[&str]) -> Self {
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_homeostat"))
            .arg("up")
            .args(arguments)
            .arg("--kubeconfig")
            .arg(folder.path().join("kubeconfig"))
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        drop(pty.slave);
        let (window, seen) = (File::from(pty.master), Arc::new(Mutex::new(Vec::new())));
        let (mut output, sink) = (window.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut piece) {
                sink.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Self { child, window, seen, _folder: folder }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Everything that was written to the terminal.
    fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// What the window shows once it shows nothing but lines of one picture, if it does: as if the
    /// terminal had filled it with other lines when it began.
    fn shown_since(&self, begin: usize, rows: u16) -> Option<Vec<String>> {
        let mut window = vec!["stale".to_owned(); rows.into()];
        let seen = String::from_utf8_lossy(&self.seen.lock().unwrap()[begin..]).into_owned();
        for picture in seen.split(HOME).skip(1) {
            let lines: Vec<&str> = picture.split("\r\n").collect();
            if lines.len() > window.len() {
                // It was drawn for the window before, and moves all that is in this one up.
                window.fill("stale".to_owned());
                continue;
            }
            for (row, line) in window.iter_mut().zip(lines) {
                // The terminal adds a return of its own.
                line.strip_prefix(EMPTY)?.trim_end_matches('\r').clone_into(row);
            }
        }
        (!window.iter().any(|line| line == "stale")).then_some(window)
    }

    /// Gives the window another size; where what is written after that begins.
    fn resize(&self, ws_row: u16, ws_col: u16) -> usize {
        let size = rustix::termios::Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        // Held, so that a picture is either before it or after it.
        let seen = self.seen.lock().unwrap();
        rustix::termios::tcsetwinsize(&self.window, size).unwrap();
        let begin = seen.len();
        drop(seen);
        // Only the terminal of a session tells its processes.
        kill(self.pid(), Signal::SIGWINCH).unwrap();
        begin
    }

    fn shows(&self, text: &str) {
        eventually(text, || self.seen().contains(text).then_some(()));
    }

    /// One letter for what the process does: `T` is stopped.
    fn state(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        rest[..1].to_owned()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = kill(self.pid(), Signal::SIGCONT);
        let _ = kill(self.pid(), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_window_that_changes_its_size_shows_the_picture_and_nothing_else() {
    let demo = OnTerminal::start(24, 100);
    demo.shows("At greeting");
    for (rows, columns) in [(6, 30), (40, 120), (12, 50), (24, 100)] {
        let begin = demo.resize(rows, columns);
        let window = eventually(&format!("the picture fits {rows} x {columns}"), || {
            let window = demo.shown_since(begin, rows)?;
            let fits = |line: &String| line.chars().count() <= usize::from(columns);
            window.iter().all(fits).then_some(window)
        });
        let text = window.join("\n");
        assert!(text.contains("At greeting"), "{text}");
        assert!(text.contains("In another terminal: export"), "{text}");
    }
}

#[test]
fn the_last_picture_stays_on_the_ordinary_screen_and_the_end_is_said() {
    let mut demo = OnTerminal::start(24, 100);
    demo.shows("At greeting");
    kill(demo.pid(), Signal::SIGINT).unwrap();
    assert_eq!(demo.child.wait().unwrap().code(), Some(0));
    demo.shows("stopped\r\n");
    let seen = demo.seen();
    let (before, after) = seen.rsplit_once(ORDINARY_SCREEN).unwrap();
    assert_eq!(before.matches(OTHER_SCREEN).count(), 1);
    assert!(before.split_once(OTHER_SCREEN).unwrap().0.contains("ready "));
    assert!(after.starts_with("At greeting") && after.contains("ending everything"), "{after:?}");
    assert!(!after.contains('\x1b'), "{after:?}");
}

#[test]
fn a_demo_that_is_stopped_gives_the_terminal_back_until_it_goes_on() {
    let demo = OnTerminal::start(24, 100);
    demo.shows("At greeting");
    kill(demo.pid(), Signal::SIGTSTP).unwrap();
    eventually("it stops", || (demo.state() == "T").then_some(()));
    demo.shows(ORDINARY_SCREEN);
    kill(demo.pid(), Signal::SIGCONT).unwrap();
    eventually("it goes on", || {
        let seen = demo.seen();
        let (_, after) = seen.rsplit_once(ORDINARY_SCREEN)?;
        (after.contains(OTHER_SCREEN) && after.contains("At greeting")).then_some(())
    });
}

#[test]
fn who_starts_a_cluster_at_a_terminal_is_told_what_to_do_with_it() {
    let mut up = OnTerminal::start_with(24, 100, &[]);
    up.shows("Ctrl-C");
    let seen = up.seen();
    let lines: Vec<&str> = seen.lines().collect();
    let kubeconfig = lines[0].strip_prefix("ready ").unwrap();
    assert!(lines[1].ends_with(&format!("export KUBECONFIG={kubeconfig}")), "{seen}");
    assert!(lines[2].contains("kubectl "), "{seen}");
    kill(up.pid(), Signal::SIGINT).unwrap();
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
    up.shows("stopped\r\n");
}

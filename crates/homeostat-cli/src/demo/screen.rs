//! Where the view is shown: the whole window of a terminal, or a line per change elsewhere.
//!
//! A terminal whose window changes breaks the lines on it anew and moves them to places that nobody
//! can tell. So the picture has the terminal's other screen, which is only as large as the window,
//! and is drawn whole each time. At the end the ordinary screen is back, with the last picture on it.

use console::{Term, style};
use jiff::Timestamp;
use nix::sys::signal::{Signal, raise};
use nix::unistd::{getpgrp, tcgetpgrp};

use super::calls::{Call, Calls};
use super::feed::Deed;
use super::health::Health;
use super::picture::{Window, picture, timed};
use super::plain::Plain;
use super::tree::Fact;
use crate::log;
use crate::say::say;

/// The other screen, without a cursor; and back.
const OTHER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const ORDINARY_SCREEN: &str = "\x1b[?25h\x1b[?1049l";

/// The place of the first letter; and an empty line, whatever was on it.
const HOME: &str = "\x1b[H";
const EMPTY: &str = "\x1b[2K";

/// More than this fit no window; older ones are told by `kubectl events`.
const MOST_DEEDS: usize = 100;

/// Where the view goes.
pub(crate) enum Screen {
    Terminal(Picture),
    Lines(Plain),
}

impl Screen {
    /// The heading stays in sight on a terminal; elsewhere it is said once nothing moves any more.
    pub(crate) fn new(heading: String) -> Self {
        let terminal = Term::stdout();
        if terminal.features().is_attended() && !console::is_dumb() {
            let (facts, deeds) = (Vec::new(), Vec::new());
            Self::Terminal(Picture { terminal, heading, facts, deeds, up: false })
        } else {
            Self::Lines(Plain::ending_with(heading))
        }
    }

    /// What its user may ask.
    pub(crate) fn calls(&self) -> Calls {
        match self {
            Self::Terminal(_) => Calls::listen(),
            Self::Lines(_) => Calls::default(),
        }
    }

    /// Does what was asked, up to the picture, which is to be shown again.
    pub(crate) fn heed(&mut self, call: Call) {
        if let (Self::Terminal(picture), Call::Rest) = (self, call) {
            picture.rest();
        }
    }

    /// Whether its reader has yet to be told what to do next.
    pub(crate) fn owes_advice(&self) -> bool {
        matches!(self, Self::Lines(plain) if plain.owes_advice())
    }

    /// Tells its reader now, whatever is still on its way.
    pub(crate) fn advise(&mut self, now: Timestamp) {
        if let Self::Lines(plain) = self {
            plain.advise().iter().for_each(|words| say(format_args!("{}", timed(now, words))));
        }
    }

    /// Shows how things are, and what was done since it was asked last.
    pub(crate) fn show(&mut self, facts: Vec<Fact>, news: Vec<Deed>, now: Timestamp) {
        match self {
            Self::Terminal(picture) => {
                picture.facts = facts;
                picture.deeds.extend(news);
                picture.deeds.drain(..picture.deeds.len().saturating_sub(MOST_DEEDS));
                picture.draw();
            }
            Self::Lines(plain) => {
                let states = plain.news(&facts).into_iter().map(|words| Deed { at: now, words });
                for Deed { at, words } in news.into_iter().chain(states) {
                    say(format_args!("{}", timed(at, &words)));
                }
            }
        }
    }
}

/// The picture on a terminal.
pub(crate) struct Picture {
    terminal: Term,
    heading: String,
    facts: Vec<Fact>,
    deeds: Vec<Deed>,
    /// Whether the other screen is there.
    up: bool,
}

impl Picture {
    fn draw(&mut self) {
        if !is_in_front() {
            return;
        }
        if !self.up {
            self.up = true;
            log::hold();
            self.write(OTHER_SCREEN);
        }
        let window = self.window();
        let mut lines = picture(&self.heading, &self.facts, &self.deeds, window);
        lines.resize(window.height, String::new());
        // A line that is full to its last place must not be emptied after that.
        let lines: Vec<String> =
            lines.iter().map(|line| format!("{EMPTY}{}", painted(line))).collect();
        self.write(&format!("{HOME}{}", lines.join("\r\n")));
    }

    /// Stops the program, as its user asked, and gives the terminal back until it goes on.
    fn rest(&mut self) {
        self.take_down();
        // A program cannot refuse this one.
        let _ = raise(Signal::SIGSTOP);
    }

    fn take_down(&mut self) {
        if self.up {
            self.up = false;
            self.write(ORDINARY_SCREEN);
            log::release();
        }
    }

    fn window(&self) -> Window {
        let (height, width) = self.terminal.size();
        Window { width: width.into(), height: height.into() }
    }

    /// Whoever looked may have gone: the cluster goes on without.
    fn write(&self, text: &str) {
        let _ = self.terminal.write_str(text);
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        self.take_down();
        // What does not fit the window can be read by going back.
        let window = Window { height: usize::MAX, ..self.window() };
        for line in picture("", &self.facts, &self.deeds, window) {
            say(format_args!("{}", painted(&line)));
        }
    }
}

/// Whether the terminal is ours: a job in the background leaves it alone.
fn is_in_front() -> bool {
    // Where nobody can tell, there are no jobs either.
    tcgetpgrp(std::io::stdout()).ok().is_none_or(|front| front == getpgrp())
}

/// The line with its mark in the mark's colour, where the terminal has colours and may use them.
fn painted(line: &str) -> String {
    for health in [Health::Failing, Health::OnItsWay, Health::Well] {
        let mark = health.mark();
        let Some((before, after)) = line.split_once(mark) else { continue };
        let mark = match health {
            Health::Failing => style(mark).red().bold(),
            Health::OnItsWay => style(mark).yellow(),
            Health::Well => style(mark).green(),
        };
        return format!("{before}{mark}{after}");
    }
    line.to_owned()
}

//! The queue again, written naively: lists that are searched and sorted. The property test drives
//! it and the real machine with the same calls and expects the same answers.

use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::{Debounce, Lane, Machine, Priority, Rate, Rules};
use crate::trigger::Trigger;

#[derive(Debug, Clone)]
enum Call {
    Add { key: u8, source: u8, low: bool },
    AddAfter { key: u8, delay: u8 },
    AddFailed { key: u8, delay: u8 },
    Take,
    Done { key: u8 },
    Forget { key: u8 },
    Mended { key: u8 },
    StrikeOff { key: u8 },
    Pass { time: u8 },
    Pause(bool),
    Close,
    Clear,
}

fn call() -> impl Strategy<Value = Call> {
    let key = 0_u8..5;
    prop_oneof![
        4 => (key.clone(), 0_u8..4, any::<bool>())
            .prop_map(|(key, source, low)| Call::Add { key, source, low }),
        3 => (key.clone(), 0_u8..6).prop_map(|(key, delay)| Call::AddAfter { key, delay }),
        3 => (key.clone(), 0_u8..6).prop_map(|(key, delay)| Call::AddFailed { key, delay }),
        6 => Just(Call::Take),
        5 => key.clone().prop_map(|key| Call::Done { key }),
        1 => key.clone().prop_map(|key| Call::Forget { key }),
        1 => key.clone().prop_map(|key| Call::Mended { key }),
        2 => key.prop_map(|key| Call::StrikeOff { key }),
        3 => (0_u8..4).prop_map(|time| Call::Pass { time }),
        2 => any::<bool>().prop_map(Call::Pause),
        1 => Just(Call::Close),
        1 => Just(Call::Clear),
    ]
}

/// What a queue may be told about all its keys.
#[derive(Debug, Clone, Default)]
struct Told {
    lanes: bool,
    /// Quiet, at most.
    debounce: Option<(u64, u64)>,
    /// Every, burst.
    rate: Option<(u64, u64)>,
}

impl Told {
    fn rules(&self) -> Rules<u8> {
        let debounce = self
            .debounce
            .map(|(quiet, at_most)| Debounce { quiet: seconds(quiet), at_most: seconds(at_most) });
        let rate = self.rate.map(|(every, burst)| Rate {
            every: seconds(every),
            burst: u32::try_from(burst).unwrap(),
        });
        let one: fn(&u8) -> Lane<'_> = |_| None;
        let lane = if self.lanes {
            |key: &u8| Some(["0", "1", "2"][usize::from(lane(*key))])
        } else {
            one
        };
        Rules { lane, debounce, rate, ..Rules::default() }
    }
}

fn told() -> impl Strategy<Value = Told> {
    let debounce = proptest::option::of((0_u64..4, 0_u64..8));
    let rate = proptest::option::of((0_u64..4, 1_u64..4));
    (any::<bool>(), debounce, rate).prop_map(|(lanes, debounce, rate)| Told {
        lanes,
        debounce,
        rate,
    })
}

fn lane(key: u8) -> u8 {
    key % 3
}

/// Why a key waits.
#[derive(Debug, Clone)]
enum Why {
    Asked(Trigger),
    Backoff,
    Quiet { latest: u64, priority: Priority },
}

/// When a key becomes ready, in which order it asked, and why.
#[derive(Debug, Clone)]
struct Timer {
    due: u64,
    place: u64,
    why: Why,
}

#[derive(Debug, Default, Clone)]
struct Key {
    ready: Option<(Priority, u64)>,
    timer: Option<Timer>,
    running: bool,
    /// To be run once more at once.
    again: Option<Priority>,
    /// To be run once more at that time, but no later than the other.
    later: Option<(u64, u64, Priority)>,
    triggers: Vec<Trigger>,
    failures: u32,
    early: u32,
}

#[derive(Debug, Default)]
struct Model {
    told: Told,
    keys: [Key; 5],
    /// Whose turn it is, for each priority.
    turns: [Vec<u8>; 2],
    /// The time saved up for the rate, and when it was last counted.
    saved: (u64, u64),
    calls: u64,
    normal_in_a_row: u32,
    paused: bool,
    closed: bool,
}

impl Model {
    fn new(told: Told) -> Self {
        let saved = (told.rate.map_or(0, |(every, burst)| every * burst), 0);
        Self { told, saved, ..Self::default() }
    }

    fn place(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    fn lane(&self, key: u8) -> u8 {
        if self.told.lanes { lane(key) } else { 0 }
    }

    fn ready(&mut self, key: u8, priority: Priority) {
        let (place, lane) = (self.place(), self.lane(key));
        self.keys[usize::from(key)].ready = Some((priority, place));
        let turns = &mut self.turns[priority as usize];
        if !turns.contains(&lane) {
            turns.push(lane);
        }
    }

    /// The ready keys of a lane, first come first.
    fn in_lane(&self, priority: Priority, lane: u8) -> Vec<u8> {
        let mut keys: Vec<(u64, u8)> = (0..5_u8)
            .filter(|key| self.lane(*key) == lane)
            .filter_map(|key| Some((self.keys[usize::from(key)].ready?, key)))
            .filter(|((ready, _), _)| *ready == priority)
            .map(|((_, place), key)| (place, key))
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    fn drop_empty_lanes(&mut self, priority: Priority) {
        let mut turns = std::mem::take(&mut self.turns[priority as usize]);
        turns.retain(|lane| !self.in_lane(priority, *lane).is_empty());
        self.turns[priority as usize] = turns;
    }

    /// Timers that are due become ready one by one, the earliest first.
    fn release(&mut self, now: u64) {
        loop {
            let due = (0..5_u8)
                .filter(|key| !self.keys[usize::from(*key)].running)
                .filter_map(|key| {
                    self.keys[usize::from(key)].timer.as_ref().map(|t| (t.due, t.place, key))
                })
                .filter(|(due, _, _)| *due <= now)
                .min();
            let Some((_, _, name)) = due else { return };
            let key = &mut self.keys[usize::from(name)];
            let mut priority = Priority::Normal;
            match key.timer.take().unwrap().why {
                Why::Asked(trigger) => note(&mut key.triggers, trigger),
                Why::Quiet { priority: held, .. } => priority = held,
                Why::Backoff => {
                    key.failures += 1;
                    key.early = 0;
                    let reason = Trigger::Retry { attempt: key.failures };
                    note(&mut key.triggers, reason);
                }
            }
            self.ready(name, priority);
        }
    }

    fn add(&mut self, name: u8, trigger: Trigger, priority: Priority, now: u64) {
        self.release(now);
        if self.closed {
            return;
        }
        let debounce = self.told.debounce.filter(|_| trigger != Trigger::Requeued);
        let key = &mut self.keys[usize::from(name)];
        note(&mut key.triggers, trigger);
        if key.running {
            match (debounce, key.again) {
                (Some((quiet, at_most)), None) => {
                    let (_, latest, old) = key.later.unwrap_or((0, now + at_most, priority));
                    key.later = Some(((now + quiet).min(latest), latest, priority.max(old)));
                }
                _ => {
                    let later = key.later.take().map(|(_, _, old)| old);
                    key.again = key.again.max(later).max(Some(priority));
                }
            }
            return;
        }
        if matches!(key.timer, Some(Timer { why: Why::Backoff, .. })) {
            if key.early == 5 {
                return;
            }
            key.early += 1;
        }
        let held = match &key.timer {
            Some(Timer { why: Why::Quiet { latest, priority }, .. }) => Some((*latest, *priority)),
            _ => None,
        };
        if key.ready.is_some_and(|(old, _)| old >= priority) {
            return;
        }
        match debounce.filter(|_| key.ready.is_none()) {
            Some((quiet, at_most)) => {
                let limit = key.timer.as_ref().map_or(u64::MAX, |timer| timer.due);
                let fresh = ((now + at_most).min(limit), priority);
                let (latest, old) = held.unwrap_or(fresh);
                let why = Why::Quiet { latest, priority: priority.max(old) };
                let due = (now + quiet).min(latest);
                let place = self.place();
                self.keys[usize::from(name)].timer = Some(Timer { due, place, why });
                self.release(now);
            }
            None => {
                key.timer = None;
                let lifted = key.ready.take().is_some();
                self.ready(name, held.map_or(priority, |(_, old)| old.max(priority)));
                if lifted {
                    self.drop_empty_lanes(Priority::Low);
                }
            }
        }
    }

    fn add_at(&mut self, name: u8, why: Why, due: u64, now: u64) {
        self.release(now);
        if self.closed {
            return;
        }
        let place = self.place();
        let key = &mut self.keys[usize::from(name)];
        if key.ready.is_none() && key.timer.as_ref().is_none_or(|old| due < old.due) {
            key.timer = Some(Timer { due, place, why });
        }
        self.release(now);
    }

    fn take(&mut self, now: u64) -> Option<(u8, Vec<Trigger>, u32)> {
        self.release(now);
        if self.paused || self.turns.iter().all(Vec::is_empty) {
            return None;
        }
        if let Some((every, burst)) = self.told.rate {
            let (saved, at) = self.saved;
            self.saved = ((saved + now - at).min(every * burst), now);
            if self.saved.0 < every {
                return None;
            }
            self.saved.0 -= every;
        }
        let [low, normal] = &self.turns;
        let is_low = normal.is_empty() || (self.normal_in_a_row >= 8 && !low.is_empty());
        let priority = if is_low { Priority::Low } else { Priority::Normal };
        self.normal_in_a_row = if is_low { 0 } else { self.normal_in_a_row + 1 };
        let lane = self.turns[priority as usize].remove(0);
        let name = self.in_lane(priority, lane)[0];
        self.turns[priority as usize].push(lane);
        let taken = &mut self.keys[usize::from(name)];
        taken.ready = None;
        taken.running = true;
        let (triggers, failures) = (std::mem::take(&mut taken.triggers), taken.failures);
        self.drop_empty_lanes(priority);
        Some((name, triggers, failures))
    }

    fn done(&mut self, name: u8, now: u64) {
        self.release(now);
        let (place, closed) = (self.place(), self.closed);
        let key = &mut self.keys[usize::from(name)];
        if !key.running {
            return;
        }
        key.running = false;
        let mut timer = key.timer.take().filter(|_| !closed);
        let (mut again, mut later) = (key.again.take(), key.later.take());
        let is_backoff = matches!(timer, Some(Timer { why: Why::Backoff, .. }));
        if (again.is_some() || later.is_some()) && is_backoff {
            if key.early == 5 {
                (again, later) = (None, None);
            } else {
                key.early += 1;
            }
        }
        if let Some((due, latest, priority)) = later {
            if closed {
                again = Some(priority);
            } else {
                let limit = timer.map_or(u64::MAX, |timer| timer.due);
                let why = Why::Quiet { latest: latest.min(limit), priority };
                timer = Some(Timer { due: due.min(limit), place, why });
            }
        }
        if let Some(priority) = again {
            self.ready(name, priority);
        } else if let Some(timer) = timer {
            key.timer = Some(Timer { place, ..timer });
        }
        self.release(now);
    }

    fn close(&mut self) {
        self.closed = true;
        let mut waiting: Vec<(u64, u64, u8)> = (0..5_u8)
            .filter(|key| !self.keys[usize::from(*key)].running)
            .filter_map(|key| {
                self.keys[usize::from(key)].timer.as_ref().map(|t| (t.due, t.place, key))
            })
            .collect();
        waiting.sort_unstable();
        for (_, _, name) in waiting {
            let key = &mut self.keys[usize::from(name)];
            if let Some(Timer { why: Why::Quiet { priority, .. }, .. }) = key.timer.take() {
                self.ready(name, priority);
            } else {
                // A queue that will not run it again does not remember its failures.
                (key.failures, key.early) = (0, 0);
                key.triggers.clear();
            }
        }
    }
}

impl Model {
    fn strike_off(&mut self, name: u8) -> bool {
        let key = &mut self.keys[usize::from(name)];
        if !self.paused || key.running {
            return false;
        }
        *key = Key::default();
        self.drop_empty_lanes(Priority::Low);
        self.drop_empty_lanes(Priority::Normal);
        true
    }

    fn clear(&mut self) {
        self.turns = Default::default();
        for key in &mut self.keys {
            if key.ready.take().is_some() {
                *key = Key::default();
            }
            if key.running {
                (key.again, key.later) = (None, None);
                key.triggers.clear();
            }
        }
    }

    fn count(&self, is: impl Fn(&Key) -> bool) -> usize {
        self.keys.iter().filter(|key| is(key)).count()
    }

    fn is_over(&self) -> bool {
        self.closed && (self.paused || self.count(|key| key.ready.is_some()) == 0)
    }

    /// When a call that gave nothing may give something.
    fn next_due(&self) -> Option<u64> {
        let waiting = self.keys.iter().filter(|key| !key.running);
        let timer = waiting.filter_map(|key| Some(key.timer.as_ref()?.due)).min();
        let held = !self.paused && self.count(|key| key.ready.is_some()) > 0;
        let (saved, at) = self.saved;
        let turn =
            self.told.rate.filter(|_| held).map(|(every, _)| at + every.saturating_sub(saved));
        timer.into_iter().chain(turn).min()
    }
}

fn note(triggers: &mut Vec<Trigger>, trigger: Trigger) {
    if !triggers.contains(&trigger) {
        triggers.push(trigger);
    }
}

fn seconds(time: u64) -> Duration {
    Duration::from_secs(time)
}

proptest! {
    #![proptest_config(Config { cases: 10_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_machine_answers_as_the_naive_model_does(
        told in told(),
        calls in proptest::collection::vec(call(), 1..60),
    ) {
        let mut machine = Machine::<u8>::new(told.rules());
        let mut model = Model::new(told);
        let mut now = 0_u64;
        for call in calls {
            match call {
                Call::Add { key, source, low } => {
                    let priority = if low { Priority::Low } else { Priority::Normal };
                    // One in four is no news, which a debounce lets through.
                    let news = Trigger::Source(source.to_string());
                    let trigger = if source == 3 { Trigger::Requeued } else { news };
                    machine.add(key, trigger.clone(), priority, seconds(now));
                    model.add(key, trigger, priority, now);
                }
                Call::AddAfter { key, delay } => {
                    let due = now + u64::from(delay);
                    machine.add_at(key, Trigger::Timer, seconds(due), seconds(now));
                    model.add_at(key, Why::Asked(Trigger::Timer), due, now);
                }
                Call::AddFailed { key, delay } => {
                    machine.add_failed(key, seconds(u64::from(delay)), seconds(now));
                    model.add_at(key, Why::Backoff, now + u64::from(delay), now);
                }
                Call::Take => {
                    let item = machine.take(seconds(now));
                    let taken = item.map(|item| (item.key, item.triggers.to_vec(), item.failures));
                    assert_eq!(taken, model.take(now));
                }
                Call::Done { key } => {
                    machine.done(&key, || seconds(now));
                    model.done(key, now);
                }
                Call::Forget { key } => {
                    machine.forget(&key);
                    model.keys[usize::from(key)].failures = 0;
                    model.keys[usize::from(key)].early = 0;
                }
                Call::Mended { key } => {
                    machine.mended(&key);
                    model.keys[usize::from(key)].early = 0;
                }
                Call::StrikeOff { key } => {
                    assert_eq!(machine.strike_off(&key), model.strike_off(key));
                }
                Call::Pass { time } => now += u64::from(time),
                Call::Pause(paused) => {
                    machine.pause(paused);
                    model.paused = paused;
                }
                Call::Close => {
                    machine.close();
                    model.close();
                }
                Call::Clear => {
                    machine.clear();
                    model.clear();
                }
            }
            let (ready, running) = (model.count(|key| key.ready.is_some()), model.count(|key| key.running));
            assert_eq!((machine.ready(), machine.running()), (ready, running));
            let waiting = model.count(|key| !key.running && key.timer.is_some());
            assert_eq!(machine.waiting(), waiting);
            // A turn that has been free for long is free now.
            let due = machine.next_due().map(|due| due.max(seconds(now)));
            assert_eq!(due, model.next_due().map(|due| seconds(due.max(now))));
            let failing = model.count(|key| key.failures > 0 || key.early > 0);
            assert_eq!(machine.failing(), failing);
            let over = model.is_over();
            assert_eq!((machine.is_over(), machine.is_drained()), (over, over && running == 0));
            for (key, known) in (0_u8..).zip(&model.keys) {
                assert_eq!(machine.failures(&key), known.failures);
            }
        }
    }
}

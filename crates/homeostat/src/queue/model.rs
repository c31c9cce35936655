//! The queue again, written naively: lists that are searched and sorted. The property test drives
//! it and the real machine with the same calls and expects the same answers.

use std::time::Duration;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::{Machine, Priority};
use crate::trigger::Trigger;

#[derive(Debug, Clone)]
enum Call {
    Add { key: u8, source: u8, low: bool },
    AddAfter { key: u8, delay: u8 },
    AddFailed { key: u8, delay: u8 },
    Take,
    Done { key: u8 },
    Forget { key: u8 },
    Pass { time: u8 },
    Pause(bool),
    Close,
}

fn call() -> impl Strategy<Value = Call> {
    let key = 0_u8..5;
    prop_oneof![
        4 => (key.clone(), 0_u8..3, any::<bool>())
            .prop_map(|(key, source, low)| Call::Add { key, source, low }),
        3 => (key.clone(), 0_u8..6).prop_map(|(key, delay)| Call::AddAfter { key, delay }),
        3 => (key.clone(), 0_u8..6).prop_map(|(key, delay)| Call::AddFailed { key, delay }),
        6 => Just(Call::Take),
        5 => key.clone().prop_map(|key| Call::Done { key }),
        1 => key.prop_map(|key| Call::Forget { key }),
        3 => (0_u8..4).prop_map(|time| Call::Pass { time }),
        1 => any::<bool>().prop_map(Call::Pause),
        1 => Just(Call::Close),
    ]
}

/// When a key becomes ready, in which order it asked, and why; `None` means a served backoff.
type Timer = (u64, u64, Option<Trigger>);

#[derive(Debug, Default, Clone)]
struct Key {
    ready: Option<(Priority, u64)>,
    timer: Option<Timer>,
    running: bool,
    again: Option<Priority>,
    triggers: Vec<Trigger>,
    failures: u32,
    early: u32,
}

#[derive(Debug, Default)]
struct Model {
    keys: [Key; 5],
    calls: u64,
    normal_in_a_row: u32,
    paused: bool,
    closed: bool,
}

impl Model {
    /// Timers that are due become ready one by one, the earliest first.
    fn release(&mut self, now: u64) {
        loop {
            let due = (0..5)
                .filter(|key| !self.keys[*key].running)
                .filter_map(|key| self.keys[key].timer.as_ref().map(|t| (t.0, t.1, key)))
                .filter(|(due, _, _)| *due <= now)
                .min();
            let Some((_, _, key)) = due else { return };
            self.calls += 1;
            let place = self.calls;
            let key = &mut self.keys[key];
            let reason = key.timer.take().and_then(|timer| timer.2).unwrap_or_else(|| {
                key.failures += 1;
                key.early = 0;
                Trigger::Retry { attempt: key.failures }
            });
            key.ready = Some((Priority::Normal, place));
            note(&mut key.triggers, reason);
        }
    }

    fn add(&mut self, key: u8, trigger: Trigger, priority: Priority, now: u64) {
        self.release(now);
        if self.closed {
            return;
        }
        self.calls += 1;
        let key = &mut self.keys[usize::from(key)];
        note(&mut key.triggers, trigger);
        if key.running {
            key.again = key.again.max(Some(priority));
            return;
        }
        if matches!(key.timer, Some((_, _, None))) {
            if key.early == 5 {
                return;
            }
            key.early += 1;
        }
        key.timer = None;
        if key.ready.is_none_or(|(old, _)| old < priority) {
            key.ready = Some((priority, self.calls));
        }
    }

    fn add_at(&mut self, key: u8, trigger: Option<Trigger>, due: u64, now: u64) {
        self.release(now);
        if self.closed {
            return;
        }
        self.calls += 1;
        let key = &mut self.keys[usize::from(key)];
        if key.ready.is_none() && key.timer.as_ref().is_none_or(|old| due < old.0) {
            key.timer = Some((due, self.calls, trigger));
        }
        self.release(now);
    }

    fn take(&mut self, now: u64) -> Option<(u8, Vec<Trigger>, u32)> {
        self.release(now);
        if self.paused {
            return None;
        }
        let first = |wanted: Priority| {
            let ready = |key: &u8| {
                let (priority, place) = self.keys[usize::from(*key)].ready?;
                (priority == wanted).then_some((place, *key))
            };
            (0..5).filter_map(|key| ready(&key)).min().map(|(_, key)| key)
        };
        let (low, normal) = (first(Priority::Low), first(Priority::Normal));
        let key = match (low, normal) {
            (Some(low), _) if self.normal_in_a_row >= 8 => low,
            (_, Some(normal)) => normal,
            (low, None) => low?,
        };
        self.normal_in_a_row = if Some(key) == normal { self.normal_in_a_row + 1 } else { 0 };
        let taken = &mut self.keys[usize::from(key)];
        taken.ready = None;
        taken.running = true;
        Some((key, std::mem::take(&mut taken.triggers), taken.failures))
    }

    fn done(&mut self, key: u8, now: u64) {
        self.release(now);
        self.calls += 1;
        let key = &mut self.keys[usize::from(key)];
        if !key.running {
            return;
        }
        key.running = false;
        if key.again.is_some() && matches!(key.timer, Some((_, _, None))) && !self.closed {
            if key.early == 5 {
                key.again = None;
            } else {
                key.early += 1;
            }
        }
        if let Some(priority) = key.again.take() {
            key.ready = Some((priority, self.calls));
            key.timer = None;
        } else if self.closed {
            key.timer = None;
        } else if let Some(timer) = &mut key.timer {
            timer.1 = self.calls;
        }
        self.release(now);
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
    fn the_machine_answers_as_the_naive_model_does(calls in proptest::collection::vec(call(), 1..60)) {
        let mut machine = Machine::<u8>::default();
        let mut model = Model::default();
        let mut now = 0_u64;
        for call in calls {
            match call {
                Call::Add { key, source, low } => {
                    let priority = if low { Priority::Low } else { Priority::Normal };
                    let trigger = Trigger::Source(source.to_string());
                    machine.add(&key, trigger.clone(), priority, seconds(now));
                    model.add(key, trigger, priority, now);
                }
                Call::AddAfter { key, delay } => {
                    let due = now + u64::from(delay);
                    machine.add_at(&key, Trigger::Timer, seconds(due), seconds(now));
                    model.add_at(key, Some(Trigger::Timer), due, now);
                }
                Call::AddFailed { key, delay } => {
                    machine.add_failed(&key, seconds(u64::from(delay)), seconds(now));
                    model.add_at(key, None, now + u64::from(delay), now);
                }
                Call::Take => {
                    let item = machine.take(seconds(now));
                    let taken = item.map(|item| (item.key, item.triggers, item.failures));
                    assert_eq!(taken, model.take(now));
                }
                Call::Done { key } => {
                    machine.done(&key, seconds(now));
                    model.done(key, now);
                }
                Call::Forget { key } => {
                    machine.forget(&key);
                    model.keys[usize::from(key)].failures = 0;
                    model.keys[usize::from(key)].early = 0;
                }
                Call::Pass { time } => now += u64::from(time),
                Call::Pause(paused) => {
                    machine.pause(paused);
                    model.paused = paused;
                }
                Call::Close => {
                    machine.close();
                    model.closed = true;
                    for key in model.keys.iter_mut().filter(|key| !key.running) {
                        if key.timer.take().is_some() {
                            // A queue that will not run it again does not remember its failures.
                            key.failures = 0;
                            key.early = 0;
                        }
                    }
                }
            }
            let ready = model.keys.iter().filter(|key| key.ready.is_some()).count();
            let running = model.keys.iter().filter(|key| key.running).count();
            assert_eq!((machine.ready(), machine.running()), (ready, running));
            for (key, known) in (0_u8..).zip(&model.keys) {
                assert_eq!(machine.failures(&key), known.failures);
            }
        }
    }
}

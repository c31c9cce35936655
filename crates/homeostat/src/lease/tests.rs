//! Three contenders for one lease, with lost requests, lost answers and skewed clocks.

use std::time::Duration;

use proptest::prelude::{Just, Strategy, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::machine::{Action, Event, Machine, Record, Terms};

const MILLISECOND: Duration = Duration::from_millis(1);

fn terms(identity: &str) -> Terms {
    Terms {
        identity: identity.to_owned(),
        duration: Duration::from_secs(15),
        deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    }
}

/// What becomes of a contender's request.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered,
    AnswerLost,
    NotDone,
}

#[derive(Debug, Clone)]
enum Move {
    /// The contender's request is done, or its wait is over if its time has come.
    Act(usize, Fate),
    /// Time passes, for everybody.
    Pass(u64),
    Stop(usize),
    /// Somebody deletes the lease.
    Delete,
}

fn one_move() -> impl Strategy<Value = Move> {
    let fate = prop_oneof![
        6 => Just(Fate::Answered),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::NotDone),
    ];
    prop_oneof![
        12 => (0_usize..3, fate).prop_map(|(who, fate)| Move::Act(who, fate)),
        6 => (1_u64..4000).prop_map(Move::Pass),
        1 => (4000_u64..20_000).prop_map(Move::Pass),
        1 => (0_usize..3).prop_map(Move::Stop),
        1 => Just(Move::Delete),
    ]
}

struct Contender {
    machine: Machine,
    /// How far its clock is ahead of the others'.
    skew: Duration,
    action: Action,
    since: Duration,
    /// Whether it has seen that there is a lease.
    knows: bool,
}

impl Contender {
    fn step(&mut self, event: Event, now: Duration) {
        self.knows |= matches!(event, Event::Found(Some(_)) | Event::Written(_));
        self.action = self.machine.step(event, now + self.skew, 0.3);
        self.since = now;
    }

    fn leads(&self, now: Duration) -> bool {
        self.machine.leads_until().is_some_and(|until| now + self.skew < until)
    }
}

/// The API: one lease that is replaced only over the version that was read.
#[derive(Default)]
struct Api {
    lease: Option<Record>,
    version: u64,
}

impl Api {
    fn write(&mut self, action: &Action) -> Event {
        let Action::Write { over, holder, duration, transitions, .. } = action else {
            return Event::Failed;
        };
        if self.lease.as_ref().map(|lease| &lease.version) != over.as_ref() {
            return Event::Conflict;
        }
        self.version += 1;
        let version = self.version.to_string();
        self.lease = Some(Record {
            holder: holder.clone(),
            duration: *duration,
            transitions: *transitions,
            version: version.clone(),
        });
        Event::Written(version)
    }
}

fn contenders() -> Vec<Contender> {
    let skews = [0, 3_600_000, 77];
    let contender = |(index, skew): (usize, u64)| Contender {
        machine: Machine::new(terms(&index.to_string())),
        skew: MILLISECOND * u32::try_from(skew).unwrap(),
        action: Action::Wait(Duration::ZERO),
        since: Duration::ZERO,
        knows: false,
    };
    skews.into_iter().enumerate().map(contender).collect()
}

proptest! {
    #![proptest_config(Config { cases: 10_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn there_are_never_two_leaders(moves in proptest::collection::vec(one_move(), 1..120)) {
        let (mut api, mut all, mut now) = (Api::default(), contenders(), Duration::ZERO);
        let mut deleted = false;
        for one in moves {
            match one {
                // Who has never seen it cannot know that it is missing, nor can a request that is
                // on its way; and of two deletions in a row the second may go unnoticed.
                Move::Delete => {
                    let writes = |one: &Contender| matches!(one.action, Action::Write { .. });
                    if !deleted && all.iter().all(|one| one.knows && !writes(one)) {
                        deleted = api.lease.take().is_some();
                    }
                }
                Move::Pass(time) => now += Duration::from_millis(time),
                Move::Stop(who) => {
                    if matches!(all[who].action, Action::Wait(_)) {
                        all[who].step(Event::Stop, now);
                    }
                }
                Move::Act(who, fate) => {
                    let contender = &mut all[who];
                    let answer = match &contender.action {
                        Action::End => continue,
                        Action::Wait(time) if now < contender.since + *time => continue,
                        Action::Wait(_) => Event::Go,
                        Action::Read => match fate {
                            Fate::Answered => Event::Found(api.lease.clone()),
                            Fate::AnswerLost | Fate::NotDone => Event::Failed,
                        },
                        write @ Action::Write { .. } => match fate {
                            Fate::Answered => api.write(write),
                            Fate::AnswerLost => {
                                api.write(write);
                                Event::Failed
                            }
                            Fate::NotDone => Event::Failed,
                        },
                    };
                    contender.step(answer, now);
                }
            }
            let leaders = all.iter().filter(|one| one.leads(now)).count();
            assert!(leaders <= 1, "{leaders} leaders");
        }
    }
}

/// Runs everybody without trouble for so long; says who leads at the end.
fn run(api: &mut Api, all: &mut [Contender], now: &mut Duration, millis: u64) -> Vec<usize> {
    for _ in 0..millis / 10 {
        *now += MILLISECOND * 10;
        for contender in all.iter_mut() {
            let answer = match &contender.action {
                Action::End => continue,
                Action::Wait(time) if *now < contender.since + *time => continue,
                Action::Wait(_) => Event::Go,
                Action::Read => Event::Found(api.lease.clone()),
                write @ Action::Write { .. } => api.write(write),
            };
            contender.step(answer, *now);
        }
    }
    (0..all.len()).filter(|who| all[*who].leads(*now)).collect()
}

#[test]
fn one_leads_the_next_takes_over_when_it_dies_and_at_once_when_it_stops() {
    let (mut api, mut all, mut now) = (Api::default(), contenders(), Duration::ZERO);
    assert_eq!(run(&mut api, &mut all, &mut now, 60_000), [0]);
    // The first one dies: the others wait out its lease, not longer than a retry more.
    all.remove(0);
    assert_eq!(run(&mut api, &mut all, &mut now, 9_000), [0_usize; 0]);
    let next = run(&mut api, &mut all, &mut now, 9_500);
    assert_eq!(next.len(), 1);
    assert_eq!(api.lease.as_ref().map(|lease| lease.transitions), Some(1));
    // The second one stops in order: the last one leads within a retry.
    all[next[0]].step(Event::Stop, now);
    assert_eq!(run(&mut api, &mut all, &mut now, 4_000), [1 - next[0]]);
}

#[test]
fn a_busy_server_is_left_alone_by_leaders_and_followers() {
    let (mut api, mut all, mut now) = (Api::default(), contenders(), Duration::ZERO);
    assert_eq!(run(&mut api, &mut all, &mut now, 10_000), [0]);
    let told = Duration::from_secs(7);
    for contender in &mut all {
        contender.step(Event::Go, now);
        contender.step(Event::Busy(told), now);
        assert_eq!(contender.action, Action::Wait(told));
        contender.step(Event::Busy(Duration::ZERO), now);
        assert!(matches!(contender.action, Action::Wait(time) if !time.is_zero()));
    }
}

#[test]
fn a_leader_that_cannot_renew_gives_up_before_its_lease_expires() {
    let (mut api, mut all, mut now) = (Api::default(), contenders(), Duration::ZERO);
    all.truncate(1);
    assert_eq!(run(&mut api, &mut all, &mut now, 10_000), [0]);
    let leader = &mut all[0];
    let renewed = leader.machine.leads_until().unwrap() - terms("").deadline;
    while leader.leads(now) {
        now += MILLISECOND * 100;
        let due = matches!(&leader.action, Action::Wait(time) if now >= leader.since + *time);
        if due {
            leader.step(Event::Go, now);
        } else if !matches!(leader.action, Action::Wait(_)) {
            leader.step(Event::Failed, now);
        }
    }
    assert!(now < renewed + terms("").duration);
}

#[test]
fn a_lease_that_is_deleted_is_made_anew_by_its_leader_and_by_others_once_its_time_is_up() {
    let (mut api, mut all, mut now) = (Api::default(), contenders(), Duration::ZERO);
    assert_eq!(run(&mut api, &mut all, &mut now, 10_000), [0]);
    api.lease = None;
    assert_eq!(run(&mut api, &mut all, &mut now, 3_000), [0]);
    assert_eq!(api.lease.as_ref().map(|lease| &*lease.holder), Some("0"), "within a renewal");
    // Nobody is left who would.
    all.remove(0);
    api.lease = None;
    assert_eq!(run(&mut api, &mut all, &mut now, 14_000), [0_usize; 0]);
    assert_eq!(run(&mut api, &mut all, &mut now, 6_000).len(), 1);
}

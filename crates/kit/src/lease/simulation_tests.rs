//! Candidates of all kinds of scopes under requests that are slow, lost or late, processes that stall, end and come
//! back, and somebody who writes what they like in a namespace of theirs: whatever happens, no two ever work in one
//! namespace at once, but for the one in which Leases are forged.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ScopeStep;
use super::mark::Phase;
use super::world_tests::{Candidate, Response, Server, forged, mark_of};

/// Scopes that meet in all ways: two that share `b`, two for everything, one in the home of another, two replicas.
const CAST: [(&str, &[&str]); 8] = [
    ("north", &["a", "b"]),
    ("south", &["b", "c"]),
    ("east", &[]),
    ("west", &[]),
    ("east", &[]),
    ("north", &["a", "b"]),
    ("tenant", &["east"]),
    ("south", &["b", "tenant-x"]),
];
/// Every namespace there is, but for the one of the forger, and one that nobody has heard of.
const NAMESPACES: [&str; 6] = ["a", "b", "c", "east", "west", "other"];
const TICK: Duration = Duration::from_millis(250);

/// A request on its way: when it reaches the server, when its answer comes, or never.
struct Request {
    step: ScopeStep,
    sent: Instant,
    arrives: Instant,
    answered: Instant,
    answer: Option<Response>,
    is_lost: bool,
}

struct Actor {
    candidate: Candidate,
    watches: &'static [&'static str],
    request: Option<Request>,
    asleep: Instant,
    is_running: bool,
    stalled: Instant,
    /// Until when it leads, and where not: what it has told the rest of its process.
    told: (Option<Instant>, BTreeMap<String, Option<Instant>>),
}

impl Actor {
    fn new(number: usize, generation: usize, now: Instant) -> Self {
        let (release, watches) = CAST[number];
        let candidate = Candidate::new(now, &format!("{release}-{number}-{generation}"), release, watches);
        let told = (None, BTreeMap::new());
        Self { candidate, watches, request: None, asleep: now, is_running: true, stalled: now, told }
    }

    fn works_in(&self, namespace: &str, now: Instant) -> bool {
        let (until, limits) = &self.told;
        let is_watched = self.watches.is_empty() || self.watches.contains(&namespace);
        let is_allowed = limits.get(namespace).is_none_or(|limit| limit.is_some_and(|limit| now < limit));
        is_watched && is_allowed && until.is_some_and(|until| now < until)
    }

    /// One tick of the process and of what it has sent.
    fn tick(&mut self, now: Instant, delay: u64, is_lost: bool, server: &mut Server) {
        if let Some(request) = &mut self.request
            && request.arrives <= now
            && request.answer.is_none()
        {
            request.answer = Some(self.candidate.carry_out(&request.step, server));
        }
        if !self.is_running || now < self.stalled {
            return;
        }
        self.candidate.wait(now - self.candidate.clock);
        if let Some(request) = self.request.take_if(|request| request.answered <= now) {
            let answer = request.answer.filter(|_| !request.is_lost);
            self.candidate.take_in(request.step, request.sent, answer);
            self.asleep = now;
        }
        if self.request.is_some() || now < self.asleep {
            return;
        }
        let elector = &mut self.candidate.elector;
        self.told = (elector.leads_until(now), elector.limits(now));
        match self.candidate.next() {
            ScopeStep::Sleep(pause) => self.asleep = now + pause,
            step => {
                let arrives = now + TICK * u32::try_from(delay).unwrap();
                // Who gives up waiting does not know whether the request arrives later.
                let answered = if is_lost { now + Duration::from_secs(5) } else { arrives };
                self.request = Some(Request { step, sent: now, arrives, answered, answer: None, is_lost });
            }
        }
    }
}

/// In how many namespaces somebody works; fails if two do in one.
fn check(actors: &[Actor], now: Instant, seed: u64) -> usize {
    let mut led = 0;
    for namespace in NAMESPACES {
        let at_work = |number: &usize| actors[*number].works_in(namespace, now);
        let workers: Vec<usize> = (0..actors.len()).filter(at_work).collect();
        assert!(workers.len() < 2, "seed {seed}: {workers:?} work in {namespace}");
        led += workers.len();
    }
    led
}

/// Knuth's generator: the same seed tells the same story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Writes any Lease in the namespace of the forger: in anybody's name, with any claim, or none.
fn forge(dice: &mut Dice, server: &mut Server, wall: jiff::Timestamp) {
    let (release, watches) = CAST[usize::try_from(dice.roll(8)).unwrap()];
    let mark = mark_of(release, if dice.roll(2) == 0 { &[] } else { watches });
    let phase = [Phase::Claiming, Phase::Leading, Phase::Blocking][usize::try_from(dice.roll(3)).unwrap()];
    let holder = ["x", "", "east-2-0"][usize::try_from(dice.roll(3)).unwrap()];
    let lease = match dice.roll(8) {
        0 => None,
        1 => Some(forged(holder, None, wall)),
        _ => Some(forged(holder, Some((&mark, phase)), wall)),
    };
    server.force("tenant-x", lease);
}

/// Ten minutes; for how much of them somebody worked in a namespace, over all of them. `chaos` stops processes.
fn story(seed: u64, cast: &[usize], chaos: bool) -> f64 {
    const TICKS: usize = 2400;
    let (mut now, mut server, mut dice) = (Instant::now(), Server::default(), Dice(seed));
    let mut actors: Vec<Actor> = cast.iter().map(|number| Actor::new(*number, 0, now)).collect();
    let mut led = 0;
    for tick in 0..TICKS {
        now += TICK;
        if dice.roll(6) == 0 {
            let wall = actors[0].candidate.wall;
            forge(&mut dice, &mut server, wall);
        }
        for (actor, number) in actors.iter_mut().zip(cast) {
            let is_quiet = actor.request.as_ref().is_none_or(|request| request.answer.is_some());
            match dice.roll(600) {
                _ if !chaos => {}
                0 => actor.is_running = false,
                1 => actor.stalled = now + Duration::from_secs(dice.roll(60)),
                2 if actor.is_running && is_quiet => {
                    actor.candidate.wait(now - actor.candidate.clock);
                    actor.candidate.end(&mut server);
                    actor.told = (None, BTreeMap::new());
                    actor.is_running = false;
                }
                3..=9 if !actor.is_running && is_quiet => *actor = Actor::new(*number, tick, now),
                _ => {}
            }
            let (delay, is_lost) = (dice.roll(3) * dice.roll(4), chaos && dice.roll(40) == 0);
            actor.tick(now, delay, is_lost, &mut server);
        }
        led += check(&actors, now, seed);
    }
    f64::from(u32::try_from(led).unwrap()) / f64::from(u32::try_from(TICKS * NAMESPACES.len()).unwrap())
}

/// The mean of many stories.
fn share(cast: &[usize], chaos: bool) -> f64 {
    (0..60).map(|seed| story(seed, cast, chaos)).sum::<f64>() / 60.0
}

#[test]
fn no_two_ever_work_in_the_same_namespace() {
    let share = share(&[0, 1, 2, 3, 4, 5, 6, 7], true);
    assert!(share > 0.3, "somebody worked {share} of the time only");
}

#[test]
fn a_forger_does_not_keep_an_operator_of_all_namespaces_from_the_others() {
    let share = share(&[2, 4], false);
    assert!(share > 0.98, "somebody worked {share} of the time only");
}

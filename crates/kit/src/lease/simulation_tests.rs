//! Candidates of all kinds of scopes under requests that are slow, lost or late, processes that stall, end and come
//! back: whatever happens, no two that share a namespace ever lead at once.

use std::time::{Duration, Instant};

use super::ScopeStep;
use super::world_tests::{Candidate, Response, Server};

/// Scopes that meet in all ways: two that share `b`, two for everything, one in the home of another, two replicas.
const CAST: [(&str, &[&str]); 7] = [
    ("north", &["a", "b"]),
    ("south", &["b", "c"]),
    ("east", &[]),
    ("west", &[]),
    ("east", &[]),
    ("north", &["a", "b"]),
    ("tenant", &["east"]),
];
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
}

impl Actor {
    fn new(number: usize, generation: usize, now: Instant) -> Self {
        let (release, watches) = CAST[number];
        let candidate = Candidate::new(now, &format!("{release}-{number}-{generation}"), release, watches);
        Self { candidate, watches, request: None, asleep: now, is_running: true, stalled: now }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (self.watches, other.watches);
        one.is_empty() || two.is_empty() || one.iter().any(|namespace| two.contains(namespace))
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

/// Whether anybody leads; fails if two that overlap do.
fn check(actors: &mut [Actor], now: Instant, seed: u64) -> bool {
    let leads: Vec<bool> = actors.iter_mut().map(|actor| actor.candidate.elector.leads_until(now).is_some()).collect();
    for (one, first) in actors.iter().enumerate() {
        for (two, second) in actors.iter().enumerate().skip(one + 1) {
            let both = leads[one] && leads[two] && first.overlaps(second);
            assert!(!both, "seed {seed}: {:?} and {:?}", CAST[one], CAST[two]);
        }
    }
    leads.contains(&true)
}

/// Knuth's generator: the same seed tells the same story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Ten minutes; for how much of them somebody led.
fn story(seed: u64) -> f64 {
    const TICKS: usize = 2400;
    let (mut now, mut server, mut dice) = (Instant::now(), Server::default(), Dice(seed));
    let mut actors: Vec<Actor> = (0..CAST.len()).map(|number| Actor::new(number, 0, now)).collect();
    let mut led = 0;
    for tick in 0..TICKS {
        now += TICK;
        for (number, actor) in actors.iter_mut().enumerate() {
            let is_quiet = actor.request.as_ref().is_none_or(|request| request.answer.is_some());
            match dice.roll(600) {
                0 => actor.is_running = false,
                1 => actor.stalled = now + Duration::from_secs(dice.roll(60)),
                2 if actor.is_running && is_quiet => {
                    actor.candidate.wait(now - actor.candidate.clock);
                    actor.candidate.end(&mut server);
                    actor.is_running = false;
                }
                3..=9 if !actor.is_running && is_quiet => *actor = Actor::new(number, tick, now),
                _ => {}
            }
            let (delay, is_lost) = (dice.roll(3) * dice.roll(4), dice.roll(40) == 0);
            actor.tick(now, delay, is_lost, &mut server);
        }
        led += i32::from(check(&mut actors, now, seed));
    }
    f64::from(led) / f64::from(u32::try_from(TICKS).unwrap())
}

#[test]
fn no_two_ever_lead_the_same_namespace() {
    let led: Vec<f64> = (0..60).map(story).collect();
    let share = led.iter().sum::<f64>() / 60.0;
    assert!(share > 0.3, "somebody led {share} of the time only");
}

//! Hostile bytes: whatever comes, in whatever pieces, nothing panics and nothing grows.
//!
//! `FUZZ_ITERATIONS` says how often, `FUZZ_SEED` repeats a failure.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::env;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};

use memcached_wire::codec::{
    Batch, Collect, Debugged, Decoder, Dump, Exactly, Found, Line, OneMeta, Refusal, StatLines, Values, collect,
};
use memcached_wire::{Key, Limits};

const LIMITS: Limits = Limits { line: 256, value: 512, reply: 4096 };
const DEFAULT_ITERATIONS: u64 = 20_000;

/// Real answers to begin with.
const CORPUS: [&str; 18] = [
    "VERSION 1.6.45\r\n",
    "STAT pid 1\r\nSTAT uptime 3\r\nSTAT rusage_user 0.009549\r\nSTAT domain_socket NULL\r\nEND\r\n",
    "STAT items:1:number 1\r\nSTAT items:1:age_hot 0\r\nSTAT 1:chunk_size 96\r\nSTAT active_slabs 1\r\nEND\r\n",
    "VALUE k 5 3\r\nabc\r\nEND\r\n",
    "VALUE k 0 0 77\r\n\r\nEND\r\n",
    "END\r\n",
    "STORED\r\n",
    "NOT_FOUND\r\n",
    "HD\r\nEN\r\nNF\r\nNS\r\nEX\r\nMN\r\n",
    "VA 3 ka f5 t-1 s3 c2\r\nabc\r\n",
    "VA 10\r\nabc\r\nabc\r\n\r\n",
    "ME a exp=-1 la=3 cas=2 fetch=yes cls=1 size=67\r\n",
    "OK\r\nkey=%00%01%02 exp=-1 la=1794769039 cas=3 fetch=no cls=1 size=64 flags=0 \nEND\r\n",
    "BUSY currently processing crawler request\r\n",
    "CLIENT_ERROR unauthenticated\r\n",
    "SERVER_ERROR object too large for cache\r\n",
    "VA 99999999999999999999 x\r\nVALUE k 0 18446744073709551615\r\n",
    "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
];

/// Xorshift: small, repeatable, good enough to be nasty.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        const NASTY: &[u8] = b"\r\n \0-+%=:09VAE\xff\x80";
        if self.below(2) == 0 { NASTY[self.below(NASTY.len())] } else { self.next().to_le_bytes()[0] }
    }
}

/// Says how to come back when a test fails.
struct Witness {
    seed: u64,
}

impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again with: FUZZ_SEED={} FUZZ_ITERATIONS=1", self.seed);
        }
    }
}

/// Answers, joined, cut, doubled, and with bytes changed; or noise alone.
fn input(random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for _ in 0..random.below(4) {
        bytes.extend(CORPUS[random.below(CORPUS.len())].as_bytes());
    }
    for _ in 0..random.below(8) {
        let place = random.below(bytes.len() + 1);
        match random.below(6) {
            0 if place < bytes.len() => bytes[place] = random.byte(),
            1 => bytes.insert(place, random.byte()),
            2 => bytes.truncate(place),
            3 => {
                let end = place + random.below(bytes.len() - place + 1);
                bytes.extend_from_within(place..end);
            }
            4 => {
                let noise: Vec<u8> = (0..random.below(400)).map(|_| random.byte()).collect();
                bytes.splice(place..place, noise);
            }
            _ => {
                let line = vec![random.byte(); random.below(LIMITS.line * 2)];
                bytes.splice(place..place, line);
            }
        }
    }
    bytes
}

/// What becomes of the input in these pieces: the answers, and what ended them.
fn outcome<C>(input: &[u8], mut size: impl FnMut() -> usize, new: impl Fn() -> C) -> (Vec<String>, Option<Refusal>)
where
    C: Collect<Output: Debug>,
{
    let mut decoder = Decoder::new(LIMITS);
    let (mut collector, mut answers, mut rest) = (new(), Vec::new(), input);
    decoder.begin_reply();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(size().clamp(1, rest.len()));
        decoder.feed(piece);
        rest = after;
        loop {
            match collect(&mut decoder, &mut collector) {
                Ok(None) => break,
                Ok(Some(answer)) => {
                    answers.push(format!("{answer:?}"));
                    collector = new();
                    decoder.begin_reply();
                }
                Err(refusal) => return (answers, Some(refusal)),
            }
        }
        let bound = LIMITS.line.max(LIMITS.value + 2) + piece.len();
        assert!(decoder.buffered() <= bound, "{} bytes are kept, {bound} at most", decoder.buffered());
    }
    (answers, None)
}

/// The same whether it comes at once, byte by byte or in random pieces.
fn check<C>(input: &[u8], random: &mut Random, new: impl Fn() -> C + Copy)
where
    C: Collect<Output: Debug>,
{
    let whole = outcome(input, || usize::MAX, new);
    assert_eq!(outcome(input, || 1, new), whole, "byte by byte");
    assert_eq!(outcome(input, || random.below(20), new), whole, "in pieces");
}

fn seeds() -> impl Iterator<Item = u64> {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("FUZZ_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    (0..number("FUZZ_ITERATIONS").unwrap_or(DEFAULT_ITERATIONS)).map(move |turn| first.wrapping_add(turn))
}

#[test]
fn hostile_bytes_neither_panic_nor_grow_nor_depend_on_their_pieces() {
    for seed in seeds() {
        let _witness = Witness { seed };
        // A seed of zero would stay zero.
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let input = input(&mut random);
        match random.below(9) {
            0 => check(&input, &mut random, StatLines::default),
            1 => check(&input, &mut random, || Values::of(&Key::new("k").unwrap())),
            2 => check(&input, &mut random, || OneMeta),
            3 => check(&input, &mut random, || Batch::of(3)),
            4 => check(&input, &mut random, Dump::default),
            5 => check(&input, &mut random, || Exactly("STORED")),
            6 => check(&input, &mut random, || Found("DELETED")),
            7 => check(&input, &mut random, || Debugged),
            _ => check(&input, &mut random, || Line(|line| line.strip_prefix("VERSION ").map(str::to_owned))),
        }
    }
}

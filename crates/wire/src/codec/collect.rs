//! Puts frames together into the answer to a request.

use bytes::Bytes;

use super::frame::{Decoder, Frame};
use crate::error::{Error, ProtocolViolation};
use crate::key::Key;
use crate::meta::MetaReply;
use crate::metadump::Item;
use crate::stats::Stats;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What the client stored beside it.
    pub flags: u32,
    /// The value itself.
    pub data: Bytes,
}

/// Why frames are no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The server says no, in these words.
    Answer(String),
    /// This is not how servers speak.
    ProtocolViolation(ProtocolViolation),
}

impl From<ProtocolViolation> for Refusal {
    fn from(violation: ProtocolViolation) -> Self {
        Self::ProtocolViolation(violation)
    }
}

impl Refusal {
    /// The error of a request with this purpose.
    pub fn into_error(self, request: &'static str) -> Error {
        match self {
            Self::ProtocolViolation(violation) => Error::Protocol(violation),
            Self::Answer(answer) if answer == "CLIENT_ERROR unauthenticated" => Error::LoginRequired,
            Self::Answer(answer) if answer == "CLIENT_ERROR authentication failure" => Error::LoginRefused,
            Self::Answer(answer) => Error::Answered { request, answer },
        }
    }
}

/// Takes frames until the answer is complete.
pub trait Collect {
    /// What the answer says.
    type Output;

    /// Takes one; the answer if it was the last.
    fn accept(&mut self, frame: Frame) -> Result<Option<Self::Output>, Refusal>;
}

/// Takes what the decoder has; the answer if it is complete.
pub fn collect<C: Collect>(decoder: &mut Decoder, collector: &mut C) -> Result<Option<C::Output>, Refusal> {
    while let Some(frame) = decoder.next()? {
        if let Some(answer) = collector.accept(frame)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// Answers of one line, read by a function that knows which lines there are.
#[derive(Debug)]
pub struct Line<T>(pub fn(&str) -> Option<T>);

impl<T> Collect for Line<T> {
    type Output = T;

    fn accept(&mut self, frame: Frame) -> Result<Option<T>, Refusal> {
        let line = plain(frame)?;
        let read = std::str::from_utf8(&line).ok().and_then(self.0);
        read.map(Some).ok_or_else(|| ProtocolViolation::unexpected(&line).into())
    }
}

/// An answer of this one line.
#[derive(Debug)]
pub struct Exactly(pub &'static str);

impl Collect for Exactly {
    type Output = ();

    fn accept(&mut self, frame: Frame) -> Result<Option<()>, Refusal> {
        let line = plain(frame)?;
        if line == self.0 { Ok(Some(())) } else { Err(ProtocolViolation::unexpected(&line).into()) }
    }
}

/// An answer of this one line, or `NOT_FOUND`: whether the key was there.
#[derive(Debug)]
pub struct Found(pub &'static str);

impl Collect for Found {
    type Output = bool;

    fn accept(&mut self, frame: Frame) -> Result<Option<bool>, Refusal> {
        let line = plain(frame)?;
        if &line[..] == b"NOT_FOUND" {
            return Ok(Some(false));
        }
        if line == self.0 { Ok(Some(true)) } else { Err(ProtocolViolation::unexpected(&line).into()) }
    }
}

/// Statistics: `STAT <name> <value>` until `END`.
#[derive(Debug, Default)]
pub struct StatLines(Stats);

impl Collect for StatLines {
    type Output = Stats;

    fn accept(&mut self, frame: Frame) -> Result<Option<Stats>, Refusal> {
        let line = plain(frame)?;
        if &line[..] == b"END" {
            return Ok(Some(std::mem::take(&mut self.0)));
        }
        let text = String::from_utf8_lossy(&line);
        let (name, value) = text
            .strip_prefix("STAT ")
            .map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
            .ok_or_else(|| ProtocolViolation::unexpected(&line))?;
        self.0.push(name, value);
        Ok(None)
    }
}

/// The value of one key, if there is one: `VALUE …`, then `END`.
#[derive(Debug)]
pub struct Values {
    key: Key,
    value: Option<Value>,
}

impl Values {
    /// Awaits this key.
    pub fn of(key: &Key) -> Self {
        Self { key: key.clone(), value: None }
    }
}

impl Collect for Values {
    type Output = Option<Value>;

    fn accept(&mut self, frame: Frame) -> Result<Option<Option<Value>>, Refusal> {
        let (header, data) = match frame {
            Frame::Line(line) if &line[..] == b"END" => return Ok(Some(self.value.take())),
            Frame::Line(_) => return Err(ProtocolViolation::unexpected(&plain(frame)?).into()),
            Frame::Value { header, data } => (header, data),
        };
        let mut words = header.split(|&byte| byte == b' ').skip(1);
        let is_asked_for = words.next() == Some(self.key.as_bytes()) && self.value.is_none();
        let flags = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        match flags {
            Some(flags) if is_asked_for => self.value = Some(Value { flags, data }),
            _ => return Err(ProtocolViolation::unexpected(&header).into()),
        }
        Ok(None)
    }
}

/// The answer to one meta command.
#[derive(Debug, Default)]
pub struct OneMeta;

impl Collect for OneMeta {
    type Output = MetaReply;

    fn accept(&mut self, frame: Frame) -> Result<Option<MetaReply>, Refusal> {
        match frame {
            Frame::Value { header, data } => MetaReply::parse(&header, Some(data)),
            line @ Frame::Line(_) => MetaReply::parse(&plain(line)?, None),
        }
        .map(Some)
        .map_err(Refusal::from)
    }
}

/// What a server knows about a key: `ME <key> <name>=<value> …`, or `EN`.
#[derive(Debug)]
pub struct Debugged;

impl Collect for Debugged {
    type Output = Option<Stats>;

    fn accept(&mut self, frame: Frame) -> Result<Option<Option<Stats>>, Refusal> {
        let line = plain(frame)?;
        if &line[..] == b"EN" {
            return Ok(Some(None));
        }
        let text = String::from_utf8_lossy(&line);
        let mut stats = Stats::default();
        let fields = text.strip_prefix("ME ").ok_or_else(|| ProtocolViolation::unexpected(&line))?.split(' ').skip(1);
        for field in fields {
            let (name, value) = field.split_once('=').ok_or_else(|| ProtocolViolation::unexpected(&line))?;
            stats.push(name, value);
        }
        Ok(Some(Some(stats)))
    }
}

/// The answers to several meta commands, refusals included, up to that of the `mn` that follows them.
#[derive(Debug)]
pub struct Batch {
    awaited: usize,
    replies: Vec<Result<MetaReply, Refusal>>,
}

impl Batch {
    /// Awaits so many.
    pub fn of(awaited: usize) -> Self {
        Self { awaited, replies: Vec::new() }
    }
}

impl Collect for Batch {
    type Output = Vec<Result<MetaReply, Refusal>>;

    fn accept(&mut self, frame: Frame) -> Result<Option<Self::Output>, Refusal> {
        let is_end = matches!(&frame, Frame::Line(line) if &line[..] == b"MN");
        if is_end != (self.replies.len() == self.awaited) {
            return Err(ProtocolViolation::Unexpected { line: format!("answer {}", self.replies.len() + 1) }.into());
        }
        if is_end {
            return Ok(Some(std::mem::take(&mut self.replies)));
        }
        match OneMeta.accept(frame) {
            Ok(reply) => self.replies.extend(reply.map(Ok)),
            Err(Refusal::Answer(answer)) => self.replies.push(Err(Refusal::Answer(answer))),
            Err(violation) => return Err(violation),
        }
        Ok(None)
    }
}

/// The next item of a listing, or none after the last; newer servers say `OK` before the first.
#[derive(Debug, Default)]
pub struct Dump {
    begun: bool,
}

impl Collect for Dump {
    type Output = Option<Item>;

    fn accept(&mut self, frame: Frame) -> Result<Option<Option<Item>>, Refusal> {
        let line = plain(frame)?;
        let begun = std::mem::replace(&mut self.begun, true);
        match &line[..] {
            b"OK" if !begun => Ok(None),
            b"END" => Ok(Some(None)),
            item => Item::parse(item)
                .map(|item| Some(Some(item)))
                .ok_or_else(|| ProtocolViolation::unexpected(&line).into()),
        }
    }
}

/// A line that is neither a value nor a no.
fn plain(frame: Frame) -> Result<Bytes, Refusal> {
    match frame {
        Frame::Value { header, .. } => Err(ProtocolViolation::unexpected(&header).into()),
        Frame::Line(line) if is_no(&line) => Err(Refusal::Answer(String::from_utf8_lossy(&line).into_owned())),
        Frame::Line(line) => Ok(line),
    }
}

/// The ways in which memcached says no.
fn is_no(line: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [
        b"ERROR",
        b"CLIENT_ERROR",
        b"SERVER_ERROR",
        b"BUSY",
        b"NOT_STORED",
        b"MEMLIMIT_TOO_SMALL",
        b"MEMLIMIT_ADJUST_FAILED",
        // The answer of refresh_certs.
        b"Error",
    ];
    line.split(|&byte| byte == b' ').next().is_some_and(|word| WORDS.contains(&word))
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;

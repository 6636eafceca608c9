//! Cuts a stream of bytes into lines and values, within bounds.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::ProtocolViolation;

/// How much of an answer is taken; beyond it the other side is taken for broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, in bytes.
    pub line: usize,
    /// The largest value, in bytes.
    pub value: usize,
    /// The largest answer in all, values included, in bytes; a line counts for more than its length, for that is
    /// what it takes to keep it.
    pub reply: usize,
}

impl Default for Limits {
    /// Enough for memcached's own default of items up to a mebibyte, and for the statistics of any server but those of
    /// many thousand connections.
    fn default() -> Self {
        Self { line: 8 << 10, value: 1 << 20, reply: 4 << 20 }
    }
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A line, without its end.
    Line(Bytes),
    /// A line that announces a value, and the value.
    Value {
        /// The line, without its end.
        header: Bytes,
        /// The value, without its end.
        data: Bytes,
    },
}

/// Takes bytes as they come, gives frames as they are complete.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: Limits,
    buffer: BytesMut,
    /// So much of the buffer is known to hold no end of a line.
    scanned: usize,
    /// The line that announced the value which is now awaited.
    announced: Option<(Bytes, usize)>,
    /// How much the current answer has taken.
    taken: usize,
    /// After a violation nothing makes sense any more.
    broken: Option<ProtocolViolation>,
}

const END: &[u8] = b"\r\n";
/// What keeping a line costs besides its bytes: strings, their allocations, the list they are in.
const OVERHEAD: usize = 64;

impl Decoder {
    /// A decoder with these bounds.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes what came.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Begins to count anew: an answer may be so large, a connection has many.
    pub fn begin_reply(&mut self) {
        self.taken = 0;
    }

    /// How many bytes wait for the rest of their frame.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next frame, if it is complete.
    #[expect(clippy::should_implement_trait, reason = "None means not yet, and more may follow an error never")]
    pub fn next(&mut self) -> Result<Option<Frame>, ProtocolViolation> {
        if let Some(violation) = &self.broken {
            return Err(violation.clone());
        }
        self.decode().inspect_err(|violation| {
            self.broken = Some(violation.clone());
            self.buffer = BytesMut::new();
        })
    }

    fn decode(&mut self) -> Result<Option<Frame>, ProtocolViolation> {
        if self.announced.is_none() {
            let Some(line) = self.line()? else { return Ok(None) };
            match announced(&line)? {
                None => return self.count(line.len()).map(|()| Some(Frame::Line(line))),
                Some(announced) => {
                    let size = usize::try_from(announced).ok().filter(|size| *size <= self.limits.value);
                    let limit = self.limits.value;
                    let size = size.ok_or(ProtocolViolation::LargeValue { announced, limit })?;
                    self.count(line.len().saturating_add(size))?;
                    self.announced = Some((line, size));
                }
            }
        }
        self.value()
    }

    fn line(&mut self) -> Result<Option<Bytes>, ProtocolViolation> {
        let rest = self.buffer.get(self.scanned..).unwrap_or_default();
        let found = rest.iter().position(|&byte| byte == b'\n').map(|position| self.scanned + position);
        let limit = self.limits.line;
        match found {
            Some(end) if end <= limit => {
                self.scanned = 0;
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                // The crawler ends its lines without a carriage return.
                if line.last() == Some(&b'\r') {
                    line.truncate(end - 1);
                }
                Ok(Some(line.freeze()))
            }
            None if self.buffer.len() <= limit => {
                self.scanned = self.buffer.len();
                Ok(None)
            }
            _ => Err(ProtocolViolation::LongLine { limit }),
        }
    }

    fn value(&mut self) -> Result<Option<Frame>, ProtocolViolation> {
        let Some((header, size)) = self.announced.take() else { return Ok(None) };
        if self.buffer.len() < size + END.len() {
            self.announced = Some((header, size));
            return Ok(None);
        }
        let data = self.buffer.split_to(size).freeze();
        if !self.buffer.starts_with(END) {
            return Err(ProtocolViolation::Unterminated);
        }
        self.buffer.advance(END.len());
        Ok(Some(Frame::Value { header, data }))
    }

    fn count(&mut self, size: usize) -> Result<(), ProtocolViolation> {
        self.taken = self.taken.saturating_add(size).saturating_add(OVERHEAD);
        if self.taken > self.limits.reply {
            return Err(ProtocolViolation::LargeReply { limit: self.limits.reply });
        }
        Ok(())
    }
}

/// The size of the value that a line announces, if it does: `VALUE <key> <flags> <size>` and `VA <size>`.
fn announced(line: &[u8]) -> Result<Option<u64>, ProtocolViolation> {
    let mut words = line.split(|&byte| byte == b' ');
    let size = match words.next() {
        Some(b"VALUE") => words.nth(2),
        Some(b"VA") => words.next(),
        _ => return Ok(None),
    };
    let size = size.filter(|word| word.iter().all(u8::is_ascii_digit));
    let size = size.and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    size.map(Some).ok_or_else(|| ProtocolViolation::unexpected(line))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

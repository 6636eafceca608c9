//! A connection over any stream: one request at a time, each with a deadline.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::time::timeout;

use crate::codec::{Collect, Decoder, Limits, Request, collect};
use crate::error::{Error, ErrorClass, ProtocolViolation, Result};

/// How much is read at once.
const CHUNK: usize = 16 << 10;

/// A conversation with a server.
///
/// After an error that leaves it unclear where the next answer begins, and after a request that was given up half-way,
/// it is closed for good: [`Connection::is_usable`] says so, and every request fails.
pub struct Connection<S> {
    stream: S,
    decoder: Decoder,
    chunk: Box<[u8]>,
    deadline: Duration,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// A request is under way; if it is found so by the next one, it was given up.
    Busy,
    Closed,
}

impl<S> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// A conversation over an open stream.
    pub fn new(stream: S, limits: Limits, deadline: Duration) -> Self {
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Self { stream, decoder: Decoder::new(limits), chunk, deadline, state: State::Idle }
    }

    /// Whether another request makes sense.
    pub fn is_usable(&self) -> bool {
        self.state == State::Idle
    }

    /// Sends a request and puts its answer together.
    pub async fn exchange<C: Collect>(&mut self, request: &Request, mut collector: C) -> Result<C::Output> {
        self.begin()?;
        let deadline = self.deadline;
        let outcome = match timeout(deadline, self.talk(request, &mut collector)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Timeout { request: request.purpose(), deadline }),
        };
        self.finish(&outcome, request.carries_value());
        outcome
    }

    /// Sends a request whose answer is then fetched piece by piece.
    pub(crate) async fn start(&mut self, request: &Request) -> Result<()> {
        self.begin()?;
        let (deadline, stream) = (self.deadline, &mut self.stream);
        let sent = timeout(deadline, async {
            stream.write_all(request.bytes()).await?;
            stream.flush().await
        });
        sent.await.map_err(|_| Error::Timeout { request: request.purpose(), deadline })?.map_err(Error::of_stream)
    }

    /// The next piece of an answer.
    pub(crate) async fn next_of<C: Collect>(&mut self, purpose: &'static str, collector: &mut C) -> Result<C::Output> {
        let Self { stream, decoder, chunk, deadline, .. } = self;
        decoder.begin_reply();
        let piece = receive(stream, decoder, chunk, purpose, collector);
        timeout(*deadline, piece).await.map_err(|_| Error::Timeout { request: purpose, deadline: *deadline })?
    }

    /// Decides whether the next request may follow this outcome.
    pub(crate) fn finish<T>(&mut self, outcome: &Result<T>, carried_value: bool) {
        let in_step = match outcome {
            Ok(_) => true,
            // A server error comes after the value was taken; any other no may leave it to be read as a request.
            Err(Error::Answered { answer, .. }) => !carried_value || answer.starts_with("SERVER_ERROR"),
            Err(error) => error.class() == ErrorClass::Invalid,
        };
        self.state = if in_step { State::Idle } else { State::Closed };
    }

    fn begin(&mut self) -> Result<()> {
        if self.state != State::Idle {
            return Err(Error::Closed(None));
        }
        if self.decoder.buffered() > 0 {
            self.state = State::Closed;
            return Err(ProtocolViolation::Unsolicited.into());
        }
        self.state = State::Busy;
        Ok(())
    }

    /// Sends and receives at once: a server stops reading while nobody takes its answers.
    async fn talk<C: Collect>(&mut self, request: &Request, collector: &mut C) -> Result<C::Output> {
        let Self { stream, decoder, chunk, .. } = self;
        decoder.begin_reply();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let send = async {
            writer.write_all(request.bytes()).await?;
            writer.flush().await
        };
        let receive = receive::<ReadHalf<_>, _>(&mut reader, decoder, chunk, request.purpose(), collector);
        tokio::pin!(send, receive);
        tokio::select! {
            answer = &mut receive => {
                let answer = answer?;
                send.await.map_err(Error::of_stream)?;
                Ok(answer)
            }
            // Whoever closes the door may have said why before: the answer is worth more than a broken pipe.
            _ = &mut send => receive.await,
        }
    }
}

async fn receive<R: AsyncRead + Unpin, C: Collect>(
    reader: &mut R,
    decoder: &mut Decoder,
    chunk: &mut [u8],
    purpose: &'static str,
    collector: &mut C,
) -> Result<C::Output> {
    loop {
        if let Some(answer) = collect(decoder, collector).map_err(|refusal| refusal.into_error(purpose))? {
            return Ok(answer);
        }
        match reader.read(chunk).await.map_err(Error::of_stream)? {
            0 => return Err(Error::Closed(None)),
            read => decoder.feed(chunk.get(..read).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;

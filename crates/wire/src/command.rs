//! What can be asked of a server, a method each.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::codec::{Batch, Debugged, Exactly, Found, Line, OneMeta, Request, StatLines, Value, Values};
use crate::connection::Connection;
use crate::credentials::Credentials;
use crate::error::Result;
use crate::expiry::Expiry;
use crate::key::Key;
use crate::meta::{Meta, MetaReply};
use crate::metadump::Metadump;
use crate::stats::{Report, Stats};

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// The server's version.
    pub async fn version(&mut self) -> Result<String> {
        self.exchange(&Request::version(), Line(|line| line.strip_prefix("VERSION ").map(str::to_owned))).await
    }

    /// Statistics.
    pub async fn stats(&mut self, report: Report) -> Result<Stats> {
        self.exchange(&Request::stats(report), StatLines::default()).await
    }

    /// Logs in to a server with a password file (`-Y`), before anything else.
    pub async fn login(&mut self, credentials: &Credentials) -> Result<()> {
        self.exchange(&Request::login(credentials), Exactly("STORED")).await
    }

    /// The value of a key.
    pub async fn get(&mut self, key: &Key) -> Result<Option<Value>> {
        self.exchange(&Request::get(key), Values::of(key)).await
    }

    /// Stores a value.
    pub async fn set(&mut self, key: &Key, value: &[u8], flags: u32, expiry: Expiry) -> Result<()> {
        self.exchange(&Request::set(key, value, flags, expiry), Exactly("STORED")).await
    }

    /// Deletes a key; whether it was there.
    pub async fn delete(&mut self, key: &Key) -> Result<bool> {
        self.exchange(&Request::delete(key), Found("DELETED")).await
    }

    /// Gives a key another time to go; whether it was there.
    pub async fn touch(&mut self, key: &Key, expiry: Expiry) -> Result<bool> {
        self.exchange(&Request::touch(key, expiry), Found("TOUCHED")).await
    }

    /// Runs a meta command.
    pub async fn meta(&mut self, command: &Meta) -> Result<MetaReply> {
        self.exchange(&Request::meta(command)?, OneMeta).await
    }

    /// Runs meta commands in one go, and gives an answer for each; a refused one does not stop the others.
    ///
    /// All of them together have the time of one request.
    pub async fn batch(&mut self, commands: &[Meta]) -> Result<Vec<Result<MetaReply>>> {
        let request = Request::batch(commands)?;
        let replies = self.exchange(&request, Batch::of(commands.len())).await?;
        Ok(replies.into_iter().map(|reply| reply.map_err(|refusal| refusal.into_error(request.purpose()))).collect())
    }

    /// What the server knows about a key (`me`), as it says it; none if there is no such key.
    pub async fn debug(&mut self, key: &Key) -> Result<Option<Stats>> {
        self.exchange(&Request::debug(key), Debugged).await
    }

    /// Asks for a sign of life (`mn`).
    pub async fn noop(&mut self) -> Result<()> {
        self.exchange(&Request::noop(), Exactly("MN")).await
    }

    /// Empties the cache.
    pub async fn flush_all(&mut self) -> Result<()> {
        self.exchange(&Request::flush_all(), Exactly("OK")).await
    }

    /// Changes how much memory items may take, in mebibytes.
    pub async fn cache_memlimit(&mut self, megabytes: u32) -> Result<()> {
        self.exchange(&Request::cache_memlimit(megabytes), Exactly("OK")).await
    }

    /// Makes the server read its certificates anew.
    pub async fn refresh_certs(&mut self) -> Result<()> {
        self.exchange(&Request::refresh_certs(), Exactly("OK")).await
    }

    /// Changes how much the server says in its log.
    pub async fn verbosity(&mut self, level: u8) -> Result<()> {
        self.exchange(&Request::verbosity(level), Exactly("OK")).await
    }

    /// Lists all keys.
    pub async fn metadump(&mut self) -> Result<Metadump<'_, S>> {
        self.start(&Request::metadump()).await?;
        Ok(Metadump::new(self))
    }
}

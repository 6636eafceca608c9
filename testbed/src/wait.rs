//! Waiting for something to become true, with a deadline and the last thing seen.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::program::check_interrupted;

const PAUSE: Duration = Duration::from_millis(100);

/// Asks again and again until `probe` has an answer; what it saw instead ends up in the error.
///
/// ```
/// # async fn example() -> testbed::Result<()> {
/// let mut asked = 0;
/// let answer = testbed::wait::until("the third try", 5, async || {
///     asked += 1;
///     if asked < 3 { Err(format!("try {asked}")) } else { Ok("there") }
/// })
/// .await?;
/// assert_eq!(answer, "there");
/// # Ok(())
/// # }
/// ```
pub async fn until<T>(
    what: impl Into<String>,
    seconds: u64,
    mut probe: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T> {
    let outcome = uninterrupted(what, seconds, async || match check_interrupted() {
        Err(interrupted) => Ok(Err(interrupted)),
        Ok(()) => probe().await.map(Ok),
    });
    outcome.await?
}

/// Like [`until`], but Ctrl-C does not end it: for cleaning up after Ctrl-C.
pub async fn uninterrupted<T>(
    what: impl Into<String>,
    seconds: u64,
    mut probe: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let seen = match probe().await {
            Ok(answer) => return Ok(answer),
            Err(seen) => seen,
        };
        if Instant::now() > deadline {
            return Err(Error::Timeout { what: what.into(), seconds, seen });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_thing_seen_is_in_the_error() {
        let error = until::<()>("the moon", 0, async || Err("clouds".into())).await.unwrap_err();
        assert_eq!(error.to_string(), "gave up after 0 s waiting for the moon; last seen: clouds");
    }
}

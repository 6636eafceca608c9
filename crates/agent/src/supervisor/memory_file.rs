//! The memory that outlives memcached's process, and the traps around it.
//!
//! On a graceful stop memcached writes a `.meta` file beside its memory, and takes both up at its next start. It aborts on
//! an empty or damaged one, every time: the pod would never come up again. It starts empty in the second in which it
//! stopped. It removes the file once it has read it, so one that is there belongs to the memory beside it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The line that memcached writes last.
const LAST: &str = "Kmmap_oldbase ";
/// Larger ones are none of memcached's.
const LARGEST: u64 = 1 << 20;

/// What is kept for the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Nothing, or nothing that can be used: memcached starts empty.
    Nothing,
    /// All of it.
    Memory(Left),
}

/// What memcached has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The second since 1970 in which it stopped.
    stopped: u64,
    /// Its uptime then, which goes on where it stopped.
    uptime: u64,
}

/// memcached's own clock starts at so many seconds, and its uptime is two then.
const CLOCK_AHEAD: u64 = 60;
const COLD_UPTIME: u64 = 2;

impl Left {
    /// Whether memcached has taken it up: its uptime goes on then. One that had run for a moment only has nothing to tell
    /// it by but its items.
    pub fn is_taken_up(self, now: SystemTime, age: Duration, uptime: u64, items: u64) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let warm = self.uptime.saturating_add(now.saturating_sub(self.stopped));
        let cold = COLD_UPTIME + age.as_secs();
        if warm <= cold + 2 {
            return items > 0;
        }
        uptime.abs_diff(warm) < uptime.abs_diff(cold)
    }
}

/// The file with memcached's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    meta: PathBuf,
}

impl MemoryFile {
    /// The file that `-e` names.
    pub fn new(path: &Path) -> Self {
        let mut meta = OsString::from(path);
        meta.push(".meta");
        Self { meta: meta.into() }
    }

    /// What is kept; what would make memcached abort is removed, with a word why.
    pub fn inspect(&self) -> Kept {
        let text = match self.read() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Kept::Nothing,
            Err(error) => {
                tracing::warn!(%error, file = %self.meta.display(), "failed to read what memcached left: it starts empty");
                self.discard();
                return Kept::Nothing;
            }
        };
        if let Some(left) = left(&text) {
            return Kept::Memory(left);
        }
        tracing::warn!(file = %self.meta.display(), "what memcached left is not complete: it starts empty");
        self.discard();
        Kept::Nothing
    }

    /// Lets memcached start empty.
    pub fn discard(&self) {
        if let Err(error) = fs::remove_file(&self.meta)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::error!(%error, file = %self.meta.display(), "failed to remove what memcached cannot use");
        }
    }

    fn read(&self) -> io::Result<String> {
        if fs::metadata(&self.meta)?.len() > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        fs::read_to_string(&self.meta)
    }
}

/// What memcached has left, if the file tells it all.
fn left(text: &str) -> Option<Left> {
    let last = text.strip_suffix('\n')?.lines().next_back()?;
    let is_complete = text.starts_with("Tmain\n") && last.starts_with(LAST) && last.len() > LAST.len() + 2;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.parse::<u64>().ok();
    let uptime = number("Kcurrent_time ")?.saturating_sub(CLOCK_AHEAD);
    let left = Left { stopped: number("Kstop_time ")?, uptime };
    is_complete.then_some(left)
}

/// How long to wait before a start: not in the second of the stop.
pub fn pause(kept: Kept, now: SystemTime) -> Option<Duration> {
    let Kept::Memory(left) = kept else { return None };
    let now = now.duration_since(UNIX_EPOCH).ok()?;
    let next = Duration::from_secs(left.stopped.checked_add(1)?);
    // A clock that was set back must not keep the cache from starting.
    next.checked_sub(now).filter(|pause| !pause.is_zero()).map(|pause| pause.min(Duration::from_secs(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str =
        "Tmain\nKslab_config 1.25\nKcurrent_time 63\nKstop_time 1794990841\nKmmap_oldbase 0x7f3d21e0a000\n";

    fn with(content: Option<&[u8]>) -> (tempfile::TempDir, MemoryFile, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let meta = dir.path().join("memory.meta");
        if let Some(content) = content {
            fs::write(&meta, content).unwrap();
        }
        let file = MemoryFile::new(&dir.path().join("memory"));
        (dir, file, meta)
    }

    #[test]
    fn what_is_complete_is_kept() {
        let (_dir, file, meta) = with(Some(META.as_bytes()));
        assert_eq!(file.inspect(), Kept::Memory(Left { stopped: 1_794_990_841, uptime: 3 }));
        assert!(meta.exists());
    }

    #[test]
    fn whatever_is_cut_off_anywhere_is_removed() {
        for length in 0..META.len() {
            let (_dir, file, meta) = with(Some(&META.as_bytes()[..length]));
            assert_eq!(file.inspect(), Kept::Nothing, "{length}");
            assert!(!meta.exists(), "{length}");
        }
    }

    #[test]
    fn garbage_is_removed_and_nothing_is_nothing() {
        let large = vec![b'x'; 2 << 20];
        for content in [Some(&b"\xff\xfe"[..]), Some(b"hello\n"), Some(&large), None] {
            let (_dir, file, meta) = with(content);
            assert_eq!(file.inspect(), Kept::Nothing);
            assert!(!meta.exists());
        }
    }

    #[test]
    fn a_start_is_never_in_the_second_of_the_stop() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let kept = Kept::Memory(Left { stopped: 100, uptime: 9 });
        assert_eq!(pause(kept, at(100_250)), Some(Duration::from_millis(750)));
        assert_eq!(pause(kept, at(101_000)), None);
        assert_eq!(pause(kept, at(10)), Some(Duration::from_secs(2)), "the clock was set back");
        assert_eq!(pause(Kept::Nothing, at(100_250)), None);
    }

    #[test]
    fn a_warm_start_is_told_by_the_uptime_that_goes_on() {
        let now = UNIX_EPOCH + Duration::from_secs(1003);
        let left = Left { stopped: 1000, uptime: 500 };
        for (uptime, is_warm) in [(503, true), (502, true), (504, true), (2, false), (4, false)] {
            // Clients may have stored something already.
            assert_eq!(left.is_taken_up(now, Duration::from_secs(1), uptime, 7), is_warm, "{uptime}");
        }
        let brief = Left { stopped: 1002, uptime: 2 };
        assert!(brief.is_taken_up(now, Duration::ZERO, 3, 1) && !brief.is_taken_up(now, Duration::ZERO, 3, 0));
    }
}

//! How much memory the process has, and how much it may have: it can say so before it is killed for it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// How often memory is compared with its limit.
const INTERVAL: Duration = Duration::from_secs(30);

/// Told of when more than this part of the limit is used, and again once it was less.
const NEAR: f64 = 0.85;

/// Where the kernel tells of memory.
#[derive(Debug, Clone)]
pub struct Memory {
    root: PathBuf,
}

impl Default for Memory {
    fn default() -> Self {
        Self { root: "/".into() }
    }
}

impl Memory {
    /// What is resident of this process, in bytes.
    pub fn resident(&self) -> Option<u64> {
        self.status("VmRSS:")
    }

    /// The most that was resident since the process started, in bytes: what the next start will need again.
    pub fn peak(&self) -> Option<u64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Option<u64> {
        let status = self.read("proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }

    /// What its container may have, in bytes; none without a limit.
    pub fn limit(&self) -> Option<u64> {
        let files = ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let limit: u64 = files.iter().find_map(|file| self.read(file))?.trim().parse().ok()?;
        // Without a limit, the first version of control groups has one beyond all machines.
        (limit < 1 << 50).then_some(limit)
    }

    fn read(&self, file: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.root.join(file)).ok()
    }

    /// The part of the limit that was used at most.
    #[allow(clippy::cast_precision_loss, reason = "a part does not need the last bytes")]
    fn usage(&self) -> Option<f64> {
        Some(self.peak()? as f64 / self.limit()? as f64)
    }

    /// Logs a warning when memory comes near its limit; runs for ever.
    pub async fn watch(self) {
        let mut was_near = false;
        loop {
            let usage = self.usage().unwrap_or_default();
            if usage >= NEAR && !was_near {
                let (resident, peak, limit) = (self.resident(), self.peak(), self.limit());
                tracing::warn!(
                    resident,
                    peak,
                    limit,
                    "memory came near its limit: raise the limit of the operator's container before it is killed"
                );
            }
            was_near = usage >= NEAR;
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// A gauge that is read when it is scraped; no series while there is nothing to tell.
#[derive(Debug)]
pub(super) struct Bytes(pub Memory, pub fn(&Memory) -> Option<u64>);

impl EncodeMetric for Bytes {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match (self.1)(&self.0) {
            Some(bytes) => encoder.encode_gauge(&i64::try_from(bytes).unwrap_or(i64::MAX)),
            None => Ok(()),
        }
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        (self.1)(&self.0).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Memory) {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let memory = Memory { root: root.path().to_owned() };
        (root, memory)
    }

    #[test]
    fn memory_is_compared_with_the_limit_of_the_container() {
        let status = ("proc/self/status", "Name:\tx\nVmHWM:\t  768 kB\nVmRSS:\t  512 kB\n");
        let (_root, memory) = machine(&[status, ("sys/fs/cgroup/memory.max", "1048576\n")]);
        assert_eq!((memory.resident(), memory.peak()), (Some(512 << 10), Some(768 << 10)));
        assert_eq!((memory.limit(), memory.usage()), (Some(1 << 20), Some(0.75)));
        let (_root, memory) = machine(&[status, ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152")]);
        assert_eq!(memory.usage(), Some(0.375));
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_compare_with() {
        for limit in ["max\n", "9223372036854771712\n", ""] {
            let (_root, memory) = machine(&[("sys/fs/cgroup/memory.max", limit)]);
            assert_eq!((memory.limit(), memory.usage()), (None, None), "{limit:?}");
        }
        assert!(Memory::default().resident().is_some_and(|bytes| bytes > 1 << 20));
    }
}

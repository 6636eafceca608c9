//! What the tests share: a look at processes.

use std::path::Path;

/// The processes that have to do with a directory, with their command lines.
pub fn processes_of(dir: &Path) -> Vec<(u32, String)> {
    let dir = dir.to_str().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
        line.contains(dir).then_some((pid, line))
    })
    .collect()
}

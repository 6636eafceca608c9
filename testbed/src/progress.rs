//! Shows long work: a live line on a terminal, a plain line now and then in a pipe.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const REDRAW: Duration = Duration::from_millis(120);
const REMIND: Duration = Duration::from_secs(20);

/// How progress is shown: decided once, by what standard error is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    live: bool,
    colour: bool,
    hidden: bool,
    position: Option<(usize, usize)>,
}

impl Progress {
    /// Live on a terminal, plain lines elsewhere; `NO_COLOR` is honoured.
    pub fn detect() -> Self {
        let live = io::stderr().is_terminal();
        let colour = live && env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { live, colour, hidden: false, position: None }
    }

    /// Shows nothing.
    pub fn hidden() -> Self {
        Self { live: false, colour: false, hidden: true, position: None }
    }

    /// What begins from here on is number `position` of `total`.
    #[must_use]
    pub fn at(self, position: usize, total: usize) -> Self {
        Self { position: Some((position, total)), ..self }
    }

    /// A sentence of its own.
    pub fn say(self, sentence: &str) {
        self.emit(&format!("{sentence}\n"));
    }

    /// Begins a piece of work; it ends with [`Task::done`] or, when dropped, as failed.
    pub fn begin(self, label: &str) -> Task {
        let note = Arc::new(Mutex::new(String::new()));
        let (stop, stopped) = mpsc::channel();
        let label = self.position.map_or(String::new(), |(n, of)| format!("{n:>2}/{of} ")) + label;
        let painter = Painter { progress: self, label, began: Instant::now(), note: Arc::clone(&note) };
        if !self.live {
            painter.finish("…", "33", "");
        }
        let thread = thread::spawn(move || painter.paint_until(&stopped));
        Task { note, ending: Some((stop, thread)) }
    }

    /// Progress must never make the work fail: a closed standard error is ignored.
    fn emit(self, text: &str) {
        if !self.hidden {
            let mut stderr = io::stderr().lock();
            stderr.write_all(text.as_bytes()).ok();
            stderr.flush().ok();
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// One piece of work under way.
pub struct Task {
    note: Arc<Mutex<String>>,
    ending: Option<(Sender<String>, JoinHandle<()>)>,
}

impl Task {
    /// Says how far it is.
    pub fn note(&self, text: impl Into<String>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    /// It is done; `how` says what came of it.
    pub fn done(mut self, how: &str) {
        if let Some((stop, thread)) = self.ending.take() {
            stop.send(how.to_owned()).ok();
            thread.join().ok();
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ending.take() {
            drop(stop);
            thread.join().ok();
        }
    }
}

struct Painter {
    progress: Progress,
    label: String,
    began: Instant,
    note: Arc<Mutex<String>>,
}

impl Painter {
    fn paint_until(&self, stopped: &mpsc::Receiver<String>) {
        let every = if self.progress.live { REDRAW } else { REMIND };
        for frame in FRAMES.iter().cycle() {
            match stopped.recv_timeout(every) {
                Ok(how) => return self.finish("✓", "32", &format!("{how} ({})", self.elapsed())),
                Err(RecvTimeoutError::Disconnected) => return self.finish("✗", "31", "failed"),
                Err(RecvTimeoutError::Timeout) => self.redraw(frame),
            }
        }
    }

    fn redraw(&self, frame: &str) {
        let note = self.note.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = format!("{note} {}", self.elapsed());
        if self.progress.live {
            let frame = self.progress.paint("36", frame);
            self.progress.emit(&format!("\r\x1b[2K  {frame} {:<40} {}", self.label, text.trim_start()));
        } else {
            self.finish("…", "33", text.trim_start());
        }
    }

    fn finish(&self, sign: &str, code: &str, how: &str) {
        let clear = if self.progress.live { "\r\x1b[2K" } else { "" };
        let sign = self.progress.paint(code, sign);
        let line = format!("{clear}  {sign} {:<40} {how}", self.label);
        self.progress.emit(&format!("{}\n", line.trim_end()));
    }

    fn elapsed(&self) -> String {
        duration(self.began.elapsed())
    }
}

/// A duration as people say it: `0.4 s`, `12 s`, `6 min 10 s`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f32()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        assert_eq!(duration(Duration::from_millis(420)), "0.4 s");
        assert_eq!(duration(Duration::from_secs(59)), "59 s");
        assert_eq!(duration(Duration::from_secs(370)), "6 min 10 s");
    }
}

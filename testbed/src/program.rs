//! Runs other programs: to completion with their output kept, or as children that cannot outlive us.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{env, io, thread};

use crate::error::{Error, Result};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Remembers that the user wants to stop: programs that then fail are reported as interrupted.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

/// An error if the user wants to stop.
pub fn check_interrupted() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// Runs a program to its end and returns what it printed; its output is in the error if it fails.
pub fn run(what: &str, command: &mut Command) -> Result<String> {
    run_watched(what, command, |_| {})
}

/// Like [`run`], and hands over each line of standard error as it comes. Ends the program when the user wants to
/// stop.
pub fn run_watched(what: &str, command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<String> {
    check_interrupted()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| start_error(command, source))?;
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.map(|mut pipe| pipe.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let (sender, lines) = mpsc::channel();
    let stderr = child.stderr.take();
    thread::spawn(move || {
        for line in stderr.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')).map_while(Result::ok) {
            sender.send(String::from_utf8_lossy(&line).into_owned()).ok();
        }
    });
    let mut stderr = String::new();
    loop {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                on_line(&line);
                stderr.push_str(&line);
                stderr.push('\n');
            }
            Err(RecvTimeoutError::Timeout) if check_interrupted().is_err() => {
                child.kill().ok();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().map_err(|source| start_error(command, source))?;
    let stdout = reader.join().unwrap_or_default();
    if status.success() {
        return Ok(stdout);
    }
    check_interrupted()?;
    Err(Error::Program { what: what.into(), status: status.to_string(), output: stdout + &stderr })
}

/// A long-running tool of the host that ends when we end; an error if the host lacks it.
pub fn tool(program: &str) -> Result<Command> {
    if find(program).is_none() {
        let source = io::ErrorKind::NotFound.into();
        return Err(Error::Start { program: program.into(), source });
    }
    Ok(bound_to_parent(program))
}

/// Where a program is; the administrator's directories count even if the PATH lacks them.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// The error of a program that could not be started.
fn start_error(command: &Command, source: io::Error) -> Error {
    Error::Start { program: command.get_program().to_string_lossy().into_owned(), source }
}

/// A command whose process the kernel kills when the thread that started it ends.
///
/// `setpriv` sets the parent-death signal and becomes the program: same process, no wrapper left.
pub fn bound_to_parent(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Starts a command from a thread that lives as long as this process.
///
/// The parent-death signal follows the *thread* that forked (prctl(2)): a test's thread ends long
/// before its process, and would take a cluster that others share with it.
pub fn spawn(command: Command) -> Result<Child> {
    type Job = (Command, Sender<Result<Child>>);
    static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, answer) in queue {
                let child = command.spawn().map_err(|source| start_error(&command, source));
                answer.send(child).ok();
            }
        });
        Mutex::new(jobs)
    });
    let (answer, child) = mpsc::channel();
    let gone = |_| Error::Other("the thread that starts programs is gone".into());
    spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, answer))
        .map_err(|_| gone(mpsc::RecvError))?;
    child.recv().map_err(gone)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_failing_program_is_in_the_error() {
        let mut lines = Vec::new();
        let error = run_watched(
            "the script",
            Command::new("sh").args(["-c", "echo on stdout; echo on stderr >&2; exit 3"]),
            |line| lines.push(line.to_owned()),
        )
        .unwrap_err()
        .to_string();
        assert!(error.starts_with("the script failed (exit status: 3)"), "{error}");
        assert!(error.contains("on stdout") && error.contains("on stderr"), "{error}");
        assert_eq!(lines, ["on stderr"]);
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_found() {
        assert!(find("no-such-program").is_none());
        assert!(find("sh").is_some());
        assert!(tool("no-such-program").unwrap_err().to_string().starts_with("failed to start no-such-program"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run("it", &mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(error.starts_with("failed to start no-such-program"), "{error}");
    }

    #[test]
    fn a_bound_child_outlives_the_thread_that_asked_for_it() {
        let mut sleep = bound_to_parent("sleep");
        sleep.arg("60");
        let mut child = thread::spawn(move || spawn(sleep).unwrap()).join().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "died with the asking thread");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

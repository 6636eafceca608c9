//! The verbs that only look: status, kubeconfig, kubectl, logs.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{Format, Kubectl, Logs, Named, Status, Tool};
use crate::artifact::Artifact;
use crate::cluster::state::{self, Phase, State};
use crate::cluster::{self, Cluster};
use crate::error::{Error, Result};
use crate::progress::duration;
use crate::store::Store;

/// Shows the running clusters.
pub fn status(store: &Store, status: &Status) -> Result<()> {
    state::sweep(store.home())?;
    let clusters = State::list(store.home())?;
    match status.output {
        Format::Json => {
            let all: Vec<_> = clusters.iter().map(describe_json).collect();
            say(&serde_json::to_string_pretty(&all).map_err(|e| Error::Other(e.to_string()))?);
        }
        Format::Text if clusters.is_empty() => say("No cluster is running. Start one with `testbed up`."),
        Format::Text => clusters.iter().for_each(|state| say(&describe(state))),
    }
    Ok(())
}

/// A line, or more of them, on standard output; nobody may be there any more to read them.
fn say(text: &str) {
    writeln!(std::io::stdout(), "{text}").ok();
}

fn describe_json(state: &State) -> serde_json::Value {
    let status = state.status();
    let cluster = Cluster::of(state).ok();
    json!({
        "name": state.description.name,
        "shape": state.description.shape,
        "phase": phase(&status.phase),
        "started": state.description.started,
        "server": cluster.as_ref().map(Cluster::url),
        "kubeconfig": cluster.as_ref().map(Cluster::kubeconfig),
        "components": status.components,
    })
}

fn describe(state: &State) -> String {
    let status = state.status();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let age = Duration::from_secs(now.saturating_sub(state.description.started));
    let (name, shape) = (&state.description.name, state.description.shape);
    let mut lines = vec![format!("{name} ({shape}): {}, since {}", phase(&status.phase), duration(age))];
    if let Ok(cluster) = Cluster::of(state) {
        lines.push(format!("  server      {}", cluster.url()));
        lines.push(format!("  kubeconfig  {}", cluster.kubeconfig().display()));
    }
    for component in &status.components {
        let how = component.exited.as_ref().map_or("running".into(), |exit| format!("ended: {exit}"));
        lines.push(format!("  {:<24} {how}", component.name));
    }
    lines.join("\n")
}

fn phase(phase: &Phase) -> String {
    match phase {
        Phase::Starting => "starting".into(),
        Phase::Ready => "ready".into(),
        Phase::Failed(why) => format!("failed: {why}"),
    }
}

/// Prints where the kubeconfig is.
pub fn kubeconfig(store: &Store, cluster: &Named) -> Result<()> {
    say(&find(store, &cluster.name)?.1.kubeconfig().display().to_string());
    Ok(())
}

/// Prints where a tool is, built first if need be.
pub fn path(store: &Store, tool: &Tool) -> Result<()> {
    let artifact = match tool.tool.as_str() {
        "cargo-deny" => Artifact::cargo_deny(),
        "helm" => Artifact::helm(),
        "mdbook" => Artifact::mdbook(),
        "musl-gcc" => Artifact::musl_compiler(),
        "promtool" => Artifact::promtool(),
        _ => Artifact::kubernetes("kubectl"),
    };
    say(&store.ensure(&artifact)?.join(artifact.name()).display().to_string());
    Ok(())
}

/// Becomes kubectl.
pub fn kubectl(store: &Store, kubectl: &Kubectl) -> Result<ExitCode> {
    let (_, cluster) = find(store, &kubectl.cluster.name)?;
    let mut command = cluster::kubectl(store, &cluster.kubeconfig())?;
    Err(become_program(command.args(&kubectl.arguments)))
}

/// Prints a component's log, or the components there are.
pub fn logs(store: &Store, logs: &Logs) -> Result<ExitCode> {
    let state = find_state(store, &logs.cluster.name)?;
    let names = log_names(&state)?;
    let Some(component) = &logs.component else {
        say(&names.join("\n"));
        return Ok(ExitCode::SUCCESS);
    };
    if !names.contains(component) {
        return Err(Error::Other(format!(
            "no component {component:?} in cluster {:?}: there are {}",
            logs.cluster.name,
            names.join(", ")
        )));
    }
    let mut command = Command::new(if logs.follow { "tail" } else { "cat" });
    if logs.follow {
        command.args(["-n", "50", "-F"]);
    }
    Err(become_program(command.arg(state.log_file(component))))
}

fn log_names(state: &State) -> Result<Vec<String>> {
    let dir = state.dir.join("logs");
    let entries = fs::read_dir(&dir).map_err(Error::file("read", &dir))?;
    let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".log")?.to_owned());
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

fn find(store: &Store, name: &str) -> Result<(State, Cluster)> {
    let state = find_state(store, name)?;
    let cluster = Cluster::of(&state)?;
    Ok((state, cluster))
}

fn find_state(store: &Store, name: &str) -> Result<State> {
    State::find(store.home(), name)?.ok_or_else(|| Error::NoCluster(name.into()))
}

/// Replaces this process: signals, the terminal and the exit code are the program's own business.
fn become_program(command: &mut Command) -> Error {
    Error::Start { program: command.get_program().to_string_lossy().into_owned(), source: command.exec() }
}

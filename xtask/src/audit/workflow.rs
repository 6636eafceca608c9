//! Workflows of continuous integration: they parse, ask for no more rights than they need, run targets that exist, and
//! use actions by commit: a tag can be moved to other code.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::repository::Repository;

const DIRECTORY: &str = ".github/workflows";

/// What workflows may refer to.
#[derive(Debug, Clone, Copy)]
struct Known<'a> {
    targets: &'a [&'a str],
    files: &'a [String],
}

pub fn audit(repository: &Repository) -> Result<Vec<String>> {
    let makefile = repository.read("Makefile")?;
    let targets: Vec<&str> = makefile.lines().filter_map(target).collect();
    let files = repository.list(DIRECTORY, ".yaml")?;
    let known = Known { targets: &targets, files: &files };
    let mut complaints = Vec::new();
    for file in &files {
        let text = repository.read(file)?;
        let workflow: Value = serde_saphyr::from_str(&text).map_err(Error::generate(file))?;
        let found = [check(&workflow, known), check_comments(&text)].concat();
        complaints.extend(found.into_iter().map(|complaint| format!("{file}: {complaint}")));
    }
    Ok(complaints)
}

/// The target that a line of the Makefile is the rule of.
fn target(line: &str) -> Option<&str> {
    let (target, _) = line.split_once(':')?;
    target.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-').then_some(target)
}

fn check(workflow: &Value, known: Known<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for key in ["name", "on", "permissions", "jobs"] {
        if workflow.get(key).is_none() {
            complaints.push(format!("{key} is missing"));
        }
    }
    let jobs = workflow.get("jobs").and_then(Value::as_object);
    for (name, job) in jobs.into_iter().flatten() {
        complaints.extend(check_job(job, jobs, known).into_iter().map(|complaint| format!("job {name}: {complaint}")));
    }
    complaints
}

fn check_job(job: &Value, jobs: Option<&serde_json::Map<String, Value>>, known: Known<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for needed in strings(job.get("needs")) {
        if !jobs.is_some_and(|jobs| jobs.contains_key(needed)) {
            complaints.push(format!("it needs {needed}, which is no job"));
        }
    }
    if let Some(other) = job.get("uses").and_then(Value::as_str) {
        if !known.files.iter().any(|file| other.strip_prefix("./") == Some(file)) {
            complaints.push(format!("{other} is no workflow of ours"));
        }
        return complaints;
    }
    for key in ["runs-on", "timeout-minutes"] {
        if job.get(key).is_none() {
            complaints.push(format!("{key} is missing"));
        }
    }
    for matrix in
        strings(job.pointer("/strategy/matrix/target")).into_iter().filter(|name| !known.targets.contains(name))
    {
        complaints.push(format!("make {matrix} does not exist"));
    }
    let steps: Vec<&Value> = job.get("steps").and_then(Value::as_array).into_iter().flatten().collect();
    if steps.is_empty() {
        complaints.push("it has no steps".into());
    }
    complaints.extend(steps.into_iter().flat_map(|step| check_step(step, known.targets)));
    complaints
}

fn check_step(step: &Value, targets: &[&str]) -> Vec<String> {
    match (step.get("uses").and_then(Value::as_str), step.get("run").and_then(Value::as_str)) {
        (Some(action), None) if is_pinned(action) => Vec::new(),
        (Some(action), None) => vec![format!("{action} is not pinned by commit")],
        (None, Some(script)) => made(script)
            .filter(|target| !targets.contains(target))
            .map(|target| format!("make {target} does not exist"))
            .collect(),
        _ => vec!["a step has to use an action or run a script, and not both".into()],
    }
}

/// Whether an action is named by a commit of its repository.
fn is_pinned(action: &str) -> bool {
    let commit = action.split_once('@').map(|(_, commit)| commit);
    commit.is_some_and(|commit| commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A commit says nothing to people: the version that it is has to stand beside it, where Dependabot raises both.
fn check_comments(text: &str) -> Vec<String> {
    let actions = text.lines().filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix("uses: "));
    let is_said = |action: &&str| action.split_once(" # v").is_some_and(|(_, version)| !version.trim().is_empty());
    let published = actions.filter(|action| !action.starts_with("./"));
    published.filter(|action| !is_said(action)).map(|action| format!("{action} does not say its version")).collect()
}

/// The targets that a script makes.
fn made(script: &str) -> impl Iterator<Item = &str> {
    let commands = script.lines().filter_map(|line| line.trim().strip_prefix("make "));
    let words = commands.flat_map(str::split_whitespace);
    words.filter(|word| !word.contains('=') && !word.contains('$') && !word.contains(['{', '}', '.', '"']))
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn complaints(job: &Value) -> String {
        let workflow = json!({"name": "a", "on": "push", "permissions": {}, "jobs": {"one": job}});
        check(&workflow, Known { targets: &["test"], files: &[] }).join("\n")
    }

    #[test]
    fn a_sound_workflow_passes() {
        let steps = json!([{"uses": format!("actions/checkout@{COMMIT}")}, {"run": "make test IMAGE=x\necho done"}]);
        assert_eq!(complaints(&json!({"runs-on": "x", "timeout-minutes": 5, "steps": steps})), "");
    }

    #[test]
    fn every_kind_of_mistake_is_found() {
        let job = json!({"runs-on": "x", "needs": ["nobody"], "strategy": {"matrix": {"target": ["nothing"]}}, "steps": [
            {"uses": "actions/checkout"}, {"uses": "actions/cache@v5"}, {"run": "make no-such"}, {"name": "empty"},
        ]});
        let found = complaints(&job);
        for complaint in [
            "timeout-minutes is missing",
            "nobody, which is no job",
            "make nothing",
            "actions/checkout is not pinned",
            "actions/cache@v5 is not pinned",
            "make no-such",
            "a step has to",
        ] {
            assert!(found.contains(complaint), "{complaint} is not in:\n{found}");
        }
        assert!(complaints(&json!({"uses": "./nowhere.yaml"})).contains("no workflow of ours"));
        let empty = check(&json!({}), Known { targets: &[], files: &[] });
        assert!(empty.contains(&"permissions is missing".to_owned()));
    }

    #[test]
    fn a_commit_has_its_version_beside_it() {
        assert_eq!(check_comments(&format!("    - uses: a/b@{COMMIT} # v1.2.3\n    uses: ./c.yaml\n")), [""; 0]);
        assert_eq!(check_comments(&format!("    - uses: a/b@{COMMIT}\n      uses: a/c@{COMMIT} #\n")).len(), 2);
    }
}

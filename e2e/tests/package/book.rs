//! What the documentation tells people to do works, and shows what they will see.

use std::fs;
use std::path::Path;
use std::process::Command;

use e2e::operator::ours;
use testbed::artifact::{ARCHIVE, Artifact, busybox_image};
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::wait;

use crate::kind;
use crate::site::{DEADLINE, SYSTEM, Site};

/// A command of a page, and what the page shows of its output.
#[derive(Debug)]
struct Step {
    command: String,
    output: Vec<String>,
}

/// The steps of a page's console blocks, in their order.
fn steps(page: &str) -> Vec<Step> {
    let text = fs::read_to_string(ours(page)).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for block in text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let mut lines = block.lines();
        while let Some(line) = lines.next() {
            let Some(command) = line.strip_prefix("$ ") else {
                steps.last_mut().unwrap().output.push(line.to_owned());
                continue;
            };
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                command.pop();
                command.push_str(lines.next().unwrap().trim_start());
            }
            steps.push(Step { command, output: Vec::new() });
        }
    }
    steps
}

/// The words of a line; what differs from run to run is the same in all of them.
fn words(line: &str) -> Vec<String> {
    // `12s`, `1m5s`, `(8.2`, `(10`.
    let is_age = |word: &str| {
        let is_bracketed = word.starts_with('(');
        let word = word.trim_matches(['(', ')']);
        let is_time = word.ends_with(['s', 'm', 'h', 'd']) && word.starts_with(|c: char| c.is_ascii_digit());
        is_time || ((is_bracketed || word.contains('.')) && word.parse::<f64>().is_ok())
    };
    line.split_whitespace().map(|word| if is_age(word) { "AGE".to_owned() } else { word.to_owned() }).collect()
}

/// Whether all shown lines are in the output, in their order.
fn is_shown(shown: &[String], output: &str) -> Result<(), String> {
    let mut lines = output.lines().map(words);
    for line in shown.iter().filter(|line| !["", "…"].contains(&line.trim())) {
        let wanted = words(line);
        if !lines.any(|there| there == wanted) {
            return Err(format!("{line:?} is not, or not there, in:\n{output}"));
        }
    }
    Ok(())
}

/// Runs a command as a reader would, with `kubectl` on the path and the cluster as the current one.
fn run(command: &str, programs: &Path, kubeconfig: &Path) -> Result<String, String> {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(ours("")).env("PATH", path).env("KUBECONFIG", kubeconfig);
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

/// A directory with `kubectl` and the operator's own program in it.
fn programs(site: &Site) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(Home::locate().unwrap(), Progress::detect());
    let kubectl = store.ensure(&Artifact::kubernetes("kubectl")).unwrap().join("kubectl");
    std::os::unix::fs::symlink(kubectl, dir.path().join("kubectl")).unwrap();
    let image = store.ensure(&busybox_image()).unwrap().join(ARCHIVE);
    site.node.load(&image).unwrap();
    dir
}

#[tokio::test]
async fn the_quick_start_works_word_for_word() {
    let site = Site::open().await;
    let programs = programs(&site);
    for step in steps("docs/src/quick-start.md") {
        // The other way to a cluster has a test of its own.
        if step.command == "make demo" {
            continue;
        }
        // Without a terminal kubectl says that it would like one.
        let command = step.command.replace(" -it ", " -i ");
        let output = run(&command, programs.path(), &site.node.kubeconfig())
            .unwrap_or_else(|output| panic!("{command}:\n{output}"));
        is_shown(&step.output, &output).unwrap_or_else(|why| panic!("{command}: {why}"));
    }
}

#[tokio::test]
async fn every_object_in_the_documentation_is_accepted() {
    let site = Site::open().await;
    kind::install(&site.node).await;
    site.node.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/default")]).unwrap();
    site.rolled_out(SYSTEM, "memcached-operator").await;
    let output = Command::new("python3").args([&ours("docs/check"), "--objects"]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &text).unwrap();
    let applied = wait::until("the objects to be accepted", DEADLINE, async || {
        let apply = ["apply", "--dry-run=server", "--filename", file.path().to_str().unwrap()];
        site.node.kubectl(&apply).map_err(|error| error.to_string())
    });
    let applied = applied.await.unwrap();
    assert!(applied.lines().count() >= 25, "{applied}");
}

#[tokio::test]
async fn the_demo_shows_what_the_readme_says() {
    // A cluster of its own, under another name than a person's.
    let name = "demo-test";
    let testbed = std::env::var("TESTBED_BIN").unwrap_or_else(|_| ours("target/debug/testbed"));
    // What is under way is told on the other stream; people see both, in their order.
    let both = ["-c", r#"exec "$0" "$@" 2>&1"#, &ours("demo/run"), &testbed];
    let (image, shipped) = ("target/test-image/memcached-operator.tar", "target/image/memcached-operator.tar");
    let mut demo = Command::new("sh");
    demo.args(both).current_dir(ours("")).env("DEMO_CLUSTER", name).env("DEMO_IMAGE", image);
    let demo = demo.output().unwrap();
    let output = String::from_utf8_lossy(&demo.stdout).replace(image, shipped);
    let down = Command::new(&testbed).args(["down", "--name", name]).output().unwrap();
    assert!(down.status.success());
    assert!(demo.status.success(), "{output}");
    let readme = fs::read_to_string(ours("README.md")).unwrap();
    let block = readme.split("$ make demo\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<String> = block.lines().map(str::to_owned).collect();
    is_shown(&lines, &output.replace(name, "demo")).unwrap();
}

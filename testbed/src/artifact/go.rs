//! Programs built from their Go modules, pinned by the go.mod and go.sum files in this tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result, Size};
use crate::home::check_space_at;
use crate::program::{bound_to_parent, run, run_watched, tool};
use crate::progress::Task;

use super::KUBERNETES;

pub(super) const KUBERNETES_MOD: &str = include_str!("../../go/kubernetes/go.mod");
pub(super) const COREDNS_MOD: &str = include_str!("../../go/coredns/go.mod");
pub(super) const KWOK_MOD: &str = include_str!("../../go/kwok/go.mod");

/// What compiling may add to Go's own build cache (3.1 GiB after all of Kubernetes, seen).
const BUILD_CACHE: Size = Size::mib(4 * 1024);

/// So many stale packages mean that nothing much is in that cache yet.
const MANY: usize = 1000;

/// A program of a Go module.
#[derive(Debug, Clone)]
pub struct Program {
    name: &'static str,
    package: String,
    linker_flags: String,
    sources: &'static [(&'static str, &'static str)],
    data: Option<ModuleData>,
}

/// Files of a module that the program needs at run time.
#[derive(Debug, Clone)]
struct ModuleData {
    module: &'static str,
    files: &'static [&'static str],
}

/// A program of Kubernetes.
pub fn kubernetes(name: &'static str) -> Program {
    let version = ["component-base/version", "client-go/pkg/version"]
        .map(|package| format!(" -X k8s.io/{package}.gitVersion=v{KUBERNETES}"));
    Program {
        name,
        package: format!("k8s.io/kubernetes/cmd/{name}"),
        linker_flags: format!("-s -w{}", version.concat()),
        sources: &[("go.mod", KUBERNETES_MOD), ("go.sum", include_str!("../../go/kubernetes/go.sum"))],
        data: None,
    }
}

/// CoreDNS, with a main of ours.
pub fn coredns() -> Program {
    Program {
        name: "coredns",
        package: ".".into(),
        linker_flags: "-s -w".into(),
        sources: &[
            ("go.mod", COREDNS_MOD),
            ("go.sum", include_str!("../../go/coredns/go.sum")),
            ("main.go", include_str!("../../go/coredns/main.go")),
        ],
        data: None,
    }
}

/// kwok and the stages that make its nodes and pods ready at once.
pub fn kwok() -> Program {
    Program {
        name: "kwok",
        package: "sigs.k8s.io/kwok/cmd/kwok".into(),
        linker_flags: "-s -w".into(),
        sources: &[("go.mod", KWOK_MOD), ("go.sum", include_str!("../../go/kwok/go.sum"))],
        data: Some(ModuleData {
            module: "sigs.k8s.io/kwok",
            files: &[
                "kustomize/stage/node/fast/node-initialize.yaml",
                "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
                "kustomize/stage/pod/fast/pod-ready.yaml",
                "kustomize/stage/pod/fast/pod-complete.yaml",
                "kustomize/stage/pod/fast/pod-delete.yaml",
            ],
        }),
    }
}

impl Program {
    /// Everything that decides what is built.
    pub fn ingredients(&self) -> Vec<Vec<u8>> {
        let data = self.data.iter().flat_map(|d| d.files.iter().copied());
        [self.package.as_str(), &self.linker_flags]
            .into_iter()
            .chain(self.sources.iter().map(|(_, content)| *content))
            .chain(data)
            .map(|text| text.as_bytes().to_vec())
            .collect()
    }

    /// Builds the program, and copies the data it needs, into `out`.
    pub fn build(&self, out: &Path, task: &Task) -> Result<()> {
        let source = tempfile::tempdir().map_err(Error::file("create a directory below", std::env::temp_dir()))?;
        for (name, content) in self.sources {
            let path = source.path().join(name);
            fs::write(&path, content).map_err(Error::file("write", &path))?;
        }
        tool("go")?;
        let go = |arguments: &[&str]| {
            let mut command = bound_to_parent("go");
            command.args(arguments).current_dir(source.path()).envs([
                ("CGO_ENABLED", "0"),
                ("GOWORK", "off"),
                ("GOTOOLCHAIN", "local"),
                ("GOFLAGS", "-mod=readonly -buildvcs=false"),
            ]);
            command
        };
        self.copy_data(&go, out, task)?;
        let total = self.count_stale(&go, task)?;
        let cache = run("go env", &mut go(&["env", "GOCACHE"]))?;
        let need = if total > MANY { BUILD_CACHE } else { Size::mib(512) };
        check_space_at(Path::new(cache.trim()), "compiling Go programs", need, "GOCACHE")?;
        self.compile(&go, out, total, task)
    }

    /// How many packages have to be compiled; fetches the modules on the way.
    fn count_stale(&self, go: &impl Fn(&[&str]) -> Command, task: &Task) -> Result<usize> {
        task.note("fetching Go modules");
        let stale = "{{if .Stale}}{{.ImportPath}}{{end}}";
        let listed = run_watched(
            &format!("go list of {}", self.name),
            &mut go(&["list", "-deps", "-trimpath", "-f", stale, &self.package]),
            |line| {
                if let Some(module) = line.strip_prefix("go: downloading ") {
                    task.note(format!("fetching {module}"));
                }
            },
        )?;
        Ok(listed.lines().filter(|line| !line.is_empty()).count())
    }

    fn compile(&self, go: &impl Fn(&[&str]) -> Command, out: &Path, total: usize, task: &Task) -> Result<()> {
        let mut command = go(&["build", "-v", "-trimpath", "-ldflags", &self.linker_flags, "-o"]);
        command.arg(out.join(self.name)).arg(&self.package);
        let mut compiled = 0;
        task.note("compiling");
        run_watched(&format!("go build of {}", self.name), &mut command, |line| {
            if !line.starts_with("go: ") {
                compiled += 1;
                task.note(format!("compiling, {compiled} of {total} packages,"));
            }
        })
        .map(drop)
    }

    fn copy_data(&self, go: &impl Fn(&[&str]) -> Command, out: &Path, task: &Task) -> Result<()> {
        let Some(data) = &self.data else {
            return Ok(());
        };
        task.note("fetching Go modules");
        let what = format!("go mod download of {}", data.module);
        run(&what, &mut go(&["mod", "download", data.module]))?;
        let dir = run(&what, &mut go(&["list", "-m", "-f", "{{.Dir}}", data.module]))?;
        for file in data.files {
            let from = PathBuf::from(dir.trim()).join(file);
            let to = out.join(from.file_name().unwrap_or_default());
            // Not fs::copy: the module cache is read-only and its mode would come along.
            let content = fs::read(&from).map_err(Error::file("read", &from))?;
            fs::write(&to, content).map_err(Error::file("write", &to))?;
        }
        Ok(())
    }
}

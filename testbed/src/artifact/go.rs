//! Programs built from their Go modules, pinned by the go.mod and go.sum files in this tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result, Size};
use crate::home::check_space_at;
use crate::program::{bound_to_parent, run, run_watched, tool};
use crate::progress::Task;

use super::{HELM, KUBERNETES};

pub(super) const KUBERNETES_MOD: &str = include_str!("../../go/kubernetes/go.mod");
pub(super) const COREDNS_MOD: &str = include_str!("../../go/coredns/go.mod");
pub(super) const GOMEMCACHE_MOD: &str = include_str!("../../go/gomemcache/go.mod");
pub(super) const KWOK_MOD: &str = include_str!("../../go/kwok/go.mod");
pub(super) const CHAINSAW_MOD: &str = include_str!("../../go/chainsaw/go.mod");
pub(super) const PROMTOOL_MOD: &str = include_str!("../../go/promtool/go.mod");
pub(super) const HELM_MOD: &str = include_str!("../../go/helm/go.mod");
pub(super) const KINDS_MOD: &str = include_str!("../../go/kinds/go.mod");
pub(super) const CERT_MANAGER_MOD: &str = include_str!("../../go/cert-manager/go.mod");
pub(super) const PEER_MOD: &str = include_str!("../../go/peer/go.mod");
pub(super) const PEER_OPERATOR_MOD: &str = include_str!("../../go/peer-operator/go.mod");

/// The Go that is installed; any other is fetched as a module.
const LOCAL: &str = "local";

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
    workspace: Workspace,
    data: Option<ModuleData>,
}

/// Files of a module that the program needs at run time.
#[derive(Debug, Clone)]
struct ModuleData {
    module: &'static str,
    files: &'static [&'static str],
}

/// Directories of a Go module, as they are: what is shipped beside the code.
#[derive(Debug, Clone)]
pub struct Directories {
    module: &'static str,
    paths: &'static [&'static str],
    workspace: Workspace,
}

/// What pins the modules, and the Go that reads it.
#[derive(Debug, Clone, Copy)]
struct Workspace {
    sources: &'static [(&'static str, &'static str)],
    toolchain: &'static str,
    /// Build tags: what is left out.
    tags: &'static str,
}

impl Workspace {
    const fn local(sources: &'static [(&'static str, &'static str)]) -> Self {
        Self { sources, toolchain: LOCAL, tags: "" }
    }
}

/// A program of Kubernetes.
pub fn kubernetes(name: &'static str) -> Program {
    let version = ["component-base/version", "client-go/pkg/version"]
        .map(|package| format!(" -X k8s.io/{package}.gitVersion=v{KUBERNETES}"));
    Program {
        name,
        package: format!("k8s.io/kubernetes/cmd/{name}"),
        linker_flags: format!("-s -w{}", version.concat()),
        workspace: Workspace::local(&[
            ("go.mod", KUBERNETES_MOD),
            ("go.sum", include_str!("../../go/kubernetes/go.sum")),
        ]),
        data: None,
    }
}

/// CoreDNS, with a main of ours.
pub fn coredns() -> Program {
    Program {
        name: "coredns",
        package: ".".into(),
        linker_flags: "-s -w".into(),
        workspace: Workspace::local(&[
            ("go.mod", COREDNS_MOD),
            ("go.sum", include_str!("../../go/coredns/go.sum")),
            ("main.go", include_str!("../../go/coredns/main.go")),
        ]),
        data: None,
    }
}

/// A client of memcached in Go, with a main of ours.
pub fn gomemcache() -> Program {
    Program {
        name: "gomemcache",
        package: ".".into(),
        linker_flags: "-s -w".into(),
        workspace: Workspace::local(&[
            ("go.mod", GOMEMCACHE_MOD),
            ("go.sum", include_str!("../../go/gomemcache/go.sum")),
            ("main.go", include_str!("../../go/gomemcache/main.go")),
        ]),
        data: None,
    }
}

/// kwok and the stages that make its nodes and pods ready at once.
pub fn kwok() -> Program {
    Program {
        name: "kwok",
        package: "sigs.k8s.io/kwok/cmd/kwok".into(),
        linker_flags: "-s -w".into(),
        workspace: Workspace::local(&[("go.mod", KWOK_MOD), ("go.sum", include_str!("../../go/kwok/go.sum"))]),
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

/// The runner of the other operator's test suite.
pub fn chainsaw() -> Program {
    Program {
        name: "chainsaw",
        package: "github.com/kyverno/chainsaw".into(),
        linker_flags: "-s -w".into(),
        workspace: Workspace {
            sources: &[("go.mod", CHAINSAW_MOD), ("go.sum", include_str!("../../go/chainsaw/go.sum"))],
            // The one that it is known to build with: newer ones are not promised by its dependencies.
            toolchain: "go1.25.5",
            tags: "",
        },
        data: None,
    }
}

/// What installs charts.
pub fn helm() -> Program {
    Program {
        name: "helm",
        package: "helm.sh/helm/v4/cmd/helm".into(),
        linker_flags: format!("-s -w -X helm.sh/helm/v4/internal/version.version=v{HELM}"),
        workspace: Workspace::local(&[("go.mod", HELM_MOD), ("go.sum", include_str!("../../go/helm/go.sum"))]),
        data: None,
    }
}

/// What checks and tests alerting rules.
pub fn promtool() -> Program {
    let sources = &[("go.mod", PROMTOOL_MOD), ("go.sum", include_str!("../../go/promtool/go.sum"))];
    Program {
        name: "promtool",
        package: "github.com/prometheus/prometheus/cmd/promtool".into(),
        linker_flags: "-s -w".into(),
        // It asks no cloud where to scrape.
        workspace: Workspace { tags: "remove_all_sd", ..Workspace::local(sources) },
        data: None,
    }
}

/// The other operator's black-box suite, and the kind it needs besides that operator's own.
pub fn peer_suite() -> Directories {
    Directories {
        module: "github.com/c5c3/memcached-operator",
        paths: &["test/e2e", "config/crd/thirdparty"],
        workspace: Workspace::local(&[("go.mod", PEER_MOD), ("go.sum", include_str!("../../go/peer/go.sum"))]),
    }
}

/// The other operator itself, with the kinds that it needs.
pub fn peer_operator() -> Program {
    let sources = &[("go.mod", PEER_OPERATOR_MOD), ("go.sum", include_str!("../../go/peer-operator/go.sum"))];
    Program {
        name: "peer-operator",
        package: "github.com/c5c3/memcached-operator/cmd".into(),
        linker_flags: "-s -w".into(),
        workspace: Workspace::local(sources),
        data: Some(ModuleData {
            module: "github.com/c5c3/memcached-operator",
            files: &[
                "config/crd/bases/memcached.c5c3.io_memcacheds.yaml",
                "config/crd/thirdparty/monitoring.coreos.com_servicemonitors.yaml",
            ],
        }),
    }
}

const KINDS: Workspace = Workspace::local(&[("go.mod", KINDS_MOD), ("go.sum", include_str!("../../go/kinds/go.sum"))]);

/// The kinds of the Prometheus operator.
pub fn prometheus_kinds() -> Directories {
    Directories {
        module: "github.com/prometheus-operator/prometheus-operator",
        paths: &["example/prometheus-operator-crd"],
        workspace: KINDS,
    }
}

/// cert-manager's controllers, with a main of ours.
pub fn cert_manager() -> Program {
    Program {
        name: "cert-manager",
        package: ".".into(),
        linker_flags: "-s -w".into(),
        workspace: Workspace::local(&[
            ("go.mod", CERT_MANAGER_MOD),
            ("go.sum", include_str!("../../go/cert-manager/go.sum")),
            ("main.go", include_str!("../../go/cert-manager/main.go")),
        ]),
        data: None,
    }
}

/// The kinds of cert-manager.
pub fn cert_manager_kinds() -> Directories {
    Directories { module: "github.com/cert-manager/cert-manager", paths: &["deploy/crds"], workspace: KINDS }
}

impl Workspace {
    /// Everything in it that decides what is built.
    fn ingredients(&self) -> impl Iterator<Item = &str> {
        let sources = self.sources.iter().map(|(_, content)| *content);
        let set = [self.toolchain, self.tags].into_iter().filter(|setting| *setting != LOCAL && !setting.is_empty());
        sources.chain(set)
    }

    /// Writes the sources down.
    fn open(self) -> Result<Opened> {
        let dir = tempfile::tempdir().map_err(Error::file("create a directory below", std::env::temp_dir()))?;
        for (name, content) in self.sources {
            let path = dir.path().join(name);
            fs::write(&path, content).map_err(Error::file("write", &path))?;
        }
        tool("go")?;
        Ok(Opened { dir, toolchain: self.toolchain, tags: self.tags })
    }
}

/// A workspace on disk, for as long as it takes to build.
struct Opened {
    dir: tempfile::TempDir,
    toolchain: &'static str,
    tags: &'static str,
}

impl Opened {
    fn go(&self, arguments: &[&str]) -> Command {
        let mut command = bound_to_parent("go");
        let tags = if self.tags.is_empty() { String::new() } else { format!(" -tags={}", self.tags) };
        command.args(arguments).current_dir(self.dir.path()).envs([
            ("CGO_ENABLED", "0"),
            ("GOWORK", "off"),
            ("GOTOOLCHAIN", self.toolchain),
            ("GOFLAGS", &format!("-mod=readonly -buildvcs=false{tags}")),
        ]);
        command
    }

    /// Fetches a module; where it is.
    fn fetch(&self, module: &str, task: &Task) -> Result<PathBuf> {
        task.note("fetching Go modules");
        let what = format!("go mod download of {module}");
        run(&what, &mut self.go(&["mod", "download", module]))?;
        let dir = run(&what, &mut self.go(&["list", "-m", "-f", "{{.Dir}}", module]))?;
        Ok(PathBuf::from(dir.trim()))
    }
}

impl Directories {
    /// Everything that decides what is fetched.
    pub fn ingredients(&self) -> Vec<Vec<u8>> {
        std::iter::once(self.module)
            .chain(self.paths.iter().copied())
            .chain(self.workspace.ingredients())
            .map(|text| text.as_bytes().to_vec())
            .collect()
    }

    /// Copies the directories into `out`, below the paths they have in the module.
    pub fn build(&self, out: &Path, task: &Task) -> Result<()> {
        let module = self.workspace.open()?.fetch(self.module, task)?;
        self.paths.iter().try_for_each(|path| copy_tree(&module.join(path), &out.join(path)))
    }
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Error::file("create", to))?;
    for entry in fs::read_dir(from).map_err(Error::file("read", from))? {
        let entry = entry.map_err(Error::file("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_tree(&source, &target)?;
        } else {
            copy_file(&source, &target)?;
        }
    }
    Ok(())
}

/// Not `fs::copy`: the module cache is read-only and its mode would come along.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let content = fs::read(from).map_err(Error::file("read", from))?;
    fs::write(to, content).map_err(Error::file("write", to))
}

impl Program {
    /// Everything that decides what is built.
    pub fn ingredients(&self) -> Vec<Vec<u8>> {
        let data = self.data.iter().flat_map(|d| d.files.iter().copied());
        [self.package.as_str(), &self.linker_flags]
            .into_iter()
            .chain(self.workspace.ingredients())
            .chain(data)
            .map(|text| text.as_bytes().to_vec())
            .collect()
    }

    /// Builds the program, and copies the data it needs, into `out`.
    pub fn build(&self, out: &Path, task: &Task) -> Result<()> {
        let workspace = self.workspace.open()?;
        self.copy_data(&workspace, out, task)?;
        let total = self.count_stale(&workspace, task)?;
        let cache = run("go env", &mut workspace.go(&["env", "GOCACHE"]))?;
        let need = if total > MANY { BUILD_CACHE } else { Size::mib(512) };
        check_space_at(Path::new(cache.trim()), "compiling Go programs", need, "GOCACHE")?;
        self.compile(&workspace, out, total, task)
    }

    /// How many packages have to be compiled; fetches the modules on the way.
    fn count_stale(&self, workspace: &Opened, task: &Task) -> Result<usize> {
        task.note("fetching Go modules");
        let stale = "{{if .Stale}}{{.ImportPath}}{{end}}";
        let listed = run_watched(
            &format!("go list of {}", self.name),
            &mut workspace.go(&["list", "-deps", "-trimpath", "-f", stale, &self.package]),
            |line| {
                if let Some(module) = line.strip_prefix("go: downloading ") {
                    task.note(format!("fetching {module}"));
                }
            },
        )?;
        Ok(listed.lines().filter(|line| !line.is_empty()).count())
    }

    fn compile(&self, workspace: &Opened, out: &Path, total: usize, task: &Task) -> Result<()> {
        let mut command = workspace.go(&["build", "-v", "-trimpath", "-ldflags", &self.linker_flags, "-o"]);
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

    fn copy_data(&self, workspace: &Opened, out: &Path, task: &Task) -> Result<()> {
        let Some(data) = &self.data else {
            return Ok(());
        };
        let module = workspace.fetch(data.module, task)?;
        for file in data.files {
            let from = module.join(file);
            copy_file(&from, &out.join(from.file_name().unwrap_or_default()))?;
        }
        Ok(())
    }
}

//! The verbs that change something: install, up, down, cert-manager, load, image.

use std::time::Instant;

use super::{Down, Image, Install, Load, Named, Purpose, Up};
use crate::artifact::{self, Set};
use crate::cert_manager;
use crate::cluster::launch;
use crate::cluster::node::{Node, check_root};
use crate::cluster::port::Port;
use crate::cluster::state::{self, Phase, Shape, State};
use crate::cluster::{Cluster, node};
use crate::error::{Error, Result};
use crate::install;
use crate::oci::{self, Config};
use crate::progress::duration;
use crate::store::{Check, Store};

/// Builds what is missing.
pub fn install(store: &Store, install: &Install) -> Result<()> {
    let began = Instant::now();
    let check = if install.verify { Check::Full } else { Check::Quick };
    let report = install::install(store, sets(install.purpose), check)?;
    if report.built == 0 {
        store.progress().say(&format!(
            "Everything is in place: {} parts below {}, checked in {}.",
            report.parts,
            store.home().root().display(),
            duration(began.elapsed())
        ));
    }
    Ok(())
}

fn sets(purpose: Purpose) -> &'static [Set] {
    match purpose {
        Purpose::ControlPlane => &[Set::ControlPlane, Set::Kubectl],
        Purpose::Node => &[Set::Node],
        Purpose::Fleet => &[Set::Fleet],
        Purpose::Compat => &[Set::Compat],
        Purpose::Security => &[Set::Security],
        Purpose::Package => &[Set::Package],
        Purpose::Bench => &[Set::Bench],
        Purpose::Book => &[Set::Book],
        Purpose::Server => &[Set::Server],
        Purpose::All => &[Set::ControlPlane, Set::Node, Set::Fleet, Set::Server],
    }
}

/// Starts a cluster, or says that it is running.
pub async fn up(store: &Store, up: &Up) -> Result<()> {
    let launch = up.launch(false)?;
    if up.shape == Shape::Node {
        check_root("a node")?;
    }
    let progress = store.progress();
    if let Some(state) = State::find(store.home(), &launch.name)? {
        return say_running(store, &state, launch.shape);
    }
    if let Some(port) = launch.api_port {
        Port::exactly(store.home(), port)?;
    }
    install::install(store, &[launch.set()], Check::Quick)?;
    let task = progress.begin(&format!("cluster {}", launch.name));
    let state = launch.start(store, |step| task.note(step)).await?;
    task.done("ready");
    print_next_steps(store, &state)
}

fn say_running(store: &Store, state: &State, wanted: Shape) -> Result<()> {
    if state.description.shape != wanted {
        return Err(Error::OtherShape {
            name: state.description.name.clone(),
            running: state.description.shape.to_string(),
        });
    }
    match state.status().phase {
        Phase::Ready => print_next_steps(store, state),
        Phase::Starting => Err(Error::Other(format!(
            "cluster {:?} is being started by another command: wait for it",
            state.description.name
        ))),
        Phase::Failed(why) => Err(Error::Other(format!(
            "cluster {name:?} is broken: {why}; take it down with `testbed down --name {name}`",
            name = state.description.name
        ))),
    }
}

fn print_next_steps(store: &Store, state: &State) -> Result<()> {
    let cluster = Cluster::of(state)?;
    let name = &state.description.name;
    let flag = if name == "default" { String::new() } else { format!(" --name {name}") };
    store.progress().say(&format!(
        "Kubernetes {} is ready at {}.\n\n  testbed kubectl{flag} get pods -A\n  export KUBECONFIG={}\n  testbed down{flag}",
        artifact::KUBERNETES,
        cluster.url(),
        cluster.kubeconfig().display(),
    ));
    Ok(())
}

/// Takes clusters away.
pub async fn down(store: &Store, down: &Down) -> Result<()> {
    let home = store.home();
    let names: Vec<String> = if down.all {
        State::list(home)?.into_iter().map(|state| state.description.name).collect()
    } else {
        vec![down.cluster.name.clone()]
    };
    for name in &names {
        if let Some(state) = State::find(home, name)?
            && state.description.shape == Shape::Node
        {
            node::check_root("taking a node down")?;
        }
        let task = store.progress().begin(&format!("cluster {name}"));
        let existed = launch::stop(home, name).await?;
        task.done(if existed { "gone" } else { "was not running" });
    }
    state::sweep(home)
}

/// Runs cert-manager's controllers on a cluster.
pub async fn cert_manager(store: &Store, cluster: &Named) -> Result<()> {
    let name = &cluster.name;
    let state = State::find(store.home(), name)?.ok_or_else(|| Error::NoCluster(name.clone()))?;
    let task = store.progress().begin(&format!("cert-manager {}", artifact::CERT_MANAGER));
    cert_manager::ask(&Cluster::of(&state)?, store, &state).await?;
    task.done("ready");
    Ok(())
}

/// Imports an image.
pub fn load(store: &Store, load: &Load) -> Result<()> {
    if !load.archive.is_file() {
        return Err(Error::Other(format!("{} is no file: give the path of an image archive", load.archive.display())));
    }
    let node = Node::find(store.clone(), &load.cluster.name)?;
    let task = store.progress().begin(&load.archive.display().to_string());
    node.load(&load.archive)?;
    task.done("imported");
    Ok(())
}

/// Writes an image of programs.
pub fn image(image: &Image) -> Result<()> {
    let config = Config::new(&[&image.name]).labels(&image.labels).architecture(image.architecture.as_deref());
    oci::image_of_binaries(&image.binaries, config, &image.output)
}

//! The security modes of the contract, tried over sockets on a real node: what answers, and what refuses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::needless_pass_by_value, reason = "findings read best without references")]

mod attempt;
mod client;
mod issuer;
mod keyring;
mod live;
mod matrix;
mod rotation;
mod sample;
mod shutdown;
mod watch;

use std::path::Path;

use e2e::operator;
use e2e::stage::Stage;
use testbed::artifact::{ARCHIVE, sasl_image};
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Node, oci};

/// Our image, as the operator names it here.
const AGENT_IMAGE: &str = "memcached-operator:dev";
/// The stock exporter's name: ours stands in for it, as it is not to be had here, with the same flags.
const STOCK_EXPORTER: &str = "docker.io/prom/memcached-exporter:v0.15.4";

/// A stage on a node that has every image.
async fn set(node: &Node, name: &str) -> Stage {
    load_images(node);
    Stage::set(node, name, env!("CARGO_TARGET_TMPDIR"), &["--agent-image", AGENT_IMAGE]).await.unwrap()
}

/// Once for all tests of this program: loading takes a while.
fn load_images(node: &Node) {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| {
        let store = Store::new(Home::locate().unwrap(), Progress::detect());
        node.load(&store.ensure(&sasl_image()).unwrap().join(ARCHIVE)).unwrap();
        node.load(&operator::image().unwrap()).unwrap();
        let archive = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exporter.tar");
        let config = oci::Config::new(&[STOCK_EXPORTER]).entrypoint(&["/memcached-agent", "exporter"]);
        oci::image_of_binaries(&[operator::agent()], config, &archive).unwrap();
        node.load(&archive).unwrap();
    });
}

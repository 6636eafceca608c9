//! Takes part in a shared node and ends as it is told: the crash of a test, on demand.
//!
//! `hold-node <name> panic` panics while it holds the node; `hold-node <name> wait` holds it until killed.

use std::process::ExitCode;

use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Node, Result};

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (name, deed) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match hold(&name, &deed).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn hold(name: &str, deed: &str) -> Result<()> {
    let node = Node::leased(Store::new(Home::locate()?, Progress::hidden()), name).await?;
    println!("holding {}", node.url());
    assert!(deed != "panic", "as told");
    std::future::pending().await
}

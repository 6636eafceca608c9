//! What the end-to-end tests share: what the host runs, pods, words over a socket, programs beside a test.

pub mod background;
pub mod binary;
pub mod chainsaw;
pub mod helm;
pub mod memcached;
pub mod operator;
pub mod pod;
pub mod scrape;
pub mod stage;
pub mod trace;

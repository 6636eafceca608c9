//! The supervisor as a program, with the real memcached as its child: what is kept, what is told, what is survived.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod harness;
mod hostile;
mod life;
mod order;
mod reload;
mod trial;

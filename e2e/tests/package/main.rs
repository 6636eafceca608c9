//! Every way to install the operator, on a node of its own: chart, kustomize, one file.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod book;
mod certificate;
mod chart;
mod demo;
mod document;
mod kind;
mod manifest;
mod namespaced;
mod pod;
mod registration;
mod release;
mod site;
mod upgrade;
mod value;

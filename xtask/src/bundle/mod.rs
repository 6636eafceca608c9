//! bundle/: the operator for the Operator Lifecycle Manager.

mod descriptor;
mod sample;
mod service_version;

use crate::error::Result;
use crate::output::Output;
use crate::repository::Repository;
use crate::{NOTICE, crd};

const CHANNEL: &str = "alpha";

/// What the image and the directory of a bundle both say.
const ANNOTATIONS: [(&str, &str); 6] = [
    ("operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"),
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
    ("operators.operatorframework.io.bundle.package.v1", "memcached-operator"),
    ("operators.operatorframework.io.bundle.channels.v1", CHANNEL),
    ("operators.operatorframework.io.bundle.channel.default.v1", CHANNEL),
];

pub fn outputs(repository: &Repository) -> Result<Vec<Output>> {
    let definitions = crd::all()?;
    let definitions = definitions.iter().map(|definition| definition.output("bundle/manifests"));
    definitions.chain([service_version::output(repository), Ok(annotations()), Ok(image())]).collect()
}

fn annotations() -> Output {
    let lines: String = ANNOTATIONS.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
    Output::new("bundle/metadata/annotations.yaml", format!("{NOTICE}annotations:\n{lines}"))
}

fn image() -> Output {
    let labels: String = ANNOTATIONS.iter().map(|(key, value)| format!("LABEL {key}={value}\n")).collect();
    let content = format!("{NOTICE}FROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n");
    Output::new("bundle/Dockerfile", content)
}

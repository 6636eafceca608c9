//! Checks of packages that need no cluster: what is wrong is told in one sentence each.

mod bundle;
mod chart;
mod dependency;
mod toolchain;
mod workflow;

use crate::error::Result;
use crate::repository::Repository;

/// What is wrong with the packages.
pub fn audit(repository: &Repository) -> Result<Vec<String>> {
    let parts = [
        bundle::audit(repository)?,
        chart::audit(repository)?,
        dependency::audit(repository)?,
        toolchain::audit(repository)?,
        workflow::audit(repository)?,
    ];
    Ok(parts.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wrong_with_the_packages() {
        assert_eq!(audit(&Repository::here()).unwrap(), [""; 0]);
    }
}

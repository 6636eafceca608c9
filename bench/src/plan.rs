//! What is measured: a scenario, on whom, with how many objects, for the how manieth time.
//! The four together name a result, and the name is the file.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What happens to the objects while the clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// The objects are there, 50 a namespace; the operator starts, until all have their children and a status
    Create,
    /// The same, with all objects in one namespace
    CreateOneNamespace,
    /// The same, and each object refers to two Secrets
    CreateSecrets,
    /// With controllers, scheduler and pretended nodes, until every object is Ready with its three pods
    Ready,
    /// One field is changed in all converged objects, until all Deployments and statuses show it
    Change,
    /// All converged objects are deleted, until no child is left
    Delete,
    /// Two replicas create; the one that leads is killed -9 on the way (ours only)
    LeaderKilled,
    /// The operator is stopped and started over converged objects, until it is at rest
    Restart,
    /// The API server is gone for half a minute over converged objects; from its start until the operator is at rest
    Outage,
    /// Like create, then five minutes in which nothing should be written
    Idle,
}

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The operator of this repository.
    Ours,
    /// The other operator.
    Peer,
    /// Nobody: the requests that have to be made, and no others.
    Bare,
}

/// What runs besides the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// etcd.
    Nobody,
    /// etcd and the controller manager.
    Controllers,
    /// All of these, a scheduler and kwok.
    Fleet,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Create,
        Self::CreateOneNamespace,
        Self::CreateSecrets,
        Self::Ready,
        Self::Change,
        Self::Delete,
        Self::LeaderKilled,
        Self::Restart,
        Self::Outage,
        Self::Idle,
    ];

    /// As it is spelled in file names and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::CreateOneNamespace => "create-one-namespace",
            Self::CreateSecrets => "create-secrets",
            Self::Ready => "ready",
            Self::Change => "change",
            Self::Delete => "delete",
            Self::LeaderKilled => "leader-killed",
            Self::Restart => "restart",
            Self::Outage => "outage",
            Self::Idle => "idle",
        }
    }

    /// On whom it can be measured.
    pub const fn subjects(self) -> &'static [Subject] {
        match self {
            Self::LeaderKilled => &[Subject::Ours],
            // Bare requests have no process that could be restarted, interrupted or idle.
            Self::Restart | Self::Outage | Self::Idle => &[Subject::Ours, Subject::Peer],
            _ => &[Subject::Ours, Subject::Peer, Subject::Bare],
        }
    }

    /// What it needs besides the API server.
    pub const fn company(self) -> Company {
        match self {
            Self::Ready => Company::Fleet,
            // Children are deleted by the garbage collector.
            Self::Delete => Company::Controllers,
            _ => Company::Nobody,
        }
    }

    /// How long writes are counted after convergence, unless somebody says otherwise.
    pub const fn idle_seconds(self) -> u64 {
        match self {
            Self::Idle => 300,
            _ => 30,
        }
    }

    /// Whether each object refers to two Secrets.
    pub const fn has_secrets(self) -> bool {
        matches!(self, Self::CreateSecrets)
    }
}

impl Subject {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Peer, Self::Bare];

    /// As it is spelled in file names and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Peer => "peer",
            Self::Bare => "bare",
        }
    }

    /// As people read it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Peer => "the other operator",
            Self::Bare => "bare requests",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How often it is measured, unless somebody says otherwise: large ones take too long for three.
pub const fn default_runs(size: usize) -> u32 {
    if size <= 1000 { 3 } else { 1 }
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// What happens.
    pub scenario: Scenario,
    /// How many objects.
    pub size: usize,
    /// Whose turn it is.
    pub subject: Subject,
    /// The how manieth time, from 1.
    pub run: u32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.size, self.scenario, self.subject, self.run)
    }
}

impl Key {
    /// The file with its result.
    pub fn file_name(self) -> String {
        format!("{self}.json")
    }

    /// The measurement whose result is in a file; none if the file is something else.
    pub fn of_file(name: &str) -> Option<Self> {
        // From both ends: the scenario's own name has dashes too.
        let (size, rest) = name.strip_suffix(".json")?.split_once('-')?;
        let (rest, run) = rest.rsplit_once('-')?;
        let (scenario, subject) = rest.rsplit_once('-')?;
        Some(Self {
            scenario: Scenario::ALL.into_iter().find(|known| known.name() == scenario)?,
            size: size.parse().ok()?,
            subject: Subject::ALL.into_iter().find(|known| known.name() == subject)?,
            run: run.parse().ok()?,
        })
    }
}

/// Every measurement that was asked for, in its order: whoever is compared is measured within minutes.
pub fn keys(sizes: &[usize], scenarios: &[Scenario], subjects: &[Subject], runs: Option<u32>) -> Vec<Key> {
    let mut keys = Vec::new();
    for &size in sizes {
        for &scenario in scenarios {
            for run in 1..=runs.unwrap_or(default_runs(size)) {
                let wanted = scenario.subjects().iter().filter(|subject| subjects.contains(subject));
                keys.extend(wanted.map(|&subject| Key { scenario, size, subject, run }));
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_found_again_by_the_name_of_its_file() {
        for key in keys(&[100, 10_000], &Scenario::ALL, &Subject::ALL, Some(2)) {
            assert_eq!(Key::of_file(&key.file_name()), Some(key));
        }
        let key = Key { scenario: Scenario::CreateOneNamespace, size: 1000, subject: Subject::Peer, run: 3 };
        assert_eq!(key.file_name(), "1000-create-one-namespace-peer-3.json");
    }

    #[test]
    fn other_files_are_no_results() {
        for name in ["report.json", "1000-create-ours-1.log", "1000-create-nobody-1.json", "x-create-ours-1.json", ""] {
            assert_eq!(Key::of_file(name), None, "{name}");
        }
    }

    #[test]
    fn subjects_take_turns_within_a_run() {
        let names: Vec<String> =
            keys(&[100], &[Scenario::Create], &Subject::ALL, Some(2)).iter().map(Key::to_string).collect();
        let turns = ["ours-1", "peer-1", "bare-1", "ours-2", "peer-2", "bare-2"];
        assert_eq!(names, turns.map(|turn| format!("100-create-{turn}")));
    }

    #[test]
    fn a_leader_is_killed_among_our_own_replicas_only() {
        let keys = keys(&[1000], &[Scenario::LeaderKilled], &Subject::ALL, Some(1));
        assert_eq!(keys.iter().map(|key| key.subject).collect::<Vec<_>>(), [Subject::Ours]);
    }

    #[test]
    fn names_on_the_command_line_are_those_of_files() {
        for scenario in Scenario::ALL {
            let value = scenario.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(value.as_deref(), Some(scenario.name()));
        }
    }
}

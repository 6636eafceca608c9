//! Counts API requests from the audit log: who asked for what, how often.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};

/// What the API server writes down: everything but health checks, once when a request arrives.
///
/// `RequestReceived` is written before the request is handled, so whoever has an answer can count on
/// its line being there; the later stages are written after the answer is on its way.
pub const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- level: None
  nonResourceURLs: [/healthz*, /livez*, /readyz*]
- level: Metadata
";

/// The audit log of a cluster.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in the log; what comes later is counted from there.
#[derive(Debug, Clone, Copy)]
pub struct Mark(u64);

/// One request, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// `pods`, `pods/resize`; the path for what is no resource.
    pub resource: String,
    /// The object's namespace, if any.
    pub namespace: String,
    /// The object's name, if the request names one.
    pub name: String,
}

impl Request {
    /// Whether it asks to change something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

impl AuditLog {
    /// The log at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present end of the log.
    pub fn mark(&self) -> Result<Mark> {
        let length = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        Ok(Mark(length))
    }

    /// The requests since `mark`, in the order of their arrival.
    pub fn requests_since(&self, mark: Mark) -> Result<Vec<Request>> {
        let mut requests = Vec::new();
        self.read_since(mark, |line| requests.extend(parse(line)))?;
        Ok(requests)
    }

    /// How often a user did what since `mark`: `(verb, resource)` → count.
    pub fn count_by(&self, user: &str, mark: Mark) -> Result<BTreeMap<(String, String), usize>> {
        let mut counts = BTreeMap::new();
        // A log of thousands of objects has a gigabyte: a line that does not have the name need not be understood.
        self.read_since(mark, |line| {
            let request = if line.contains(user) { parse(line) } else { None };
            if let Some(request) = request.filter(|request| request.user == user) {
                *counts.entry((request.verb, request.resource)).or_default() += 1;
            }
        })?;
        Ok(counts)
    }

    /// How many requests a user made since `mark` in each second that had any.
    pub fn count_by_second(&self, user: &str, mark: Mark) -> Result<BTreeMap<String, usize>> {
        let mut counts = BTreeMap::new();
        self.read_since(mark, |line| {
            let arrival = if line.contains(user) { arrival(line, user) } else { None };
            if let Some(second) = arrival {
                *counts.entry(second).or_default() += 1;
            }
        })?;
        Ok(counts)
    }

    /// Hands over every line since `mark`, one at a time: a log may be larger than the memory.
    fn read_since(&self, mark: Mark, mut on_line: impl FnMut(&str)) -> Result<()> {
        let mut read = || -> std::io::Result<()> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(mark.0))?;
            let mut reader = BufReader::new(file);
            let mut line = String::new();
            while reader.read_line(&mut line)? > 0 {
                on_line(&line);
                line.clear();
            }
            Ok(())
        };
        read().map_err(Error::file("read", &self.path))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    #[serde(default)]
    request_received_timestamp: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: EventUser,
    #[serde(default)]
    object_ref: Option<ObjectRef>,
}

#[derive(Deserialize)]
struct EventUser {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// The request that a line tells of; none if it tells of a later stage or is only half written.
fn parse(line: &str) -> Option<Request> {
    let event: Event = serde_json::from_str(line).ok()?;
    if event.stage != "RequestReceived" {
        return None;
    }
    let object = event.object_ref.unwrap_or_default();
    let resource = match (object.resource.as_str(), object.subresource.as_str()) {
        ("", _) => event.uri.split('?').next().unwrap_or_default().to_owned(),
        (resource, "") => resource.to_owned(),
        (resource, subresource) => format!("{resource}/{subresource}"),
    };
    Some(Request {
        user: event.user.username,
        verb: event.verb,
        resource,
        namespace: object.namespace,
        name: object.name,
    })
}

/// The second in which a user's request arrived, as in `2026-01-31T12:00:59`.
fn arrival(line: &str, user: &str) -> Option<String> {
    let event: Event = serde_json::from_str(line).ok()?;
    let (second, _) = event.request_received_timestamp.split_once('.')?;
    (event.stage == "RequestReceived" && event.user.username == user).then(|| second.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn line(stage: &str, user: &str, verb: &str, rest: &str) -> String {
        format!(
            r#"{{"stage":"{stage}","verb":"{verb}","requestURI":"/api/v1/x?y=z","user":{{"username":"{user}"}}{rest}}}"#
        )
    }

    fn log(lines: &[String]) -> (tempfile::NamedTempFile, AuditLog) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        let log = AuditLog::at(file.path());
        (file, log)
    }

    #[test]
    fn each_request_counts_once_under_its_user() {
        let pods = r#","objectRef":{"resource":"pods","namespace":"a","name":"b"}"#;
        let resize = r#","objectRef":{"resource":"pods","subresource":"resize","namespace":"a"}"#;
        let (_file, log) = log(&[
            line("RequestReceived", "op", "get", pods),
            line("ResponseComplete", "op", "get", pods),
            line("RequestReceived", "op", "get", pods),
            line("RequestReceived", "op", "patch", resize),
            line("RequestReceived", "other", "get", pods),
        ]);
        let counts = log.count_by("op", Mark(0)).unwrap();
        let key = |verb: &str, resource: &str| (verb.to_owned(), resource.to_owned());
        assert_eq!(counts, BTreeMap::from([(key("get", "pods"), 2), (key("patch", "pods/resize"), 1)]));
    }

    #[test]
    fn requests_are_counted_by_the_second_of_their_arrival() {
        let at = |time: &str| format!(r#","requestReceivedTimestamp":"2026-01-31T12:00:{time}Z""#);
        let (_file, log) = log(&[
            line("RequestReceived", "op", "get", &at("01.000001")),
            line("RequestReceived", "op", "list", &at("01.999999")),
            line("ResponseComplete", "op", "list", &at("01.999999")),
            line("RequestReceived", "other", "get", &at("01.500000")),
            line("RequestReceived", "op", "get", &at("03.000000")),
        ]);
        let counts = log.count_by_second("op", Mark(0)).unwrap();
        assert_eq!(counts.into_values().collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn requests_for_no_resource_are_named_by_their_path() {
        let request = parse(&line("RequestReceived", "op", "get", "")).unwrap();
        assert_eq!(request.resource, "/api/v1/x");
        assert!(!request.is_write());
    }

    #[test]
    fn a_mark_hides_what_came_before_and_half_a_line_is_no_request() {
        let (mut file, log) = log(&[line("RequestReceived", "op", "create", "")]);
        let mark = log.mark().unwrap();
        file.write_all(br#"{"stage":"RequestRec"#).unwrap();
        assert!(log.requests_since(mark).unwrap().is_empty());
        assert_eq!(log.requests_since(Mark(0)).unwrap().len(), 1);
        assert!(log.requests_since(Mark(0)).unwrap()[0].is_write());
    }
}

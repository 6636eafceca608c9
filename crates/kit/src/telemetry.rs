//! Logs for people or for machines, on stderr: `RUST_LOG` decides how much, the format is a flag.
//! Colours appear on a terminal only, and never where `NO_COLOR` is set.

use std::env;
use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// What is logged when `RUST_LOG` says nothing: kube's crates are talkative, and their names begin alike.
const DEFAULT_FILTER: &str = "info,kube=warn";

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines to read.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `RUST_LOG` makes no sense.
    #[error("failed to understand RUST_LOG")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// There is a logger already.
    #[error("failed to install the logger")]
    Install(#[from] TryInitError),
}

/// Sets up logging for the whole process.
pub fn init(format: LogFormat) -> Result<(), TelemetryError> {
    let filter = filter(env::var("RUST_LOG").ok().as_deref())?;
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let ansi = io::stderr().is_terminal() && !no_color;
    subscriber(format, filter, ansi, io::stderr).try_init()?;
    Ok(())
}

fn subscriber<W>(format: LogFormat, filter: EnvFilter, ansi: bool, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match format {
        LogFormat::Human => Box::new(builder.with_ansi(ansi).finish()),
        LogFormat::Json => Box::new(builder.with_ansi(false).json().flatten_event(true).finish()),
    }
}

fn filter(wanted: Option<&str>) -> Result<EnvFilter, TelemetryError> {
    let wanted = wanted.map(str::trim).filter(|wanted| !wanted.is_empty());
    Ok(EnvFilter::try_new(wanted.unwrap_or(DEFAULT_FILTER))?)
}

/// An error with its causes on one line; a cause that its parent has already named is left out.
///
/// ```
/// use operator_kit::telemetry::Chain;
///
/// let error = std::io::Error::other("the disk is full");
/// assert_eq!(Chain(&error).to_string(), "the disk is full");
/// ```
#[derive(Debug)]
pub struct Chain<'a>(
    /// The outermost error.
    pub &'a (dyn Error + 'static),
);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let (first, rest) = texts.split_first().unwrap();
        Layer { text: first, source: (!rest.is_empty()).then(|| Box::new(layers(rest))) }
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written when a reconciler and kube's client both have something to say.
    fn logged(format: LogFormat, ansi: bool) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = subscriber(format, filter(None).unwrap(), ansi, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(object = "default/one", "applied");
            tracing::debug!("details");
            tracing::info!(target: "kube_client::client", "chatter");
            tracing::warn!(target: "kube_runtime::watcher", "trouble");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn people_get_lines_and_colours_only_where_they_can_see_them() {
        let text = logged(LogFormat::Human, false);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("applied object=\"default/one\"") && text.contains("trouble"), "{text}");
        assert!(!text.contains('\x1b'), "{text:?}");
        assert!(logged(LogFormat::Human, true).contains('\x1b'));
    }

    #[test]
    fn machines_get_an_object_a_line() {
        let text = logged(LogFormat::Json, true);
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0]["message"], "applied");
        assert_eq!(lines[0]["object"], "default/one");
        assert_eq!(lines[1]["level"], "WARN");
    }

    #[test]
    fn causes_follow_once_each() {
        let error = layers(&["failed to apply: refused", "refused", "no rights", "no rights", "RBAC"]);
        assert_eq!(Chain(&error).to_string(), "failed to apply: refused: no rights: RBAC");
    }

    #[test]
    fn kube_is_quiet_unless_asked() {
        assert_eq!(filter(None).unwrap().to_string(), filter(Some(" ")).unwrap().to_string());
        assert!(filter(None).unwrap().to_string().contains("kube=warn"));
        assert_eq!(filter(Some("debug")).unwrap().to_string(), "debug");
        assert!(matches!(filter(Some("a=b=c")), Err(TelemetryError::Filter(_))));
    }
}

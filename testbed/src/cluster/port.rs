//! Free ports on loopback, agreed on with other testbeds by locks.

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;

use crate::error::{Error, Result};
use crate::home::Home;

/// Below the range from which the kernel takes ports for outgoing connections: what is free now is
/// not taken a moment later by somebody else's connection.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that no other testbed will take while this lives.
#[derive(Debug)]
pub struct Port {
    pub number: u16,
    _lock: File,
}

impl Port {
    /// A free one.
    pub fn free(home: &Home) -> Result<Self> {
        // Start somewhere else in each process: several that start at once seldom meet.
        let offset = u16::try_from(std::process::id() % 1000).unwrap_or(0) * 12;
        let start = RANGE.start + offset;
        for number in (start..RANGE.end).chain(RANGE.start..start) {
            if let Some(port) = Self::try_take(home, number)? {
                return Ok(port);
            }
        }
        Err(Error::Other("no free port on 127.0.0.1 between 20000 and 32000".into()))
    }

    /// This one.
    pub fn exactly(home: &Home, number: u16) -> Result<Self> {
        Self::try_take(home, number)?.ok_or(Error::PortInUse { port: number })
    }

    fn try_take(home: &Home, number: u16) -> Result<Option<Self>> {
        let path = home.lock_file(&format!("port-{number}"));
        let lock = File::create(&path).map_err(Error::file("create", &path))?;
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        match TcpListener::bind(("127.0.0.1", number)) {
            Ok(_) => Ok(Some(Self { number, _lock: lock })),
            Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(Error::Other(format!("cannot listen on port {number}: {error}; choose another"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_never_get_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let one = Port::free(&home).unwrap();
        let two = Port::free(&home).unwrap();
        assert_ne!(one.number, two.number);
        assert!(Port::exactly(&home, one.number).is_err());
    }

    #[test]
    fn a_port_in_use_is_refused_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = taken.local_addr().unwrap().port();
        let error = Port::exactly(&home, number).unwrap_err().to_string();
        assert!(error.contains(&format!("port {number} ")) && error.contains("--api-port"), "{error}");
    }
}

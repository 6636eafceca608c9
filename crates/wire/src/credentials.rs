//! A user and a password, as memcached's `-Y` file has them. They are never printed.

use std::fmt;

use crate::error::{Error, Result};

/// memcached reads a login into a buffer of this size.
const LONGEST: usize = 2048;

/// Who logs in.
///
/// ```
/// use memcached_wire::Credentials;
///
/// let credentials = Credentials::first_of("ann:secret\nbob:other\n")?;
/// assert_eq!(credentials.user(), "ann");
/// assert!(!format!("{credentials:?}").contains("secret"));
/// # Ok::<(), memcached_wire::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Checks a user and a password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Result<Self> {
        let (user, password) = (user.into(), password.into());
        let invalid = |why: &str| Err(Error::Invalid(why.into()));
        if user.is_empty() || user.contains([' ', ':']) {
            return invalid("a user has a name, without spaces and colons");
        }
        if user.chars().chain(password.chars()).any(char::is_control) {
            return invalid("user and password have no control characters");
        }
        if user.len() + password.len() >= LONGEST {
            return invalid("user and password have less than 2048 bytes together");
        }
        Ok(Self { user, password })
    }

    /// The first user of a password file: one `user:password` a line.
    pub fn first_of(file: &str) -> Result<Self> {
        let first = file.lines().find(|line| !line.trim().is_empty());
        let first = first.ok_or_else(|| Error::Invalid("the password file has no user".into()))?;
        let (user, password) =
            first.split_once(':').ok_or_else(|| Error::Invalid("a line of a password file is user:password".into()))?;
        Self::new(user, password)
    }

    /// Every user of a password file, as memcached reads it: each line is `user:password`.
    pub fn all_of(file: &str) -> Result<Vec<Self>> {
        let line = |line: &str| {
            let pair = line.split_once(':').filter(|(user, password)| !user.is_empty() && !password.is_empty());
            let (user, password) =
                pair.ok_or_else(|| Error::Invalid("a line of the password file is not user:password".into()))?;
            Self::new(user, password)
        };
        file.lines().map(line).collect()
    }

    /// The name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// What is sent: the two with a space between them.
    pub(crate) fn token(&self) -> Vec<u8> {
        [self.user.as_bytes(), b" ", self.password.as_bytes()].concat()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_user_of_a_file_is_taken() {
        let credentials = Credentials::first_of("\nann:a:b c\r\nbob:x\n").unwrap();
        assert_eq!(credentials.token(), b"ann a:b c");
    }

    #[test]
    fn every_line_is_a_user() {
        assert_eq!(Credentials::all_of("ann:1\nbob:2\n").unwrap().len(), 2);
        for file in ["ann:1\n\nbob:2\n", "ann\n", ":x\n", "ann:\n"] {
            assert!(Credentials::all_of(file).is_err(), "{file:?}");
        }
    }

    #[test]
    fn what_would_break_out_of_a_login_is_refused() {
        for (user, password) in [("", "x"), ("a b", "x"), ("a:b", "x"), ("a", "x\r\nflush_all"), ("a\0", "x")] {
            assert!(Credentials::new(user, password).is_err(), "{user:?} {password:?}");
        }
        assert!(Credentials::new("a", "x".repeat(2048)).is_err());
        for file in ["", "\n\n", "no colon\n"] {
            assert!(Credentials::first_of(file).is_err(), "{file:?}");
        }
    }
}

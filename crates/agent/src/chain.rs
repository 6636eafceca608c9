//! An error with its causes on one line.

use std::error::Error;
use std::fmt;

/// An error with its causes; one that its parent has already named is left out.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

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

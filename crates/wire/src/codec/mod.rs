//! The protocol without IO: requests become bytes, bytes become frames, frames become answers.
//!
//! ```
//! use memcached_wire::codec::{Decoder, Frame};
//!
//! let mut decoder = Decoder::default();
//! decoder.feed(b"VALUE greeting 0 5\r\nhel");
//! assert_eq!(decoder.next()?, None);
//! decoder.feed(b"lo\r\nEND\r\n");
//! assert!(matches!(decoder.next()?, Some(Frame::Value { data, .. }) if data == "hello"));
//! assert_eq!(decoder.next()?, Some(Frame::Line("END".into())));
//! # Ok::<(), memcached_wire::ProtocolViolation>(())
//! ```

mod collect;
mod frame;
mod request;

pub use collect::{
    Batch, Collect, Debugged, Dump, Exactly, Found, Line, OneMeta, Refusal, StatLines, Value, Values, collect,
};
pub use frame::{Decoder, Frame, Limits};
pub use request::Request;

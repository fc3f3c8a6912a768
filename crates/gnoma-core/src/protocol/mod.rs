//! What front ends and a host of sessions say to each other, over channels or a socket.

mod spec;

pub use self::spec::{Detach, Environment, Overrides, SessionSpec, Start};

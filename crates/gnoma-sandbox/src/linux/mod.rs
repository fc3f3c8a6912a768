//! Walls on Linux: namespaces, mounts, Landlock and a filter of system calls.

mod confine;
mod fault;
mod filter;
mod guarded;
mod landlocked;
pub(crate) mod launcher;
mod mounts;
mod protect;
mod raw;
mod real;
pub(crate) mod session;
mod sockets;
pub(crate) mod trial;
mod watch;

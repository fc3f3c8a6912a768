//! Walls on Linux: namespaces, mounts, Landlock and a filter of system calls.

mod channel;
mod confine;
mod fault;
mod filter;
mod fuse;
mod guarded;
mod keeper;
mod landlocked;
mod last;
mod launch;
pub(crate) mod launcher;
mod mounter;
mod mounts;
mod overlay;
mod own_root;
mod paths;
mod protect;
mod raw;
mod real;
mod seals;
pub(crate) mod session;
mod sockets;
mod spare;
mod stamps;
pub(crate) mod trial;
pub(crate) mod view;
mod watch;

//! Walls on Linux: namespaces, mounts, Landlock and a filter of system calls.

mod channel;
mod confine;
mod fault;
mod filter;
mod guarded;
mod keeper;
mod landlocked;
mod last;
mod launch;
pub(crate) mod launcher;
mod memory;
mod memory_folder;
mod mounter;
mod mounts;
mod overlay;
mod own_root;
mod paths;
mod protect;
mod raw;
mod real;
pub(crate) mod session;
mod sockets;
mod spare;
mod stamps;
pub(crate) mod trial;
pub(crate) mod view;
mod watch;

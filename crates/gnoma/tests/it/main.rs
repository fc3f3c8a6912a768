//! The whole program: the `gnoma` binary in a project of its own, against a scripted server.

mod faults;
mod life;
mod output;
mod permission;
mod settings;
mod support;
mod turn;

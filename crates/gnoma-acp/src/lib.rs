//! gnoma as an agent of the Agent Client Protocol (version 1): an editor starts `gnoma acp` and speaks
//! JSON-RPC to it, one message per line.
//!
//! The agent is a front end like any other: it holds a [`Client`](gnoma_core::protocol::Client) and cannot tell where
//! its sessions live. [`wire`] reads and writes messages, [`Agent`] translates between the two protocols
//! without waiting for anything, and [`run`] moves bytes. What a session shows is translated by pure
//! functions and small folds, one file for each part of it.

mod agent;
mod calls;
mod changes;
pub mod client;
mod config;
mod effect;
mod error;
mod files;
mod params;
mod permission;
mod prompt;
mod run;
mod session;
mod session_control;
mod session_setup;
mod state;
mod stored;
mod time;
mod tools;
mod turns;
mod updates;
pub mod wire;

pub use self::{
    agent::{Agent, AgentMessage, AgentOptions},
    files::{WantedFile, WantedFiles, editor_files},
    run::serve_client,
};

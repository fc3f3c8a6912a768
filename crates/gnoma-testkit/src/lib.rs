//! Fakes for gnoma's tests: a scripted HTTP server, streams in the words of every protocol, vendors that
//! refuse malformed requests, recorded exchanges, a terminal, and providers, tools and places to keep
//! things that do as they are told.
//!
//! For development only and never shipped. It holds no assertions and knows no adapter: what a vendor
//! refuses, [`Vendor`] knows; what else is right, the tests say.

pub mod cassette;
mod fake_stores;
mod ledger;
mod provider;
pub mod server;
mod skip;
mod terminal;
mod tool;
pub mod value_encodings;
pub mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use cassette::Cassette;
pub use fake_stores::{FakeCheckpoints, FakeResultStore, FakeStore, ScriptedOutcome};
pub use ledger::{FakeLedger, SettledRecord};
pub use provider::{Answer, FakeProvider};
pub use server::{End, Gate, Pace, Reaction, Reply, ReplyBody, Request, Server, Vendor};
pub use skip::{SKIPS_VARIABLE, skip_test};
pub use terminal::{Terminal, TerminalWindow};
pub use tool::FakeTool;
pub use wire::{Failure, Fault, FaultStage, IssuedTokens, RetryAfter, Script, ScriptCall, Wire};

/// Locks; a panic elsewhere does not make what was noted worse.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

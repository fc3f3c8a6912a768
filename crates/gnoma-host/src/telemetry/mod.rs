//! Telemetry: spans, metrics and log records of sessions for the person's OpenTelemetry collector.
//!
//! Off by default, and then nothing is computed. Spans of turns, tools and questions are made from the events that the
//! debug log and front ends get ([`session`]), those of model calls from what the ledger settles ([`calls`]), so that
//! their sums are the ledger's. Nothing of what people, models or tools wrote is in them, unless the person wants it;
//! every text passes a firewall that lets no secret pass. Sessions in incognito send nothing.

mod calls;
mod content;
mod find;
mod hooks;
mod open_call;
mod process;
mod session;
mod spans;

pub use gnoma_otel::host_of;

pub(crate) use self::{calls::MeteredLedger, find::find_telemetry, session::TracedSession};
pub use self::{find::export_hosts, process::Telemetry, session::SessionTrace};

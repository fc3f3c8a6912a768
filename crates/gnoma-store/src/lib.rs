//! What survives a restart: sessions in SQLite, and files that can be brought back.
//!
//! [`Store`] is the file backend of [`gnoma_core::store::SessionStore`]: one database per project,
//! an append-only tree of entries, one writing thread with group commit, full-text search, and
//! repair of whatever a crash left. [`checkpoint`] keeps the files of a workspace. Nothing here
//! reads settings or the environment, and nothing is written that the caller's redaction has not
//! seen.

mod adopt;
pub mod checkpoint;
mod db;
mod error;
pub mod export;
mod ids;
pub mod import;
mod lane;
mod lock;
mod migrate;
mod options;
mod pairs;
mod path;
mod recover;
mod redact;
mod retention;
mod salvage;
mod schema;
mod search;
mod session;
mod store;
mod text;

pub use options::{Journal, Options, Redact, Written, project_key};
pub use retention::{Pruned, Retention};
pub use salvage::Rescued;
pub use store::{Opened, Store};

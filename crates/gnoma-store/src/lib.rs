//! Persistence: sessions in SQLite, and checkpoints of files.
//!
//! [`Store`] is the file backend of [`gnoma_core::store::SessionStore`]: one database per project,
//! an append-only tree of entries, one writing thread with group commit, full-text search, and
//! repair after a crash. [`checkpoint`] saves the files of a workspace, [`ledger`] counts what all
//! sessions spend. Nothing here reads settings or the environment, and everything that people or models
//! say passes the caller's redaction before it is written. Incognito has no store at all: none is
//! opened or created.
//!
//! A program opens one store for its project, once, and shares it:
//!
//! ```
//! # use std::{borrow::Cow, sync::Arc};
//! # use gnoma_core::{Message, store::{
//! #     Durability, NewEntry, NewSession, PageRequest, Parent, Record, ResultStore, SessionStore,
//! # }};
//! # use gnoma_store::{Opened, Options, Store};
//! # async fn example(folder: std::path::PathBuf, now_ms: i64) -> Result<(), gnoma_core::store::StoreError> {
//! // One folder per profile. The last argument receives every string before it is written.
//! let options = Options::new(folder, "/home/me/project", Arc::new(|_, text| Cow::Borrowed(text)));
//! let Opened { store, rescued } = Store::open(options)?;
//! if let Some(rescued) = rescued {
//!     eprintln!("{rescued}");
//! }
//! let store = Arc::new(store);
//!
//! // A session begins with the first message. To continue one instead, `hold` it, and tell the
//! // person which calls were interrupted; if another process has it, offer to `fork` it.
//! let session = store.begin(NewSession { at_ms: now_ms, ..NewSession::default() }).await?;
//! store.hold(session.clone(), now_ms).await?;
//! let message = Arc::new(Message::user_text("hello"));
//! store
//!     .append(NewEntry {
//!         session: session.clone(),
//!         parent: Parent::Tip,
//!         at_ms: now_ms,
//!         record: Record::Message(message),
//!         // At a turn's end: `Durability::Disk`.
//!         durability: Durability::Process,
//!     })
//!     .await?;
//!
//! // A large tool result goes to the result store before the tool message that refers to it is
//! // appended.
//! let results = store.result_store(session.clone());
//! let handle = results.put("many lines".to_owned()).await?;
//! let first_lines = results.read(handle, 0, 16 * 1024).await?;
//!
//! let screenful = PageRequest { tip: None, max_entries: 200, max_bytes: 1024 * 1024 };
//! let page = store.load(session, screenful).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Errors are values: the turn continues, and a notice shows the sentence once. Dropping the last
//! `Arc` waits for queued writes and releases the holds.

mod add_import;
mod backoff;
pub mod calendar;
pub mod checkpoint;
mod child;
mod create;
mod database;
mod db;
mod entry;
mod erase;
mod error;
pub mod export;
mod files;
mod ids;
pub mod import;
mod interrupted_children;
mod job;
mod json_repair;
pub mod ledger;
mod lock;
mod log;
mod migrate;
mod open;
mod options;
mod origin;
mod pages;
mod pairs;
mod path;
mod recover;
mod redact;
mod rescue;
mod rescue_report;
mod result_store;
mod results;
mod retention;
mod schema;
mod search;
mod session;
mod session_row;
mod sql;
mod store;
mod text;
mod text_index;
mod time;
mod upkeep;
mod users;
mod worker;
mod writer;

pub use add_import::ImportOutcome;
pub use ids::session_id;
pub use ledger::{
    CallRow, DamagedCall, DamagedCalls, KEPT_DAYS as CALLS_KEPT_DAYS, NameId, OpenedLedger,
    QuarantinedLedger, SqliteLedger, UsageRead,
};
pub use options::{Journal, Options, RecoveryCallback, RedactHook, WrittenString, project_key};
pub use rescue_report::RescueReport;
pub use result_store::SessionResults;
pub use retention::{PrunedSessions, Retention};
pub use store::{OpenDatabase, OpenedStore, Store};

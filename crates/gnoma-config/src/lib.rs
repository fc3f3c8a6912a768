//! Turns layers of TOML, environment and flags into one typed, explained [`Settings`].
//!
//! Layers, later ones win: built-in values, the user's `config.toml`, the chosen profile, the
//! project's `.gnoma/config.toml`, environment, flags. [`load()`] reads the files; the rest is pure
//! and driven by one table of keys, [`schema::ROWS`]. Until a project's folder is [trusted](trust),
//! only the harmless settings of its file apply.
//!
//! [`edit`] changes a file's text and [`save`] writes it, so that what a person wrote stays.
//!
//! Not here: reading the process environment, finding the user's folders, asking people, or giving
//! types to sections that nothing uses yet.

mod condition;
mod consistency_checks;
pub mod describe;
pub mod edit;
pub mod env;
mod expand;
pub mod explain;
pub mod finding;
mod guard;
mod key;
mod layer;
pub mod load;
mod mistakes;
mod money;
pub mod paths;
pub mod pin;
pub mod profile;
mod reader;
pub mod save;
pub mod schema;
pub mod settings;
mod text;
mod tree;
pub mod trust;
mod value;

pub use gnoma_core::suggest::{is_slip_of, nearest_name};
pub use toml;

pub use crate::{
    explain::ExplainedValue,
    finding::{ConfigError, Finding, Origin, Place, Severity},
    guard::FileTrust,
    load::{LoadedConfig, Sources, load_settings},
    paths::project_root,
    schema::wrong_address,
    settings::{Protocol, Settings},
    text::{Position, Snippet},
};

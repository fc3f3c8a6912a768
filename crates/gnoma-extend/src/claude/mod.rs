//! Tools as programs know them that drive `claude`: names and arguments, in both directions.
//!
//! Everything inside gnoma (guard, rules, history, tools) speaks gnoma's own names. Only what such programs
//! and the models behind them are shown is put into the other form, and what comes back is put into ours
//! before anybody judges it.

mod provider;
mod renamer;
mod restrictions;
mod rules;
mod shape;

pub use self::{
    provider::RenamingProvider,
    renamer::{RenameDirection, Renamer},
    restrictions::{restricting_rules, wider_rules},
    rules::{ForbiddenToolsError, RuleFault, forbidden_tools, our_rules, tool_list},
    shape::{our_input, our_name, their_input, their_name, their_spec},
};

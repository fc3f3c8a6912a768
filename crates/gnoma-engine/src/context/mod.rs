//! What fills a model's window, and how it stays within it.
//!
//! [`tracker`] knows how many tokens the conversation has: what the provider counted last, plus an estimate of what
//! came after ([`size`], [`wire`]). After a compaction, a [`brief`] replaces the beginning: the person's own
//! [`words`], what was done ([`deeds`]) and a summary.
//! [`cache`] says what providers served from their caches, and what invalidated them.

pub(crate) mod brief;
pub(crate) mod cache;
mod fullness;
mod retained_prompts;
mod size;
mod strategy;
pub mod tracker;
mod wire;
mod work_activity;

pub(crate) use self::fullness::classify_fullness;
pub use self::{strategy::Strategy, tracker::Tracker, wire::Counter};

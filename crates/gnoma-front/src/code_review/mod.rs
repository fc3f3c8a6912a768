//! Reviews of changes by a model: what the model is shown and asked, what of its answer counts, and the report.
//!
//! The change and the answer are hostile: comments count only on lines of the change, and each form of the report lets
//! nothing of its text act where the report is shown. Git is run and reports are written elsewhere.

pub mod diff;
pub mod escape;
pub mod markdown;
pub mod report_forms;
mod review;

pub use self::review::{Comment, CommentLevel, Review, SCHEMA};

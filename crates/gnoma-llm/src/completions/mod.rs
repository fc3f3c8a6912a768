//! What Mistral's and OpenAI's chat completions have in common.
//!
//! Mistral's wire grew out of OpenAI's and kept its skeleton: choices with a `delta` or a `message`,
//! calls in pieces, one `finish_reason`, one `usage`. That skeleton is read and written here, once.
//! What a vendor puts into a delta, into a request or into a message of its own stands in the vendor's
//! folder ([`crate::mistral`], [`crate::openai::chat`]).

pub(crate) mod blocks;
pub(crate) mod content_text;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod models;
mod usage;
pub(crate) mod wire;

//! Separates remarks before tool calls from the final answer.
//!
//! Newer models tell their messages apart so (`commentary`, `final_answer`), and OpenAI asks to send the
//! word back with each. It is kept as the signature of the text; the mark in front keeps signatures
//! apart that other protocols have put there.

const MARK: &str = "phase:";

/// The signature that keeps `phase`.
pub(super) fn to_signature(phase: &str) -> String {
    format!("{MARK}{phase}")
}

/// The phase that a signature keeps.
pub(super) fn from_signature(signature: Option<&str>) -> Option<&str> {
    signature?.strip_prefix(MARK)
}

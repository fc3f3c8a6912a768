//! The answers to questions that extensions put to models beside the conversation.

pub(super) use gnoma_core::lifecycle::SideQuestionError;

/// The answer to a side question, or the reason why there is none.
pub(super) type SideAnswer = Result<String, SideQuestionError>;

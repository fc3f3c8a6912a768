//! OpenAI's two protocols. They share a vendor and little else.

pub(crate) mod chat;
pub(crate) mod responses;

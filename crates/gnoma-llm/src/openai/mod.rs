pub(crate) mod chat;
pub(crate) mod responses;

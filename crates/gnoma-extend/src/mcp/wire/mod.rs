//! The protocol's messages: text in, values out. Nothing here waits, sends or knows what a value means.

pub(super) mod json;
pub(super) mod rpc;
pub(super) mod sse;

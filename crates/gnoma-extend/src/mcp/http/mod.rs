//! A server that is reached by streamable HTTP: each message is a request of its own, and its answer is a document or
//! a stream of events.

mod answer;
mod events;
mod headers;
mod link;
mod post;
mod state;

pub(super) use self::{
    headers::{HeaderParameter, HeaderParameterError, find_header_parameters},
    link::{HttpLink, OutgoingRequest},
};

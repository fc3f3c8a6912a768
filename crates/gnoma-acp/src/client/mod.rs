//! gnoma as a client of the protocol: another program's agent is spoken to. Pure: lines of the agent go in,
//! what it says and the lines for it come out.
//!
//! An agent is somebody else's program. What it says is cleaned before anybody reads it, what it sends
//! without end is counted and cut, and it decides nothing: what it asks for goes to whoever holds the
//! [`Conversation`].

mod answer;
mod call;
mod clean;
mod conversation;

pub use self::{
    answer::{AgentRequestKind, PermissionChoices},
    call::AgentCall,
    clean::clean_text,
    conversation::{AgentEvent, Conversation, MAX_AGENT_LINE_BYTES},
};

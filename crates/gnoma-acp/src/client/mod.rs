//! gnoma as a client of the protocol: another program's agent is spoken to. Pure: lines of the agent go in,
//! what it says and the lines for it come out.
//!
//! An agent is another program, which may send anything. Its texts are cleaned before they are shown, its output is
//! limited, and it decides nothing: its requests go to the holder of the [`Conversation`].

mod answer;
mod call;
mod clean;
mod conversation;

pub use self::{
    answer::{AgentRequestKind, PermissionChoices},
    call::AgentCall,
    clean::clean_text,
    conversation::{AgentEvent, Conversation, ConversationError, MAX_AGENT_LINE_BYTES},
};

//! Servers of the Model Context Protocol: programs and services whose tools a session can call.
//!
//! A server is someone else's: its name, its descriptions and its answers are hostile, and it decides nothing here.
//! Its tools are offered as `mcp__server__tool`, and each call is judged as one that may do anything. A server
//! starts when it is needed, runs in the sandbox and ends with gnoma, and every size and wait has a limit
//! ([`limits`]).
//!
//! Decided elsewhere: which files are read and trusted and what the sandbox is (the host), and whether a call may
//! run (the guard).

mod approval;
mod calls;
mod catalog;
mod conformance;
mod definition;
mod error;
mod failure;
mod handler;
mod http;
mod keyring;
pub mod limits;
mod listed_prompt;
mod listed_resource;
mod listed_tool;
mod lists;
mod live_connection;
mod login;
mod message_report;
mod naming;
mod oauth;
mod peer;
mod plugin;
mod process;
mod prompts;
mod question;
mod resource;
mod result;
mod schema;
mod search;
mod server;
mod server_prompt;
mod servers;
mod stdio;
#[cfg(test)]
mod tests;
mod tool;
mod version;
mod wire;

pub use self::{
    approval::{ChangedTool, DescribedTool, ToolMemory, ToolMemoryError},
    conformance::{Scenario, ScenarioError, run_scenario},
    definition::{Definition, ServerFile, ServerOrigin, ServerReach, read_file},
    failure::McpError,
    keyring::Keyring,
    login::{LoginError, log_in},
    message_report::{MessageReport, MessageReporter},
    naming::{PREFIX, ServerNameError, check_server, qualified_tool_name as tool_name},
    oauth::Tokens,
    plugin::of_plugin,
    process::{
        MeteredOutput, Process, ProgramStartError, ServerEnvironment, ServerSandbox,
        StartedProcess, Stderr, start_program,
    },
    server::{CleanText, NoticeSink, ServerFacts, ServerState},
    server_prompt::ServerPrompt,
    servers::{ServerOptions, ServerReport, Servers, ServersView, ToolOfferWatcher},
};

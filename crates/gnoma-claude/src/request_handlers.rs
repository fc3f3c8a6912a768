//! The program's requests, as they are done.

use gnoma_core::{RawJson, json_value::json, protocol::Request};
use gnoma_front::{output::OutputClosed, report};
use serde_json::Value;

use super::{
    error::DriverError,
    mcp::SdkServer,
    names, requests,
    requests::ProgramRequest,
    session_driver::{ReplyTarget, SessionDriver},
    session_init_message, start,
};

impl SessionDriver {
    /// A request of the program's.
    pub(super) fn on_request(&mut self, message: Value) -> Result<(), OutputClosed> {
        let id = message.get("request_id").cloned().unwrap_or_default();
        let request = message.get("request").cloned().unwrap_or_default();
        let subtype = request.get("subtype").and_then(Value::as_str);
        if subtype == Some("initialize") {
            return self.initialize_session(id, &request);
        }
        let wanted = match requests::parse_request(&request) {
            Ok(wanted) => wanted,
            Err(why) => return self.write_message(&requests::response_message(&id, Err(why))),
        };
        if !self.state.has_begun && wanted != ProgramRequest::Nothing {
            self.state.early.push(message);
            self.open();
            return Ok(());
        }
        self.run_request(id, wanted, message)
    }

    fn run_request(
        &mut self,
        id: Value,
        wanted: ProgramRequest,
        message: Value,
    ) -> Result<(), OutputClosed> {
        let done = match wanted {
            ProgramRequest::Nothing => Ok(json!({})),
            ProgramRequest::Interrupt => {
                self.cancel_turn();
                Ok(json!({"still_queued": []}))
            }
            ProgramRequest::McpStatus => {
                Ok(session_init_message::mcp_status(&self.facts, &self.openable.program))
            }
            ProgramRequest::Mode(mode) => self.set_mode(&mode).map(|()| json!({"mode": mode})),
            ProgramRequest::Ask(request) => {
                return self.send_request(*request, ReplyTarget::Program(id));
            }
            ProgramRequest::Model(_) | ProgramRequest::Rewind(_) if self.state.turn.is_some() => {
                self.state.later.push(message);
                return Ok(());
            }
            ProgramRequest::Model(model) => {
                let (vendor, usual) =
                    (self.openable.vendor.as_deref(), self.state.usual.as_deref());
                let request = requests::switch_model_request(model.as_deref(), vendor, usual);
                return self.send_request(request, ReplyTarget::Program(id));
            }
            ProgramRequest::Rewind(message) => match self.turns_since(&message) {
                Some(turns) => {
                    let request = Request::Rewind { turns, files: true, conversation: false };
                    return self.send_request(request, ReplyTarget::Program(id));
                }
                None => Err(DriverError::UnknownMessage { id: message }),
            },
        };
        self.write_message(&requests::response_message(&id, done))
    }

    /// Returns the number of turns from the one that a message began to the last.
    fn turns_since(&self, message: &str) -> Option<usize> {
        let turns = &self.state.turns;
        let at = turns.iter().position(|id| id.as_deref() == Some(message))?;
        Some(turns.len() - at)
    }

    /// Changes how much is asked.
    ///
    /// # Errors
    /// There is no such mode.
    pub(super) fn set_mode(&mut self, name: &str) -> Result<(), DriverError> {
        let (mode, denies) = names::parse_mode(name).ok_or_else(names::unknown_mode)?;
        (self.state.denies, self.state.mode, self.facts.mode) = (denies, Some(mode), mode);
        self.openable.program.permission.set_denies(denies);
        if let Some(session) = &mut self.session {
            session.main.send_request(Request::SetMode { mode });
        }
        Ok(())
    }

    /// Takes in what the program adds to the session. The request is answered once the session is open.
    fn initialize_session(&mut self, id: Value, request: &Value) -> Result<(), OutputClosed> {
        if self.session.is_some() || self.state.initialize.is_some() {
            let error = DriverError::AlreadyInitialized;
            return self.write_message(&requests::response_message(&id, Err(error)));
        }
        let (callbacks, faults) = match start::parse_callbacks(request.get("hooks")) {
            Ok(read) => read,
            Err(why) => return self.write_message(&requests::response_message(&id, Err(why))),
        };
        for fault in faults {
            report::print_line(format_args!("gnoma: {fault}"));
        }
        let text = |name: &str| request.get(name).and_then(Value::as_str).map(str::to_owned);
        let program = &self.openable.program;
        {
            let mut said = program.lock_session_setup();
            said.callbacks = callbacks;
            if let Some(append) = text("appendSystemPrompt") {
                said.append = Some(append);
            }
            said.sdk_servers = Vec::<SdkServer>::new();
        }
        if let Some(Value::Object(defined)) = request.get("agents") {
            program.agents.define_agents(defined);
        }
        let servers = request.get("sdkMcpServers").and_then(Value::as_array);
        for name in servers.into_iter().flatten().filter_map(Value::as_str) {
            if !self.openable.in_program.iter().any(|known| known == name) {
                self.openable.in_program.push(name.to_owned());
            }
        }
        if let Some(system) = parse_system_prompt(request.get("systemPrompt")) {
            self.openable.spec.system = Some(system);
        }
        if let Some(schema) = request.get("jsonSchema").filter(|schema| schema.is_object()) {
            self.openable.spec.answer_schema = RawJson::from_value(schema).ok();
        }
        self.state.initialize = Some(id);
        self.open();
        Ok(())
    }
}

/// A system prompt: a text, or a list of such.
fn parse_system_prompt(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let parts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
            Some(parts.join("\n\n"))
        }
        _ => None,
    }
}

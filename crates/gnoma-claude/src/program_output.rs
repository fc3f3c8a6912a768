//! What the program writes, line by line, and the turns that it begins.

use std::io;

use gnoma_core::{protocol::Request, task::box_future};
use gnoma_front::{
    output::OutputClosed,
    report::{self, Exit},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    blocks,
    error::DriverError,
    message_translation::{self, MessageTranslator},
    open::{self, OpenParameters, OpenSession},
    session_driver::{ReplyTarget, SessionDriver, Turn},
    session_init_message,
};

/// Messages of the program that may wait for the turn to end.
const MAX_QUEUED: usize = 1_000;

impl SessionDriver {
    pub(super) fn on_line(&mut self, line: Option<io::Result<String>>) -> Result<(), OutputClosed> {
        let line = match line {
            Some(Ok(line)) => line,
            Some(Err(why)) => {
                report::print_line(format_args!("gnoma: standard input cannot be read: {why}"));
                return self.read_all();
            }
            None => return self.read_all(),
        };
        if line.trim().is_empty() {
            return Ok(());
        }
        let message: Value = match gnoma_core::json::from_str(&line) {
            Ok(message) => message,
            Err(error) => {
                report::print_line(format_args!(
                    "gnoma: a line of standard input is not JSON: {error}"
                ));
                return Ok(());
            }
        };
        match message.get("type").and_then(Value::as_str).unwrap_or_default() {
            "control_request" => self.on_request(message),
            "control_response" => {
                self.openable.program.control.on_response(&message);
                Ok(())
            }
            "user" => self.on_user_message(&message),
            "control_cancel_request" | "keep_alive" => Ok(()),
            other => {
                report::print_line(format_args!("gnoma: unknown message type `{other}`"));
                Ok(())
            }
        }
    }

    pub(super) fn read_all(&mut self) -> Result<(), OutputClosed> {
        self.state.has_read_all = true;
        // No answer can come any more.
        self.openable.program.control.on_input_ended();
        Ok(())
    }

    /// The program says something to the model.
    pub(super) fn on_user_message(&mut self, message: &Value) -> Result<(), OutputClosed> {
        let content = match blocks::parse_message_content(message) {
            Ok(content) if self.state.queue.len() < MAX_QUEUED => content,
            Ok(_) => {
                report::print_line("gnoma: too many messages wait; one was dropped");
                return Ok(());
            }
            Err(why) => {
                report::print_line(format_args!("gnoma: {why}"));
                return Ok(());
            }
        };
        let id = message.get("uuid").and_then(Value::as_str).map(str::to_owned);
        self.state.queue.push_back((content, id));
        if self.session.is_none() {
            self.open();
            return Ok(());
        }
        self.next_turn()
    }

    /// Opens the session, once.
    pub(super) fn open(&mut self) {
        if self.session.is_some() || !self.ways.opening.is_empty() {
            return;
        }
        let OpenParameters { host, program, spec, in_program, .. } = &self.openable;
        let (host, program) = (host.clone(), program.clone());
        self.ways.opening.spawn(box_future(open::open_session(
            host,
            program,
            spec.clone(),
            in_program.clone(),
        )));
    }

    pub(super) fn on_session_opened(
        &mut self,
        opened: Result<OpenSession, DriverError>,
    ) -> Result<(), OutputClosed> {
        match opened {
            Ok(session) => {
                let id = session.main.id().to_string();
                self.voice = MessageTranslator::new(&id, None, self.openable.flags.tells.partial);
                self.facts.session = id;
                self.session = Some(session);
                Ok(())
            }
            Err(why) => {
                let id = self.openable.program.lock_session_setup().session.clone();
                self.write_message(&message_translation::failure_result(&why.to_string(), &id))?;
                report::print_line(format_args!("gnoma: {why}"));
                self.state.exit = Some(Exit::Failed);
                Ok(())
            }
        }
    }

    /// Begins the next turn, where there is something to say and none runs.
    pub(super) fn next_turn(&mut self) -> Result<(), OutputClosed> {
        if self.state.turn.is_some() || !self.state.has_begun {
            return Ok(());
        }
        let Some((content, id)) = self.state.queue.pop_front() else { return Ok(()) };
        self.voice.begin_turn();
        self.state_changed("running")?;
        let init = session_init_message::init_message(
            &self.facts,
            &self.openable.program,
            self.state.denies,
        );
        self.write_message(&init)?;
        if self.openable.flags.tells.replays {
            let blocks: Vec<_> = content.iter().filter_map(blocks::block_to_json).collect();
            let mut message = self.voice.user_message(&blocks);
            message_translation::set_field(&mut message, "isReplay", true.into());
            if let Some(id) = &id {
                message_translation::set_field(&mut message, "uuid", id.as_str().into());
            }
            self.write_message(&message)?;
        }
        self.state.turns.push(id);
        let started = Instant::now();
        self.state.turn = Some(Turn { started, ended: None, over_budget: false });
        self.send_request(Request::Send { content }, ReplyTarget::Said)
    }
}

//! A running agent: its process, and the conversation with it.

use std::{collections::VecDeque, time::Duration};

use gnoma_acp::client::{AgentCall, AgentEvent, Conversation, MAX_AGENT_LINE_BYTES, clean_text};
use gnoma_core::lines::{Line, LineReader};
use gnoma_extend::mcp::{
    Definition, MeteredOutput, Process, ServerEnvironment, StartedProcess, Stderr, start_program,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::ChildStdin,
    select,
    time::timeout,
};

use super::{
    agent_error::{AgentError, LastOutput},
    brief::SeenPart,
};

/// Longest start: the process, the handshake and the session.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// The time an agent may take to end its turn after a cancellation.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Lines of the standard error that are shown when an agent ends.
const TOLD_LINES: usize = 3;
/// Most bytes of an agent's error that are shown.
const MAX_TOLD_BYTES: usize = 2 << 10;

/// The purpose of the call that an agent waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PendingStep {
    /// For nothing but the next round.
    Nothing,
    /// For the text of a file.
    Text,
    /// For a file to be written.
    Written,
    /// For permission to continue with a call of its own, by its name for it.
    Leave(String),
}

/// A running agent. Dropped, its processes end.
pub(super) struct LiveAgent {
    talk: Conversation,
    process: Process,
    stdin: ChildStdin,
    stdout: MeteredOutput,
    stderr: Stderr,
    lines: LineReader,
    read: VecDeque<Line>,
    out: Vec<u8>,
    buffer: Box<[u8]>,
    /// The agent's messages that arrived while something else was waited for.
    pub(super) queue: VecDeque<AgentEvent>,
    /// `true` if the agent can change nothing by itself.
    pub(super) reads_only: bool,
    /// The part of the conversation that the agent has seen; `None` before its first turn.
    pub(super) seen: Option<SeenPart>,
    pub(super) waits: PendingStep,
    /// The call of its own that it was last heard of.
    pub(super) call: Box<AgentCall>,
    /// The user's messages that arrived while the agent worked.
    pub(super) later: Vec<String>,
}

impl LiveAgent {
    /// Starts it, with a session in the folder of `around`.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub(super) async fn start(
        definition: &Definition,
        around: &ServerEnvironment,
        reads_only: bool,
    ) -> Result<Self, AgentError> {
        let stderr = Stderr::default();
        let StartedProcess { process, stdin, stdout } = start_program(definition, around, &stderr)?;
        let mut out = Vec::new();
        let mut live = Self {
            talk: Conversation::start_conversation(&mut out),
            process,
            stdin,
            stdout,
            stderr,
            lines: LineReader::new(MAX_AGENT_LINE_BYTES),
            read: VecDeque::new(),
            out,
            buffer: vec![0; READ_BYTES].into(),
            queue: VecDeque::new(),
            reads_only,
            seen: None,
            waits: PendingStep::Nothing,
            call: Box::default(),
            later: Vec::new(),
        };
        let cwd = around.cwd.display().to_string();
        let opened = timeout(START_PATIENCE, live.open(&cwd)).await;
        opened.unwrap_or_else(|_| {
            let last_output = live.last_output();
            Err(AgentError::NoAnswer { patience: START_PATIENCE, last_output })
        })?;
        Ok(live)
    }

    async fn open(&mut self, cwd: &str) -> Result<(), AgentError> {
        loop {
            match self.next_message().await? {
                AgentEvent::Ready => self.talk.open_session(cwd, &mut self.out),
                AgentEvent::Opened => return Ok(()),
                AgentEvent::Failed(words) => {
                    let words = shorten_output(&words).to_owned();
                    return Err(AgentError::NoSession { words });
                }
                _ => (),
            }
        }
    }

    /// Waits for the next message of the agent. May be dropped and called again.
    ///
    /// # Errors
    /// The agent has ended, or cannot be understood.
    pub(super) async fn next_message(&mut self) -> Result<AgentEvent, AgentError> {
        if let Some(said) = self.queue.pop_front() {
            return Ok(said);
        }
        loop {
            while let Some(line) = self.read.pop_front() {
                if let Some(said) = self.talk.receive_line(&line, &mut self.out)? {
                    return Ok(said);
                }
            }
            self.write_and_read().await?;
        }
    }

    /// Writes what is to be written, and reads what has come.
    async fn write_and_read(&mut self) -> Result<(), AgentError> {
        select! {
            written = self.stdin.write(&self.out), if !self.out.is_empty() => match written {
                Ok(count @ 1..) => drop(self.out.drain(..count)),
                Ok(0) | Err(_) => {
                    self.process.wrote_all().await;
                    return Err(AgentError::InputClosed { last_output: self.last_output() });
                }
            },
            read = self.stdout.read(&mut self.buffer) => match read {
                Ok(count @ 1..) => {
                    self.process.reset_unsolicited();
                    let piece = self.buffer.get(..count).unwrap_or_default();
                    self.read.extend(self.lines.push(piece));
                }
                Ok(0) | Err(_) => {
                    self.process.wrote_all().await;
                    return Err(AgentError::Ended { last_output: self.last_output() });
                }
            },
        }
        Ok(())
    }

    /// Returns the last lines that the agent wrote to its standard error.
    fn last_output(&self) -> LastOutput {
        let lines = clean_text(&self.stderr.last_lines(TOLD_LINES));
        LastOutput(shorten_output(&lines).to_owned())
    }

    pub(super) fn is_in_turn(&self) -> bool {
        self.talk.is_in_turn()
    }

    /// Says something, which begins a turn.
    pub(super) fn send_prompt(&mut self, text: &str) {
        self.talk.send_prompt(text, &mut self.out);
    }

    /// Answers what it waits for.
    pub(super) fn send_answer(&mut self, answer: Result<&str, &str>) {
        self.waits = PendingStep::Nothing;
        self.talk.answer_question(answer, &mut self.out);
    }

    /// Stops its turn; whether it has stopped.
    pub(super) async fn cancel(&mut self) -> bool {
        self.waits = PendingStep::Nothing;
        self.queue.clear();
        self.later.clear();
        if !self.talk.is_in_turn() {
            return true;
        }
        self.talk.cancel(&mut self.out);
        let stopped = async {
            loop {
                match self.next_message().await {
                    Ok(AgentEvent::Stopped(..) | AgentEvent::Failed(_)) => return true,
                    // What it still asks for is withdrawn, too.
                    Ok(AgentEvent::Asks(_)) => self.talk.cancel(&mut self.out),
                    Ok(_) => (),
                    Err(_) => return false,
                }
            }
        };
        timeout(CANCEL_PATIENCE, stopped).await.unwrap_or(false)
    }
}

fn shorten_output(words: &str) -> &str {
    gnoma_core::text_truncation::word_prefix(words, MAX_TOLD_BYTES)
}

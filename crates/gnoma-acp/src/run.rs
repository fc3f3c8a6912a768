//! Moves bytes between the client and the agent.

use std::{io, time::Duration};

use gnoma_core::lines::LineReader;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout},
};

use crate::{Agent, AgentMessage};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// The number of unwritten bytes at which nothing more is taken from the host, which keeps what is missed.
const MAX_TOLD_BYTES: usize = 1 << 20;
/// The number of unwritten bytes at which the client is not read either until it reads.
const MAX_OUT_BYTES: usize = 16 << 20;
/// Between two looks at what running calls have said.
const OUTPUT_STEP: Duration = Duration::from_millis(100);
/// The time that a client that sends nothing more may take to read the rest.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Serves a client until its input ends, or the host has gone.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub async fn serve_client(
    agent: &mut Agent,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = LineReader::default();
    let mut buffer = vec![0; READ_BYTES];
    let mut show_at = None;
    loop {
        let waiting = std::mem::take(agent.output_buffer());
        let is_writing = !waiting.is_empty();
        let is_heard = waiting.len() < MAX_OUT_BYTES && !agent.is_behind();
        let woke = tokio::select! {
            biased;
            written = output.write(&waiting), if is_writing => RunEvent::Written(written?),
            read = input.read(&mut buffer), if is_heard => RunEvent::Read(read?),
            message = agent.next(), if waiting.len() < MAX_TOLD_BYTES => RunEvent::Told(message),
            () = wait_until(show_at) => RunEvent::Show,
        };
        // What could not be written yet stays in front of what follows.
        *agent.output_buffer() = waiting;
        match woke {
            RunEvent::Written(0) => return Err(io::ErrorKind::WriteZero.into()),
            RunEvent::Written(count) => drop(agent.output_buffer().drain(..count)),
            RunEvent::Read(0) | RunEvent::Told(None) => break,
            RunEvent::Read(count) => {
                for line in lines.push(buffer.get(..count).unwrap_or_default()) {
                    agent.on_client_line(&line);
                }
            }
            RunEvent::Told(Some(message)) => agent.on_message(message),
            RunEvent::Show => {
                show_at = None;
                agent.show_output();
            }
        }
        if show_at.is_none() && agent.has_output() {
            show_at = Some(Instant::now() + OUTPUT_STEP);
        }
    }
    let rest = std::mem::take(agent.output_buffer());
    timeout(LAST_PATIENCE, write_rest(output, &rest)).await.unwrap_or(Ok(()))
}

/// Waits until this time; forever without one.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn write_rest(mut output: impl AsyncWrite + Unpin, rest: &[u8]) -> io::Result<()> {
    output.write_all(rest).await?;
    output.flush().await
}

/// An event that the agent's loop waits for.
enum RunEvent {
    Written(usize),
    Read(usize),
    /// By the host's side; nothing where it has gone.
    Told(Option<AgentMessage>),
    Show,
}

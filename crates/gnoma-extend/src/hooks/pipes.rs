//! Runs a hook on pipes alone, for sessions that save nothing: its line and its facts are never in a file.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{sync::Mutex, task::box_future, written_text};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use super::{
    answer::{HookEnd, HookRun},
    hook::MAX_TIMEOUT,
};
use crate::process_group::ProcessGroup;

/// Most that is read of what a hook says, in bytes.
pub(super) const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// The number of bytes of that output that are taken from its beginning.
const HEAD_BYTES: usize = 1 << 19;
/// The interval at which a hook that takes long is checked for saying that it continues by itself.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Most bytes of the line by which it does.
pub(super) const MAX_FIRST_LINE: usize = 4 << 10;
/// Stands in place of the middle of a long output. It has an even number of bytes, so that UTF-16 after it is still
/// read in pairs.
const GAP: &[u8] = b"\n\n";
/// The longest wait for the rest of a hook's output after its end, where a program that it started holds its pipes
/// open.
const DRAIN: Duration = Duration::from_millis(200);
/// Added to the number of the signal that ended a hook, as shells do.
const SIGNAL_BASE: i32 = 128;

/// A hook has said that the session need not wait for it.
#[derive(Debug)]
pub(crate) struct BackgroundRun {
    /// The time that the hook may continue, where it said so.
    pub(crate) limit: Option<Duration>,
}

impl BackgroundRun {
    /// Reads the first line of a hook's output: `{"async": true}`, perhaps with `asyncTimeout` in milliseconds.
    pub(super) fn parse(output: &[u8]) -> Option<Self> {
        let text = written_text::decode_lossy(output.get(..MAX_FIRST_LINE).unwrap_or(output));
        let line = text.lines().next().unwrap_or_default();
        let value = serde_json::from_str::<Value>(line).unwrap_or_default();
        let goes_on = value.get("async").and_then(Value::as_bool) == Some(true);
        let limit = value.get("asyncTimeout").and_then(Value::as_u64).map(Duration::from_millis);
        goes_on.then(|| Self { limit: limit.map(|limit| limit.min(MAX_TIMEOUT)) })
    }
}

/// A hook that runs on pipes. Dropped, it ends with all that it has started.
#[derive(Debug)]
pub(crate) struct PipedHook {
    child: Child,
    stdout: PipedOutput,
    stderr: PipedOutput,
    reading: JoinSet<()>,
    _writing: JoinSet<()>,
    _group: ProcessGroup,
}

type PipedOutput = Arc<Mutex<Vec<u8>>>;

impl PipedHook {
    /// Starts a program with `input` on its standard input.
    pub(super) fn start(mut command: Command, input: String) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (stdout, stderr) = (PipedOutput::default(), PipedOutput::default());
        let (mut reading, mut writing) = (JoinSet::new(), JoinSet::new());
        if let Some(pipe) = child.stdout.take() {
            reading.spawn(box_future(collect_output(pipe, Arc::clone(&stdout))));
        }
        if let Some(pipe) = child.stderr.take() {
            reading.spawn(box_future(collect_output(pipe, Arc::clone(&stderr))));
        }
        if let Some(mut pipe) = child.stdin.take() {
            // A hook need not read what it is told.
            writing
                .spawn(async move { pipe.write_all(input.as_bytes()).await.unwrap_or_default() });
        }
        let group = ProcessGroup::with_leader(&child);
        Ok(Self { child, stdout, stderr, reading, _writing: writing, _group: group })
    }

    /// Waits for its end until that time; an error where it has said that the session need not wait, and `may_go_on`.
    /// Safe to drop.
    pub(super) async fn wait_for_end(
        &mut self,
        until: Instant,
        may_go_on: bool,
    ) -> Result<HookEnd, BackgroundRun> {
        loop {
            let look = if may_go_on { until.min(Instant::now() + LOOK) } else { until };
            match timeout_at(look, self.child.wait()).await {
                Ok(Ok(status)) => {
                    let drained = async { while self.reading.join_next().await.is_some() {} };
                    timeout(DRAIN, drained).await.unwrap_or_default();
                    return Ok(exit_code(status));
                }
                Ok(Err(error)) => return Ok(HookEnd::Failed(format!("was lost: {error}"))),
                Err(_) if look < until => {
                    if let Some(goes_on) = BackgroundRun::parse(&self.stdout.lock()) {
                        return Err(goes_on);
                    }
                }
                Err(_) => return Ok(HookEnd::TimedOut),
            }
        }
    }

    /// Returns what it has said, once it has ended so.
    pub(super) fn collect_run(&self, end: HookEnd) -> HookRun {
        let text = |output: &PipedOutput| written_text::decode_lossy(&output.lock());
        HookRun { end, stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }
}

fn exit_code(status: ExitStatus) -> HookEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => HookEnd::Code(code),
        (None, Some(signal)) => HookEnd::Code(SIGNAL_BASE + signal),
        (None, None) => HookEnd::Failed("was killed".to_owned()),
    }
}

/// Appends to an output that holds at most [`MAX_OUTPUT_BYTES`]: its middle is left out, since an answer is at either end.
fn append_output(output: &mut Vec<u8>, piece: &[u8]) {
    let most = usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX);
    if output.len() + piece.len() > most {
        // In large steps, so that an output without end is not moved for each piece.
        let end = (HEAD_BYTES + most / 4).max(HEAD_BYTES + piece.len()).min(output.len());
        output.splice(HEAD_BYTES.min(end)..end, GAP.iter().copied());
    }
    output.extend(piece);
}

/// Collects an output, and reads on so that its writer does not wait.
async fn collect_output(mut pipe: impl AsyncRead + Unpin, output: PipedOutput) {
    let mut chunk = [0; 8 << 10];
    while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
        append_output(&mut output.lock(), chunk.get(..length).unwrap_or_default());
    }
}

/// Reads an output from a file, without its middle where it is long.
pub(super) fn read_output(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = file.metadata()?.len();
    if length <= MAX_OUTPUT_BYTES {
        file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let head = HEAD_BYTES as u64;
    (&mut file).take(head).read_to_end(&mut bytes)?;
    bytes.extend(GAP);
    let rest = MAX_OUTPUT_BYTES - head;
    file.seek(SeekFrom::Start(length - rest))?;
    file.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn long_hook_output_retains_both_ends() {
        let long = format!("begin\n{}\nend", "line of a log\n".repeat(300_000));
        let mut collected = Vec::new();
        for piece in long.as_bytes().chunks(8 << 10) {
            append_output(&mut collected, piece);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(long.as_bytes()).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        for output in [collected, read_output(file).unwrap()] {
            assert!(output.len() as u64 <= MAX_OUTPUT_BYTES + GAP.len() as u64);
            assert!(output.starts_with(b"begin\n") && output.ends_with(b"\nend"));
        }
    }

    #[test]
    fn long_hook_output_in_utf16_retains_its_end() {
        let long = format!("\u{feff}{}{{\"decision\": \"block\"}}\n", "a log\n".repeat(150_000));
        let long: Vec<u8> = long.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut collected = Vec::new();
        for piece in long.chunks(8191) {
            append_output(&mut collected, piece);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&long).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        for output in [collected, read_output(file).unwrap()] {
            assert!(output.len() < long.len());
            let text = written_text::decode_lossy(&output);
            assert!(text.ends_with("{\"decision\": \"block\"}\n"), "{}", text.len());
        }
    }

    #[test]
    fn async_hook_output_in_utf16_is_recognized() {
        let line = "{\"async\": true, \"asyncTimeout\": 5}\r\nmore";
        let utf16: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for output in [line.as_bytes(), &utf16] {
            let run = BackgroundRun::parse(output).unwrap();
            assert_eq!(run.limit, Some(Duration::from_millis(5)));
        }
    }
}

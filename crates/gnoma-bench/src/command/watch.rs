//! How long a delta takes to whoever looks on: from the write of the model server (`gnoma-bench mock
//! asked`) to the last of a session's subscribers, each behind a socket of its own.
//!
//!     gnoma-bench watch SOCKET PORT SUBSCRIBERS SESSION…
//!
//! It attaches, prints `ready`, and ends once every session has ended a turn. Beside them it asks the
//! model server at PORT itself: what that takes is the machine's share. One JSON object on standard output:
//! for `delta` (one time each, of the last subscriber), `subscriber` (each of them) and `direct` the count and
//! `p50`, `p99` and `most` in milliseconds; `lost` counts deltas that not every subscriber was given,
//! `snapshots` those after the first.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::net::UnixStream,
    sync::mpsc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::parse_number_argument;

/// Digits of a time in microseconds.
const STAMP_DIGITS: usize = 16;
const READ_BYTES: usize = 64 << 10;
/// The longest time to wait for a snapshot or for data on a connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The measurements of one subscriber: for each delta, the time it was written and how many microseconds later it
/// arrived.
#[derive(Default)]
struct DeltaLatencies {
    session: usize,
    times: Vec<(u64, u64)>,
    snapshots: usize,
}

#[expect(clippy::print_stdout, reason = "whoever measures reads it")]
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [socket, port, _, sessions @ ..] = arguments else {
        bail!("give the socket, the model server's port, a number of subscribers and sessions");
    };
    let subscribers: usize = parse_number_argument(arguments, 2, 1)?;
    let (ready, all_ready) = mpsc::channel();
    let mut threads = Vec::new();
    for (place, session) in sessions.iter().enumerate() {
        for _ in 0..subscribers {
            let stream = attach_session(socket, session)?;
            let ready = ready.clone();
            threads.push(thread::spawn(move || read_until_turn_end(place, stream, &ready)));
        }
    }
    for _ in &threads {
        all_ready.recv_timeout(PATIENCE).context("a session sends no snapshot")?;
    }
    let direct = send_stream_request(port)?;
    println!("ready");
    let direct = thread::spawn(move || read_stamps(direct));
    let mut heard = Vec::new();
    for thread in threads {
        let outcome = thread.join();
        heard.push(outcome.map_err(|_| anyhow::anyhow!("a subscriber broke down"))??);
    }
    let direct = direct.join().map_err(|_| anyhow::anyhow!("the direct reader broke down"))??;
    println!("{}", build_report(&heard, subscribers, &direct));
    Ok(())
}

fn build_report(heard: &[DeltaLatencies], subscribers: usize, direct: &[(u64, u64)]) -> Value {
    let mut deltas: HashMap<(usize, u64), (u64, usize)> = HashMap::new();
    for one in heard {
        for (written, took) in &one.times {
            let delta = deltas.entry((one.session, *written)).or_default();
            *delta = (delta.0.max(*took), delta.1 + 1);
        }
    }
    let each = heard.iter().flat_map(|one| one.times.iter().map(|(_, took)| *took)).collect();
    json!({
        "delta": latency_percentiles(deltas.values().map(|(took, _)| *took).collect()),
        "subscriber": latency_percentiles(each),
        "direct": latency_percentiles(direct.iter().map(|(_, took)| *took).collect()),
        "lost": deltas.values().filter(|(_, count)| *count < subscribers).count(),
        "snapshots": heard.iter().map(|one| one.snapshots).sum::<usize>(),
    })
}

fn latency_percentiles(mut microseconds: Vec<u64>) -> Value {
    microseconds.sort_unstable();
    let at = |thousandth: usize| {
        let place = microseconds.len().saturating_sub(1) * thousandth / 1_000;
        Duration::from_micros(microseconds.get(place).copied().unwrap_or_default()).as_secs_f64()
            * 1e3
    };
    json!({"count": microseconds.len(), "p50": at(500), "p99": at(990), "most": at(1_000)})
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// A connection that is attached to a session.
fn attach_session(socket: &str, session: &str) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let name = format!("bench {} {:?} {}", std::process::id(), stream, now_us());
    let hello = json!({"version": 1, "program": "gnoma-bench", "client": name});
    let attach = json!({"id": 1, "session": session, "request": {"attach": {"from": null}}});
    stream.write_all(format!("{hello}\n{attach}\n").as_bytes())?;
    Ok(stream)
}

/// Reads to the end of a turn.
fn read_until_turn_end(
    session: usize,
    stream: UnixStream,
    ready: &mpsc::Sender<()>,
) -> Result<DeltaLatencies> {
    let mut reader = BufReader::with_capacity(READ_BYTES, stream);
    let mut heard = DeltaLatencies { session, ..DeltaLatencies::default() };
    let mut is_attached = false;
    let mut line = String::new();
    loop {
        // What has come with the line before has come with it.
        let at = now_us();
        let is_waiting = reader.buffer().is_empty();
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            bail!("the server has closed a connection");
        }
        let at = if is_waiting { now_us() } else { at };
        let message: Value = serde_json::from_str(&line)?;
        if message.get("snapshot").is_some() {
            if is_attached {
                heard.snapshots += 1;
            } else {
                is_attached = true;
                ready.send(())?;
            }
        }
        let Some(event) = message.pointer("/event/event") else { continue };
        if let Some(text) = event.pointer("/text/text").and_then(Value::as_str) {
            heard.times.extend(parse_stamps(text, at));
        }
        if event.get("state").and_then(Value::as_str) == Some("idle") && is_attached {
            return Ok(heard);
        }
    }
}

/// The times in a text, and how long ago they were.
fn parse_stamps(text: &str, at: u64) -> impl Iterator<Item = (u64, u64)> {
    let numbers = text.split_ascii_whitespace().filter(|word| word.len() == STAMP_DIGITS);
    numbers.filter_map(|word| word.parse().ok()).map(move |then| (then, at.saturating_sub(then)))
}

/// A request to the model server, as short as it takes.
fn send_stream_request(port: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = r#"{"tools":[],"messages":[{"role":"user","content":"stream"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length";
    stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    Ok(stream)
}

/// The times in an answer of the model server.
fn read_stamps(mut stream: TcpStream) -> Result<Vec<(u64, u64)>> {
    let (mut buffer, mut times) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let count = stream.read(&mut buffer)?;
        let at = now_us();
        let text = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default()).into_owned();
        // A delta is written in one piece, and so it comes.
        times.extend(parse_stamps(&text.replace('"', " "), at));
        if count == 0 || text.contains("[DONE]") {
            return Ok(times);
        }
    }
}

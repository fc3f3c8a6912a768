//! A model server with a fixed script, for measuring whole programs: OpenAI's chat over HTTP on the
//! loopback interface, a thread to a connection. It is no test server: no faults, no routing.
//!
//!     gnoma-bench mock SCRIPT [--dump FILE]
//!
//! | script | what it answers |
//! |---|---|
//! | `text N [WAIT]` | N text deltas, after WAIT milliseconds |
//! | `tools K [BYTES]` | K times one call of `bash`, then a text; the command prints BYTES bytes, or one line |
//!
//! The first line it prints is its port; then one JSON object for each request: `at` (Unix time at
//! which its first byte came), `gap_ms` (from the last byte of the answer before), `bytes` (of the
//! body). `--dump` keeps the first body.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use gnoma_bench::stream::{self, Prose};
use gnoma_llm::Protocol;
use serde_json::{Value, json};

use super::number;

/// Bytes that are written at a time; every record is an HTTP chunk of its own.
const WRITE_BYTES: usize = 16 << 10;
const READ_BYTES: usize = 64 << 10;
/// What a result looks like in a request's body.
const RESULT: &[u8] = br#""role":"tool""#;

#[derive(Clone, Copy)]
enum Script {
    Text { deltas: usize, wait: Duration },
    Tools { rounds: usize, bytes: usize },
}

struct Server {
    script: Script,
    dump: Mutex<Option<PathBuf>>,
    /// When the last byte of the last answer was written.
    answered: Mutex<Option<Instant>>,
}

#[expect(clippy::print_stdout, reason = "the port is asked for on standard output")]
pub(crate) fn run(mut arguments: Vec<String>) -> Result<()> {
    let at = arguments.iter().position(|argument| argument == "--dump");
    let dump = match at.map(|at| arguments.split_off(at)).as_deref() {
        None => None,
        Some([_, file]) => Some(PathBuf::from(file)),
        Some(_) => bail!("--dump takes one file"),
    };
    let server = Arc::new(Server {
        script: script(&arguments)?,
        dump: Mutex::new(dump),
        answered: Mutex::new(None),
    });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for stream in listener.incoming() {
        let server = Arc::clone(&server);
        let stream = stream?;
        // The process is killed by whoever measures; its threads end with it. A client that is gone
        // is none of the server's business.
        thread::spawn(move || drop(server.serve(stream)));
    }
    Ok(())
}

fn script(words: &[String]) -> Result<Script> {
    Ok(match words.first().map(String::as_str) {
        Some("text") => Script::Text {
            deltas: number(words, 1, 1)?,
            wait: Duration::from_millis(number(words, 2, 0)?.try_into()?),
        },
        Some("tools") => {
            Script::Tools { rounds: number(words, 1, 1)?, bytes: number(words, 2, 0)? }
        }
        _ => bail!("the script is `text N [WAIT]` or `tools K [BYTES]`"),
    })
}

impl Server {
    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        while let Some(request) = Request::read(&mut stream)? {
            self.note(&request)?;
            if request.is_post {
                self.answer(&mut stream, &request)?;
            } else {
                send_json(&mut stream, &json!({"data": [{"id": "mock-model"}]}))?;
            }
            *locked(&self.answered) = Some(Instant::now());
        }
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "whoever measures reads it")]
    fn note(&self, request: &Request) -> Result<()> {
        let gap = locked(&self.answered).map(|end| request.at.saturating_duration_since(end));
        println!(
            "{}",
            json!({
                "at": request.unix_seconds,
                "gap_ms": gap.map(|gap| gap.as_secs_f64() * 1e3),
                "bytes": request.body.len(),
            })
        );
        if request.is_post
            && let Some(file) = locked(&self.dump).take()
        {
            std::fs::write(file, &request.body)?;
        }
        Ok(())
    }

    fn answer(&self, stream: &mut TcpStream, request: &Request) -> io::Result<()> {
        match self.script {
            Script::Text { deltas, wait } => {
                thread::sleep(wait);
                send_text(stream, deltas)
            }
            Script::Tools { rounds, bytes } => {
                let done = results_in(&request.body);
                if done < rounds {
                    send_records(stream, call(done, bytes).as_bytes())
                } else {
                    send_text(stream, 1)
                }
            }
        }
    }
}

fn results_in(body: &[u8]) -> usize {
    body.windows(RESULT.len()).filter(|window| *window == RESULT).count()
}

struct Request {
    at: Instant,
    unix_seconds: f64,
    is_post: bool,
    body: Vec<u8>,
}

impl Request {
    /// The next request; `None` when the client has closed the connection.
    fn read(stream: &mut TcpStream) -> Result<Option<Self>> {
        let mut bytes = vec![0; READ_BYTES];
        let mut filled = stream.read(&mut bytes)?;
        let (at, unix) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
        if filled == 0 {
            return Ok(None);
        }
        let end = loop {
            let found = bytes[..filled].windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(end) = found {
                break end + 4;
            }
            let read = stream.read(&mut bytes[filled..])?;
            if read == 0 {
                bail!("the head of a request is cut or too long");
            }
            filled += read;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.map_or(Ok(0), |length| length.trim().parse())?;
        let mut body = bytes[end..filled].to_vec();
        let here = body.len().min(length);
        body.resize(length, 0);
        stream.read_exact(&mut body[here..])?;
        Ok(Some(Self {
            at,
            unix_seconds: unix.as_secs_f64(),
            is_post: head.starts_with("post"),
            body,
        }))
    }
}

fn send_json(stream: &mut TcpStream, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
    stream.write_all(format!("{head}: {length}\r\n\r\n{body}").as_bytes())
}

fn send_text(stream: &mut TcpStream, deltas: usize) -> io::Result<()> {
    let answer = stream::answer(Protocol::OpenAi, deltas, Prose::Lines);
    send_records(stream, &answer.bytes)
}

/// Sends an event stream, each record as a chunk, many chunks to a write.
fn send_records(stream: &mut TcpStream, records: &[u8]) -> io::Result<()> {
    let mut out =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    let mut rest = records;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|window| window == b"\n\n");
        let (record, after) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
        write!(out, "{:x}\r\n", record.len())?;
        out.extend_from_slice(record);
        out.extend_from_slice(b"\r\n");
        rest = after;
        if out.len() >= WRITE_BYTES {
            stream.write_all(&out)?;
            out.clear();
        }
    }
    out.extend_from_slice(b"0\r\n\r\n");
    stream.write_all(&out)
}

/// A call of the shell, in the records of a chat completion.
fn call(round: usize, bytes: usize) -> String {
    let command = if bytes == 0 {
        format!("echo round-{round}")
    } else {
        format!("yes 'round {round} has a line of output like this' | head -c {bytes}")
    };
    let arguments = json!({ "command": command }).to_string();
    let id = format!("call_{round}");
    let records = [
        json!({"delta": {"role": "assistant", "content": null, "tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "bash", "arguments": ""}}]}}),
        json!({"delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}}),
        json!({"delta": {}, "finish_reason": "tool_calls"}),
    ];
    let mut out = String::new();
    for mut choice in records {
        choice["index"] = json!(0);
        let record = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_785_367_846,
            "model": "mock-model",
            "choices": [choice],
        });
        out.push_str(&format!("data: {record}\n\n"));
    }
    out.push_str("data: [DONE]\n\n");
    out
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A model server with a fixed script, for measuring whole programs: OpenAI's chat over HTTP on the
//! loopback interface, a thread to a connection. It is no test server: no faults, no routing.
//!
//!     gnoma-bench mock SCRIPT [--dump FILE]
//!
//! The scripts are described in [`script`].
//!
//! The first line it prints is its port; then one JSON object for each request: `at` (Unix time at
//! which its first byte came), `gap_ms` (from the last byte of the answer before), `bytes` (of the
//! body). Another one with `closed_at` tells that a client left in the middle of a paced answer. `--dump`
//! keeps the first body.

mod script;

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use self::script::{STAMP, Script, ScriptedReply};

/// Bytes that are written at a time; every record is an HTTP chunk of its own.
const WRITE_BYTES: usize = 16 << 10;
const READ_BYTES: usize = 64 << 10;

struct Server {
    script: Mutex<Script>,
    dump: Mutex<Option<PathBuf>>,
    /// The time at which the last byte of the last answer was written.
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
        script: Mutex::new(Script::parse(&arguments)?),
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

impl Server {
    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        while let Some(request) = Request::read(&mut stream)? {
            self.log_request(&request)?;
            if request.is_post {
                self.send_reply(&mut stream, &request)?;
            } else {
                send_json(&mut stream, &json!({"data": [{"id": "mock-model"}]}))?;
            }
            *lock_ignoring_poison(&self.answered) = Some(Instant::now());
        }
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "whoever measures reads it")]
    fn log_request(&self, request: &Request) -> Result<()> {
        let gap = lock_ignoring_poison(&self.answered)
            .map(|end| request.at.saturating_duration_since(end));
        println!(
            "{}",
            json!({
                "at": request.unix_seconds,
                "gap_ms": gap.map(|gap| gap.as_secs_f64() * 1e3),
                "bytes": request.body.len(),
            })
        );
        if request.is_post
            && let Some(file) = lock_ignoring_poison(&self.dump).take()
        {
            std::fs::write(file, &request.body)?;
        }
        Ok(())
    }

    fn send_reply(&self, stream: &mut TcpStream, request: &Request) -> io::Result<()> {
        let reply = lock_ignoring_poison(&self.script).next_reply(&request.body);
        thread::sleep(reply.wait);
        if !reply.between.is_zero() {
            note_end(stream.try_clone()?);
        }
        send_records(stream, &reply)
    }
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

/// Sends an event stream, each record as a chunk: many chunks to a write, or one write for each where
/// time shall pass between them.
fn send_records(stream: &mut TcpStream, reply: &ScriptedReply) -> io::Result<()> {
    let mut out =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    let mut due = Instant::now();
    let mut rest = reply.records.as_slice();
    while !rest.is_empty() {
        let end = rest.windows(2).position(|window| window == b"\n\n");
        let (record, after) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
        write!(out, "{:x}\r\n", record.len())?;
        let at = out.len();
        out.extend_from_slice(record);
        if reply.is_stamped {
            stamp_record(out.get_mut(at..).unwrap_or_default());
        }
        out.extend_from_slice(b"\r\n");
        rest = after;
        if out.len() >= WRITE_BYTES || !reply.between.is_zero() {
            stream.write_all(&out)?;
            out.clear();
            due += reply.between;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    out.extend_from_slice(b"0\r\n\r\n");
    stream.write_all(&out)
}

/// Notes when the client closes the connection, unless it asks for something more.
#[expect(clippy::print_stdout, reason = "whoever measures reads it")]
fn note_end(stream: TcpStream) {
    thread::spawn(move || {
        if let Ok(0) | Err(_) = stream.peek(&mut [0])
            && let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH)
        {
            println!("{}", json!({"closed_at": now.as_secs_f64(), "bytes": 0}));
        }
    });
}

/// Writes the time into a record that has a place for it.
fn stamp_record(record: &mut [u8]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let place = record.windows(STAMP.len()).position(|window| window == STAMP);
    if let Some(place) = place.and_then(|at| record.get_mut(at..at + STAMP.len())) {
        place.copy_from_slice(format!("{:016}", now.as_micros()).as_bytes());
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! One connection: requests in, replies out, until one side has enough.

use std::{
    future,
    io::{self, Write as _},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    time,
};

use super::{
    reply::{End, Pace, Reply},
    request::Request,
    state::ServerState,
};

/// Bytes gathered before a write when pieces need no write of their own.
const BURST_BYTES: usize = 16 << 10;

/// Wait between the last byte and a reset, so that the bytes arrive before it.
const RESET_GRACE: Duration = Duration::from_millis(20);

/// The fate of the connection after an answer.
enum ConnectionStep {
    KeepOpen,
    Close,
    Reset,
}

/// Answers requests until the connection ends.
pub(super) async fn serve_connection(mut stream: TcpStream, shared: Arc<ServerState>) {
    // Failing to set it costs latency, not truth.
    stream.set_nodelay(true).ok();
    let mut pending = BytesMut::new();
    while let Ok(Some(request)) = Request::read_next(&mut stream, &mut pending).await {
        let reply = shared.answer_request(request);
        let (mut reader, writer) = stream.split();
        let next = tokio::select! {
            sent = send_reply(writer, reply, &shared) => sent,
            () = hang_up(&mut reader, &mut pending) => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match next {
            Ok(ConnectionStep::KeepOpen) => (),
            Ok(ConnectionStep::Close) => break,
            Ok(ConnectionStep::Reset) => {
                stream.set_zero_linger().ok();
                break;
            }
            Err(_) => {
                shared.clients_gone.send_modify(|count| *count += 1);
                break;
            }
        }
    }
}

/// Returns when the client has closed its side.
async fn hang_up(reader: &mut ReadHalf<'_>, pending: &mut BytesMut) {
    while matches!(reader.read_buf(pending).await, Ok(1..)) {}
}

async fn send_reply(
    mut writer: WriteHalf<'_>,
    reply: Reply,
    shared: &ServerState,
) -> io::Result<ConnectionStep> {
    if let Some(gate) = &reply.gate {
        gate.wait_until_open().await;
    }
    if !reply.wait.is_zero() {
        time::sleep(reply.wait).await;
    }
    if reply.end == End::HangUp {
        return Ok(ConnectionStep::Reset);
    }
    let mut out = encode_head(&reply);
    for piece in reply.body.split_pieces(reply.piece, reply.end.byte_limit()) {
        write!(out, "{:x}\r\n", piece.len())?;
        out.extend_from_slice(&piece);
        out.extend_from_slice(b"\r\n");
        match reply.pace {
            Pace::Burst if out.len() < BURST_BYTES => (),
            Pace::Burst => write_and_clear(&mut writer, &mut out, shared).await?,
            Pace::Each(wait) => {
                write_and_clear(&mut writer, &mut out, shared).await?;
                if !wait.is_zero() {
                    time::sleep(wait).await;
                }
            }
        }
    }
    if matches!(reply.end, End::Whole | End::Truncate(_)) {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    write_and_clear(&mut writer, &mut out, shared).await?;
    match reply.end {
        End::Whole | End::Truncate(_) if !reply.close => Ok(ConnectionStep::KeepOpen),
        End::Whole | End::Truncate(_) | End::Abort(_) => Ok(ConnectionStep::Close),
        End::Reset(_) | End::HangUp => {
            time::sleep(RESET_GRACE).await;
            Ok(ConnectionStep::Reset)
        }
        End::Stall(_) => future::pending().await,
    }
}

fn encode_head(reply: &Reply) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} \r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    if reply.close {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Writes and empties `out`, counting what the socket takes.
async fn write_and_clear(
    writer: &mut WriteHalf<'_>,
    out: &mut Vec<u8>,
    shared: &ServerState,
) -> io::Result<()> {
    let mut rest = out.as_slice();
    while !rest.is_empty() {
        let taken = writer.write_buf(&mut rest).await?;
        shared.bytes_sent.fetch_add(taken as u64, Ordering::SeqCst);
    }
    out.clear();
    Ok(())
}

//! Requests as the server reads them.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::Instant,
};

/// Most bytes a request's head may have.
const MAX_HEAD_BYTES: usize = 256 << 10;

/// One whole request to the server.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, such as `POST`.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Names in lower case and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body, out of its framing.
    pub body: Bytes,
    /// The time when the request was complete.
    pub at: Instant,
}

impl Request {
    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The first header called `name` (lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is not.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Reads the next request; `None` when the client has closed the connection.
    pub(super) async fn read_next(
        stream: &mut (impl AsyncRead + Unpin),
        pending: &mut BytesMut,
    ) -> io::Result<Option<Self>> {
        let head = loop {
            if let Some(end) = find_bytes(pending, b"\r\n\r\n") {
                let head = pending.split_to(end);
                pending.advance(4);
                break head;
            }
            if pending.len() > MAX_HEAD_BYTES {
                return Err(bad_request_error("the head is too long"));
            }
            if stream.read_buf(pending).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target)) = (first.next(), first.next()) else {
            return Err(bad_request_error("the request line is cut"));
        };
        let mut request = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: lines.filter_map(parse_header).collect(),
            body: Bytes::new(),
            at: Instant::now(),
        };
        request.body = request.read_body(stream, pending).await?;
        request.at = Instant::now();
        Ok(Some(request))
    }

    async fn read_body(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        pending: &mut BytesMut,
    ) -> io::Result<Bytes> {
        if self.header("transfer-encoding").is_some() {
            return read_chunks(stream, pending).await;
        }
        let length = self.header("content-length").unwrap_or("0");
        let length = length.parse().map_err(|_| bad_request_error("content-length"))?;
        Ok(read_bytes(stream, pending, length).await?.freeze())
    }
}

async fn read_chunks(
    stream: &mut (impl AsyncRead + Unpin),
    pending: &mut BytesMut,
) -> io::Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let end = loop {
            if let Some(end) = find_bytes(pending, b"\r\n") {
                break end;
            }
            if stream.read_buf(pending).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let size = pending.split_to(end);
        pending.advance(2);
        let size = usize::from_str_radix(String::from_utf8_lossy(&size).trim(), 16)
            .map_err(|_| bad_request_error("chunk size"))?;
        body.extend_from_slice(&read_bytes(stream, pending, size).await?);
        read_bytes(stream, pending, 2).await?;
        if size == 0 {
            return Ok(body.freeze());
        }
    }
}

/// The next `length` bytes.
async fn read_bytes(
    stream: &mut (impl AsyncRead + Unpin),
    pending: &mut BytesMut,
    length: usize,
) -> io::Result<BytesMut> {
    while pending.len() < length {
        if stream.read_buf(pending).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(pending.split_to(length))
}

fn parse_header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn bad_request_error(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("bad request: {what}"))
}

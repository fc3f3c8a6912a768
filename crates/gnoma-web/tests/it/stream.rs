//! Events over HTTP: in order, resumed by position, and ended without a trace.

use std::time::Duration;

use gnoma_web::Rights;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::support::{LAST, MAX_WAIT, Served};

/// A stream of events, and what of it was read.
struct Stream {
    stream: TcpStream,
    text: String,
}

impl Stream {
    async fn open(served: &Served, query: &str, more: &str) -> Self {
        Self::open_as(served, Rights::Watch, query, more).await
    }

    async fn open_as(served: &Served, rights: Rights, query: &str, more: &str) -> Self {
        let mut stream = served.connect().await;
        let bearer = served.token(rights);
        let head = format!(
            "GET /api/v1/events?{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\n{more}\r\n",
            served.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self { stream, text: String::new() }
    }

    /// Reads until `mark` has come.
    async fn until(&mut self, mark: &str) -> &str {
        let mut buffer = vec![0; 4096];
        while !self.text.contains(mark) {
            let read = timeout(MAX_WAIT, self.stream.read(&mut buffer)).await;
            let count = read.unwrap_or_else(|_| panic!("no {mark}: {}", self.text)).unwrap();
            assert!(count > 0, "it ended before {mark}: {}", self.text);
            self.text += &String::from_utf8_lossy(&buffer[..count]);
        }
        &self.text
    }

    fn ids(&self) -> Vec<String> {
        self.text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn event_stream_starts_with_a_snapshot_and_resumes_by_position() {
    let served = Served::new().await;
    let mut stream = Stream::open(&served, "watch=1&attach=s", "").await;
    let text = stream.until("id: s@7.6").await;
    assert!(text.contains("event: hello\ndata: {") && text.contains("\"build\":"), "{text}");
    assert!(text.contains("text/event-stream"));
    stream.until("event: snapshot\ndata: {\"session\":\"s\"").await;
    stream.until("event: process\ndata: {\"opened\":{\"session\":\"s\"}}\n\n").await;

    let mut again = Stream::open(&served, "attach=s@7.3", "").await;
    again.until("id: s@7.6").await;
    let rest: String = (4..=LAST).map(|seq| format!("piece\\n{seq}\\n\\n")).collect();
    again.until(&format!("\"text\":\"{rest}\"")).await;
    assert_eq!(again.ids(), ["s@7.6"], "exactly what was missed, in one piece");

    let mut browser = Stream::open(&served, "attach=s", "Last-Event-ID: s@7.5\r\n").await;
    browser.until("id: s@7.6").await;
    assert_eq!(browser.ids(), ["s@7.6"]);

    let mut other = Stream::open(&served, "attach=s@6.3", "").await;
    other.until("event: snapshot").await;
    let mut gone = Stream::open(&served, "attach=other", "").await;
    gone.until("event: refused\ndata: {\"session\":\"other\",\"error\":{\"kind\":\"no_session\"")
        .await;
}

#[tokio::test]
async fn closed_event_stream_frees_its_slot() {
    let served = Served::new().await;
    for _ in 0..3 {
        let mut all = Vec::new();
        for _ in 0..16 {
            let mut stream = Stream::open(&served, "attach=s", "").await;
            stream.until("event: snapshot").await;
            all.push(stream);
        }
        let mut late = Stream::open(&served, "attach=s", "").await;
        late.until("HTTP/1.1 503").await;
        let mut own = Stream::open_as(&served, Rights::Steer, "attach=s", "").await;
        own.until("event: snapshot").await;
        drop(all);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    served.still_serves().await;
}

//! Slow, huge and many: bounded, and others do not notice.

use std::time::Duration;

use gnoma_web::Rights;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{MAX_WAIT, Served, answered};

/// More connections than are taken.
const MANY: usize = 3_000;
/// More than are kept open.
const MAX_KEPT: usize = 100;

#[tokio::test]
async fn oversized_bodies_and_headers_are_refused_unread() {
    let served = Served::new().await;
    let bearer = served.token(Rights::Steer).to_owned();
    let mut stream = served.connect().await;
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\nContent-Length: 104857600\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 413", "{}", String::from_utf8_lossy(&start));
    drop(stream);
    // One that does not say how long it is.
    let mut stream = served.connect().await;
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [&b"100000\r\n"[..], &vec![b'x'; 1 << 20], &b"\r\n"[..]].concat();
    for _ in 0..100 {
        if stream.write_all(&chunk).await.is_err() {
            break;
        }
    }
    assert_eq!(answered(stream).await.status, 413);
    let long = "x".repeat(64 << 10);
    let answer = served.ask("GET /", &[("X-Long", &long)], b"").await;
    assert_eq!(answer.status, 431, "{answer:?}");
    let many: Vec<(&str, &str)> = (0..200).map(|_| ("X-Many", "1")).collect();
    assert_eq!(served.ask("GET /", &many, b"").await.status, 431);
    served.still_serves().await;
}

#[tokio::test]
async fn body_of_a_watch_token_is_not_read_and_occupies_no_slot() {
    let served = Served::new().await;
    let bearer = served.token(Rights::Watch);
    let head = |path: &str, bytes: usize| {
        format!(
            "POST /api/v1/{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\nContent-Length: {bytes}\r\n\r\n{{",
            served.address
        )
    };
    for (path, bytes, status) in
        [("sessions/s/send", 100, "403"), ("process/open", 100, "403"), ("messages", 8_000, "413")]
    {
        let mut stream = served.connect().await;
        stream.write_all(head(path, bytes).as_bytes()).await.unwrap();
        let mut start = [0; 12];
        let read = tokio::time::timeout(MAX_WAIT, stream.read_exact(&mut start)).await;
        read.unwrap_or_else(|_| panic!("{path} is read")).unwrap();
        assert_eq!(&start[9..], status.as_bytes(), "{path}");
    }
    // More than there are places, of which nothing more ever comes.
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = served.connect().await;
        stream.write_all(head("messages", 100).as_bytes()).await.unwrap();
        slow.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    tokio::time::timeout(Duration::from_secs(5), served.still_serves()).await.expect("it waits");
}

#[tokio::test]
async fn malformed_http_is_refused() {
    let served = Served::new().await;
    for rubbish in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"HELO x\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut stream = served.connect().await;
        stream.write_all(rubbish).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = Vec::new();
        let _reset = stream.read_to_end(&mut said).await;
        assert!(
            said.is_empty() || said.starts_with(b"HTTP/1.1 400"),
            "{}",
            String::from_utf8_lossy(&said)
        );
    }
    served.still_serves().await;
}

#[tokio::test]
async fn oldest_idle_connections_are_closed_for_new_ones() {
    let served = Served::new().await;
    let bearer = served.token(Rights::Steer).to_owned();
    let mut page = served.connect().await;
    let head = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\n\r\n",
            served.address
        )
    };
    page.write_all(head("/api/v1/events?attach=s").as_bytes()).await.unwrap();
    let mut start = [0; 12];
    page.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    // Each says nothing and stays open at this end.
    let mut idle = Vec::new();
    for _ in 0..MANY {
        idle.push(served.connect().await);
    }
    // The oldest gave way, whoever was there before is served, and so is everybody who comes.
    let mut byte = [0];
    for stream in idle.iter_mut().take(MANY - MAX_KEPT) {
        let closed = tokio::time::timeout(MAX_WAIT, stream.read(&mut byte)).await;
        assert!(matches!(closed.unwrap(), Ok(0) | Err(_)));
    }
    assert!(
        !matches!(
            tokio::time::timeout(Duration::ZERO, page.read(&mut byte)).await,
            Ok(Ok(0) | Err(_))
        ),
        "the page was closed"
    );
    served.still_serves().await;
    drop(idle);
}

/// Sends one byte a second until the server has had enough; gives what it said, and after how long.
async fn drips(served: &Served, start: &str, rest: u8) -> (String, Duration) {
    let mut stream = served.connect().await;
    stream.write_all(start.as_bytes()).await.unwrap();
    let began = tokio::time::Instant::now();
    let mut said = Vec::new();
    let (mut reader, mut writer) = stream.split();
    let dripping = async {
        while writer.write_all(&[rest]).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = reader.read_to_end(&mut said) => (),
        () = dripping => (),
    }
    (String::from_utf8_lossy(&said).into_owned(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn slow_request_bytes_reach_the_timeout() {
    let served = Served::new().await;
    let (_, took) = drips(&served, "GET / HTTP/1.1\r\nX-Slow: ", b'x').await;
    assert!(took <= Duration::from_secs(16), "headers: {took:?}");
    let (_, took) = drips(&served, "", b'G').await;
    assert!(took <= Duration::from_secs(16), "the first line: {took:?}");
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 1000\r\n\r\n",
        served.address,
        served.token(Rights::Steer)
    );
    let (said, took) = drips(&served, &head, b' ').await;
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    assert!(took <= Duration::from_secs(47), "a body: {took:?}");
}

#[tokio::test]
async fn slow_reading_clients_do_not_delay_others() {
    let served = Served::new().await;
    let bearer = served.token(Rights::Steer).to_owned();
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut stream = served.connect().await;
        // An answer of 32 MB.
        let head = format!(
            "POST /api/v1/sessions/s/status HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\n\r\n",
            served.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    for _ in 0..20 {
        for stream in &mut slow {
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 1);
        }
        served.still_serves().await;
    }
}

#[tokio::test(start_paused = true)]
async fn silent_clients_reach_the_timeout() {
    let served = Served::new().await;
    for start in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let mut stream = served.connect().await;
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        let _reset = stream.read_to_end(&mut said).await;
    }
    let bearer = served.token(Rights::Steer).to_owned();
    let mut stream = served.connect().await;
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\nContent-Length: 1000\r\n\r\n{{",
        served.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 408");
}

#[tokio::test]
async fn client_that_reads_nothing_is_disconnected_without_delaying_others() {
    let served = Served::new().await;
    let bearer = served.token(Rights::Steer).to_owned();
    let mut stream = served.connect().await;
    // An answer of 32 MB, of which nothing is read.
    let head = format!(
        "POST /api/v1/sessions/s/status HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    served.still_serves().await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(25)).await;
    tokio::time::resume();
    let mut said = Vec::new();
    let _reset = stream.read_to_end(&mut said).await;
    assert!(said.len() < 32 << 20, "all of {} bytes came", said.len());
    served.still_serves().await;
}

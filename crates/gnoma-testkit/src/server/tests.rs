use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::*;

const SOON: Duration = Duration::from_secs(5);

async fn ask(server: &Server, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn rest(stream: &mut TcpStream) -> (String, io::Result<usize>) {
    let mut bytes = Vec::new();
    let end = timeout(SOON, stream.read_to_end(&mut bytes)).await.unwrap();
    (String::from_utf8(bytes).unwrap(), end)
}

#[tokio::test]
async fn server_records_requests_with_content_length_or_chunked_encoding() {
    let server = Server::start(|_| Reply::text(200, "ok")).unwrap();
    let mut stream = ask(&server, "POST /a?x=1 HTTP/1.1\r\nX-Key: k\r\n").await;
    stream.write_all(b"Content-Length: 4\r\n\r\n{\"a").await.unwrap();
    stream.write_all(b"}").await.unwrap();
    let next =
        "POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    stream.write_all(next.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    rest(&mut stream).await.1.unwrap();

    let requests = server.requests();
    let [first, second] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!((first.path(), first.target.as_str()), ("/a", "/a?x=1"));
    assert_eq!(first.header("x-key"), Some("k"));
    assert_eq!(first.body, "{\"a}");
    assert_eq!(second.body, "abc");
    assert_eq!(server.connection_count(), 1);
}

#[tokio::test]
async fn server_sends_chunks_and_ends_truncated_aborted_or_reset_as_scripted() {
    let ends = [
        (End::Whole, "2\r\nhe\r\n2\r\nll\r\n1\r\no\r\n0\r\n\r\n"),
        (End::Truncate(3), "2\r\nhe\r\n1\r\nl\r\n0\r\n\r\n"),
        (End::Abort(3), "2\r\nhe\r\n1\r\nl\r\n"),
        (End::Reset(3), "2\r\nhe\r\n1\r\nl\r\n"),
    ];
    for (end, expected) in ends {
        for pace in [Pace::Burst, Pace::Each(Duration::ZERO)] {
            let mut reply = Reply::text(200, "hello").with_piece_size(2).with_end(end).with_close();
            reply.pace = pace;
            let server = Server::start_with_replies([reply]).unwrap();
            let mut stream = ask(&server, "GET / HTTP/1.1\r\n\r\n").await;
            let (text, outcome) = rest(&mut stream).await;
            assert!(text.ends_with(&format!("\r\n\r\n{expected}")), "{end:?}: {text}");
            assert_eq!(outcome.is_err(), matches!(end, End::Reset(_)), "{end:?}");
            assert_eq!(server.bytes_sent(), text.len() as u64);
        }
    }
}

#[tokio::test]
async fn server_counts_clients_that_disconnect() {
    let stalled = Reply::sse("data: 1\n\n").with_end(End::Stall(3));
    let server = Server::start_with_replies([stalled]).unwrap();
    let mut stream = ask(&server, "GET / HTTP/1.1\r\n\r\n").await;
    stream.read_u8().await.unwrap();
    assert_eq!(server.clients_gone(), 0);
    drop(stream);
    timeout(SOON, server.client_gone()).await.unwrap();
}

#[tokio::test]
async fn endless_reply_waits_for_a_slow_reader() {
    let server =
        Server::start_with_replies([Reply::endless_stream("", "head", "unit ".repeat(200))])
            .unwrap();
    let stream = ask(&server, "GET / HTTP/1.1\r\n\r\n").await;
    let mut before = 1;
    while server.bytes_sent() != before {
        before = server.bytes_sent();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(before > 1_000, "{before}");
    drop(stream);
    timeout(SOON, server.client_gone()).await.unwrap();
}

#[tokio::test]
async fn unknown_path_or_exhausted_reply_queue_returns_an_error_status() {
    let server = Server::by_path([("/a", Reply::text(200, "a").with_close())]).unwrap();
    let mut stream = ask(&server, "GET /a?q HTTP/1.1\r\n\r\n").await;
    assert!(rest(&mut stream).await.0.starts_with("HTTP/1.1 200"));
    let mut stream = ask(&server, "GET /b HTTP/1.1\r\n\r\n").await;
    stream.shutdown().await.unwrap();
    assert!(rest(&mut stream).await.0.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn dropping_the_server_ends_its_connections() {
    let server = Server::start_with_replies([Reply::sse("x").with_end(End::Stall(1))]).unwrap();
    let mut stream = ask(&server, "GET / HTTP/1.1\r\n\r\n").await;
    stream.read_u8().await.unwrap();
    drop(server);
    rest(&mut stream).await.1.unwrap();
}

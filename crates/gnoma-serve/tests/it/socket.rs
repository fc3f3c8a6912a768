//! Clients that send anything: one clear error each, and nothing else happens.

use std::time::Duration;

use gnoma_core::protocol::{Greeting, Reply, Request, RequestErrorKind, ServerMessage, VERSION};
use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::support::{MAX_WAIT, Raw, Served};

const LIST: &[u8] = b"{\"id\":1,\"request\":\"list\"}\n";

async fn refusal(raw: &mut Raw) -> RequestErrorKind {
    let Greeting::Refused(error) = raw.greeting().await else { panic!("welcome") };
    assert_eq!(raw.line().await, None, "the connection goes on");
    error.kind
}

#[tokio::test]
async fn connection_without_a_valid_hello_is_refused() {
    let served = Served::new();
    for first in
        ["rubbish\n", "\u{0}\u{1}\n", "{}\n", "[1,2]\n", "{\"id\":1,\"request\":\"list\"}\n"]
    {
        let mut raw = served.silent().await;
        raw.write(first.as_bytes()).await;
        assert_eq!(refusal(&mut raw).await, RequestErrorKind::Malformed, "{first}");
    }
    let mut raw = served.silent().await;
    raw.hello(VERSION + 7).await;
    assert_eq!(refusal(&mut raw).await, RequestErrorKind::Version);
    drop(served.silent().await);
    served.still_serves().await;
}

#[tokio::test]
async fn malformed_lines_get_one_error_and_the_connection_continues() {
    let served = Served::new();
    let mut raw = served.raw().await;
    raw.write(b"rubbish\n\xFF\xFE\n\n{\"id\":5,\"request\":\"dance\"}\n").await;
    raw.expect(0, RequestErrorKind::Malformed).await;
    raw.expect(0, RequestErrorKind::Malformed).await;
    let error = raw.expect(5, RequestErrorKind::Unknown).await;
    assert!(error.cause.contains("`dance`"), "{error}");
    raw.write(b"{\"id\":6,\"session\":\"other\",\"request\":\"status\"}\n").await;
    raw.expect(6, RequestErrorKind::NoSession).await;
    raw.write(LIST).await;
    assert_eq!(raw.reply().await.1, Ok(Reply::Live(Vec::new())));
}

#[tokio::test]
async fn truncated_last_line_is_reported() {
    let served = Served::new();
    let mut raw = served.raw().await;
    raw.write(&LIST[..10]).await;
    raw.stream.shutdown().await.unwrap();
    raw.expect(0, RequestErrorKind::Malformed).await;
    assert_eq!(raw.line().await, None);
    served.still_serves().await;
}

/// Memory of this process in bytes, and the most that it has had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}

#[tokio::test]
async fn line_of_100_mb_is_discarded_while_it_arrives() {
    const PIECE: usize = 1 << 20;
    let served = Served::new();
    let mut raw = served.raw().await;
    let before = peak_bytes();
    let piece = vec![b'['; PIECE];
    for _ in 0..100 {
        raw.write(&piece).await;
    }
    raw.write(b"\n").await;
    raw.expect(0, RequestErrorKind::Malformed).await;
    raw.write(LIST).await;
    assert_eq!(raw.reply().await.1, Ok(Reply::Live(Vec::new())));
    // As long as a line may be, twice while its buffer grows, and what the other tests take.
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < 160 << 20, "{} MB", grown >> 20);
}

#[tokio::test]
async fn an_unknown_request_of_many_parts_takes_no_more_than_its_line() {
    let served = Served::new();
    let mut raw = served.raw().await;
    let before = peak_bytes();
    let parts = "0,".repeat(10 << 20);
    raw.write(b"{\"id\":8,\"request\":{\"dance\":[").await;
    raw.write(parts.as_bytes()).await;
    raw.write(b"0]}}\n").await;
    let error = raw.expect(8, RequestErrorKind::Unknown).await;
    assert!(error.cause.contains("`dance`"), "{error}");
    let grown = peak_bytes().saturating_sub(before);
    assert!(grown < 200 << 20, "{} MB", grown >> 20);
}

#[tokio::test]
async fn stalled_or_killed_client_does_not_delay_others() {
    let served = Served::new();
    let mut deaf = served.raw().await;
    deaf.write(b"{\"id\":1,\"request\":\"watch\"}\n").await;
    let mut killed = served.raw().await;
    killed.write(b"{\"id\":1,\"request\":\"watch\"}\n{\"id\":2,\"requ").await;
    assert!(killed.reply().await.1.is_ok());
    drop(killed);
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..20 {
        served.still_serves().await;
    }
    drop(deaf);
    served.still_serves().await;
}

#[tokio::test]
async fn connection_over_the_limit_is_refused() {
    let served = Served::new();
    let mut taken = Vec::new();
    for _ in 0..256 {
        taken.push(served.silent().await);
    }
    let mut raw = served.silent().await;
    assert_eq!(refusal(&mut raw).await, RequestErrorKind::Busy);
    drop(taken);
    tokio::time::sleep(Duration::from_millis(100)).await;
    served.still_serves().await;
}

#[tokio::test]
async fn client_over_a_socket_works_like_a_local_one() {
    let served = Served::new();
    let mut client = gnoma_serve::connect_to_server(&served.socket(), "test", "c").await.unwrap();
    let asked = client.send_request(None, Request::List).unwrap();
    let message = timeout(MAX_WAIT, client.next()).await.unwrap();
    let result = Ok(Reply::Live(Vec::new()));
    assert_eq!(message, Some(ServerMessage::Reply { id: asked, result }));
    drop(served);
    assert_eq!(timeout(MAX_WAIT, client.next()).await.unwrap(), None, "the server has gone");
}

/// The variable with the socket that the body below connects to.
const SOCKET: &str = "GNOMA_TEST_SOCKET";

/// Connects and prints the answer; the test below runs it in a child and, through a shell, in a grandchild.
#[test]
#[ignore = "the body of `processes_that_the_server_started_are_refused`"]
#[expect(
    clippy::disallowed_methods,
    reason = "its test says by a variable where the server listens"
)]
fn connect_from_a_child() {
    use std::io::{Read as _, Write as _};
    let path = std::env::var_os(SOCKET).expect("its test says where");
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    let hello = format!("{{\"version\":{VERSION},\"program\":\"test\",\"client\":\"c\"}}\n");
    // A refusal may come before anything is read.
    let _refused = stream.write_all(hello.as_bytes());
    let mut answer = [0; 4_096];
    let count = stream.read(&mut answer).unwrap();
    println!("\nanswer {}", String::from_utf8_lossy(&answer[..count]));
}

/// A command of a session could otherwise approve its own questions.
#[tokio::test]
async fn processes_that_the_server_started_are_refused() {
    let served = Served::new();
    let program = std::env::current_exe().unwrap();
    let body = ["--ignored", "--exact", "socket::connect_from_a_child", "--nocapture"];
    let mut child = tokio::process::Command::new(&program);
    child.args(body);
    let mut grandchild = tokio::process::Command::new("sh");
    // The shell has something left to do, so that it does not become the program.
    grandchild.args(["-c", "\"$0\" \"$@\"; true"]).arg(&program).args(body);
    for mut command in [child, grandchild] {
        let output = command.env(SOCKET, served.socket()).output();
        let output = timeout(MAX_WAIT, output).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let refusal = "a session's command cannot control sessions";
        assert!(said.contains(refusal), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
    // The server's own process is none of its commands.
    served.still_serves().await;
}

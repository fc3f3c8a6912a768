//! `gnoma web` and `gnoma serve --http`: the real program, asked over HTTP.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use gnoma_config::schema::{Guard, ROWS};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{World, calls, says};

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);

/// A program that serves a page.
struct Page {
    child: Child,
    address: String,
    /// The token that opens everything, and the one that only watches.
    tokens: Vec<String>,
}

impl Page {
    fn starts(world: &World, arguments: &[&str]) -> Self {
        std::fs::create_dir_all(world.home.path().join("run")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gnoma"));
        command
            .args(arguments)
            .current_dir(world.project.path())
            .env_clear()
            .env("TZ", "UTC")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", world.home.path())
            .env("XDG_RUNTIME_DIR", world.home.path().join("run"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let (mut address, mut tokens) = (String::new(), Vec::new());
        let mut line = String::new();
        // The last line says that it serves, or whose sessions it shows.
        while !line.contains("its page") && !line.contains("showing the sessions") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended: {address} {tokens:?}");
            if let Some((_, rest)) = line.split_once("http://") {
                rest.split('/').next().unwrap().clone_into(&mut address);
            }
            if let Some((_, rest)) = line.split_once("://") {
                tokens.extend(rest.trim().split_once("#t=").map(|(_, token)| token.to_owned()));
            }
        }
        child.stderr = Some(lines.into_inner());
        Self { child, address, tokens }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{method} /api/v1/{path} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// The whole answer to a request with these headers.
    fn says(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(self.request(method, path, headers, body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Asks something with a token; gives the status and the answer.
    fn asks(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let answer = self.says("POST", path, &[("Authorization", &bearer)], &body.to_string());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn does(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.asks(&self.tokens[0], path, body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The events of a session, until one of them holds `mark`.
    fn events_until(&self, query: &str, mark: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (address, token) = (&self.address, &self.tokens[0]);
        let head = format!(
            "GET /api/v1/events?{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let (mut all, mut buffer) = (String::new(), [0; 4096]);
        while !all.contains(mark) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "no {mark}: {all}");
            all += &String::from_utf8_lossy(&buffer[..count]);
        }
        all
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "text": { "text": text } }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_opened_steered_and_answered_over_http() {
    let edit = r#"{"path":"notes.txt","old_string":"end","new_string":"End"}"#;
    let world = World::new([
        calls("fs_read", r#"{"path":"notes.txt"}"#),
        calls("fs_edit", edit),
        says("Done over HTTP."),
    ]);
    world.write("notes.txt", "end");
    let page = Page::starts(&world, &["web", "--port", "0"]);
    assert!(page.address.starts_with("127.0.0.1:") && page.tokens.len() == 2, "{:?}", page.tokens);
    let spec = json!({ "interactive": true, "detach": "keep" });
    let opened = page.does("process/open", &spec);
    let session = opened["opened"]["session"].as_str().unwrap().to_owned();
    page.does(&format!("sessions/{session}/send"), &said("capitalize it"));
    let asked = page.events_until(&format!("attach={session}"), "edits need approval");
    let position = asked.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap();
    let status = page.does(&format!("sessions/{session}/status"), &json!({}));
    assert_eq!(status["status"]["questions"], 1, "{status}");

    let answer = format!("sessions/{session}/answer");
    // Ids of a provider that come again are told apart.
    let (_, question) = asked.split_once(r#""permission_asked":{"call":{"id":""#).unwrap();
    let yes = json!({ "call": question.split('"').next().unwrap(), "answer": "allow" });
    let (code, refusal) = page.asks(&page.tokens[1], &answer, &yes);
    assert_eq!(code, 403, "whoever watches does not answer: {refusal}");
    page.does(&answer, &yes);
    let rest = page.events_until(&format!("attach={position}"), "turn_ended");
    assert!(rest.contains("Done over HTTP.") && !rest.contains("event: snapshot"), "{rest}");
    assert_eq!(world.read("notes.txt"), "End");
    assert_eq!(page.asks(&page.tokens[0], &answer, &yes).0, 409, "a second answer");
    // The session is one of the server that everybody of this user finds.
    let sessions = world.json(&["ps", "--json"]).await;
    assert_eq!(sessions[0]["status"]["session"], session.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_its_own_outlives_the_server_that_it_shows() {
    let world = World::new([says("First."), says("Second.")]);
    let mut server = Page::starts(&world, &["serve", "--http", "127.0.0.1:0"]);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    server.tokens.clone_from(&page.tokens);
    let opened = page.does("process/open", &json!({ "detach": "keep" }));
    let session = opened["opened"]["session"].as_str().unwrap().to_owned();
    page.does(&format!("sessions/{session}/send"), &said("one"));
    let events = server.events_until(&format!("attach={session}"), "\"First.\"");
    assert!(events.contains("event: hello"), "both serve the same session");

    let id = Pid::from_raw(i32::try_from(server.child.id()).unwrap()).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    server.child.wait().unwrap();
    let (code, error) = page.asks(&page.tokens[0], "process/list", &json!({}));
    assert_eq!((code, &error["kind"]), (503, &json!("closed")), "{error}");
    let again = Page::starts(&world, &["serve", "--http", "127.0.0.1:0"]);
    let folder = world.project.path();
    let start = json!({ "stored": { "id": session, "fork": false } });
    page.does("process/open", &json!({ "folder": folder, "start": start, "detach": "keep" }));
    page.does(&format!("sessions/{session}/send"), &said("two"));
    let end = Instant::now() + PATIENCE;
    let history = json!({ "before": null, "max": 9 });
    while !page
        .does(&format!("sessions/{session}/history"), &history)
        .to_string()
        .contains("Second.")
    {
        assert!(Instant::now() < end, "the session does not go on");
        std::thread::sleep(STEP);
    }
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn web_refuses_other_interfaces_and_new_links_replace_tokens() {
    let world = World::new([]);
    for arguments in [
        &["serve", "--http", "0.0.0.0:4666"][..],
        &["serve", "--http", "192.0.2.1:80"],
        &["serve", "--http", "[::]:0"],
        &["web", "--lan"],
    ] {
        let run = world.run(arguments).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains("ssh -N -L") && run.err.contains("127.0.0.1"), "{run:?}");
    }
    let tokens = Page::starts(&world, &["web", "--port", "0"]).tokens.clone();
    let again = Page::starts(&world, &["web", "--port", "0"]);
    assert_eq!(again.tokens, tokens, "a page goes on when its server is started again");
    drop(again);
    let other = Page::starts(&world, &["web", "--port", "0", "--new-links"]);
    assert_ne!(other.tokens[0], tokens[0]);
    assert_eq!(other.asks(&tokens[0], "process/list", &json!({})).0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_links_revoke_old_tokens_at_running_servers() {
    let world = World::new([]);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let session = page.does("process/open", &json!({ "detach": "keep" }))["opened"]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let origin = format!("http://{}", page.address);
    let token = json!({ "token": page.tokens[0] }).to_string();
    let exchanged = page.says("POST", "exchange", &[("Origin", &origin)], &token);
    let cookie = exchanged.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let key = exchanged.split("\"key\":\"").nth(1).unwrap().split('"').next().unwrap();
    let browser = [("Origin", origin.as_str()), ("Cookie", cookie), ("Gnoma-Key", key)];
    assert!(page.says("POST", "process/list", &browser, "").starts_with("HTTP/1.1 200"));
    // One that is told something, and one on which nothing happens.
    let follow = |path: &str| {
        let mut stream = TcpStream::connect(&page.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let text = page.request("GET", path, &browser, "");
        stream.write_all(text.as_bytes()).unwrap();
        let mut start = [0; 15];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        stream
    };
    let mut streams = [follow(&format!("events?watch=1&attach={session}")), follow("events")];

    let other = Page::starts(&world, &["web", "--port", "0", "--new-links"]);
    let began = Instant::now();
    for stream in &mut streams {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "it broke off: {rest}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "streams end late: {:?}", began.elapsed());
    for token in &page.tokens {
        assert_eq!(page.asks(token, "process/list", &json!({})).0, 401, "an old token");
    }
    assert!(page.says("POST", "process/list", &browser, "").starts_with("HTTP/1.1 401"));
    assert!(page.says("GET", "events", &browser, "").starts_with("HTTP/1.1 401"));
    assert_eq!(page.asks(&other.tokens[0], "process/list", &json!({})).0, 200, "the new one");
    std::fs::remove_file(world.home.path().join(".local/state/gnoma/web.token")).unwrap();
    assert_eq!(page.asks(&other.tokens[0], "process/list", &json!({})).0, 401, "there is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn device_has_a_link_of_its_own_until_it_is_revoked() {
    let world = World::new([]);
    let page = Page::starts(&world, &["web", "--port", "0", "--device", "phone"]);
    let [own, _, phone] = &page.tokens[..] else { panic!("{:?}", page.tokens) };
    assert_ne!(own, phone);
    assert_eq!(page.asks(phone, "process/list", &json!({})).0, 200);
    let listed = world.run(&["web", "--devices"]).await;
    assert!(listed.out.starts_with("phone  added "), "{listed:?}");
    let again = Page::starts(&world, &["web", "--port", "0", "--device", "phone"]);
    assert_eq!(&again.tokens[2], phone, "it is shown again");
    assert_eq!(world.run(&["web", "--revoke", "phone"]).await.code, Some(0));
    assert_eq!(page.asks(phone, "process/list", &json!({})).0, 401);
    assert_eq!(page.asks(own, "process/list", &json!({})).0, 200);
    let unknown = world.run(&["web", "--revoke", "phone"]).await;
    assert!(unknown.code == Some(2) && unknown.err.contains("no device `phone`"), "{unknown:?}");
    let private = world.run(&["--incognito", "web", "--device", "phone"]).await;
    assert!(private.code == Some(2) && private.err.contains("incognito"), "{private:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tunnel_is_explained_and_its_name_leads_in_by_https_alone() {
    let world = World::new([]);
    let page = Page::starts(&world, &["web", "--port", "0", "--tunnel", "Desk.tail1.ts.net"]);
    assert_eq!(page.tokens[0], page.tokens[2], "the third link leads through the tunnel");
    let from = |host: &str, origin: &str| {
        let body = json!({ "token": page.tokens[0] }).to_string();
        let mut stream = TcpStream::connect(&page.address).unwrap();
        let request = format!(
            "POST /api/v1/exchange HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = from("desk.tail1.ts.net", "https://desk.tail1.ts.net");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("; Secure"), "{answer}");
    for (host, origin, status) in [
        ("desk.tail1.ts.net", "http://desk.tail1.ts.net", "403"),
        ("other.tail1.ts.net", "https://other.tail1.ts.net", "421"),
    ] {
        let answer = from(host, origin);
        assert_eq!(answer.split(' ').nth(1), Some(status), "{host} {origin}");
    }
}

#[tokio::test]
async fn tunnel_without_a_name_shows_the_ways_to_the_page() {
    let run = World::new([]).run(&["web", "--qr", "--tunnel"]).await;
    for way in ["tailscale serve 4666", "cloudflared tunnel", "ssh -N -L", "socat OPENSSL-LISTEN"] {
        assert!(run.err.contains(way), "{way}: {run:?}");
    }
}

/// The code of one language in the documentation of the API.
fn sample(language: &str) -> String {
    let text = include_str!("../../../../docs/web.md");
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

/// Runs a client of the documentation against a server; a person approves what it asks about.
async fn run_sample(program: &str, language: &str, file: &str) {
    let found = Command::new("/usr/bin/env").args([program, "--version"]).output();
    if !found.is_ok_and(|it| it.status.success()) {
        return gnoma_testkit::skip_test(&format!("`{program}` is not installed"));
    }
    let code = sample(language);
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 34, "{lines} lines");
    let world = World::new([
        calls("fs_write", r#"{"path":"made.txt","content":"by a client\n"}"#),
        says("Done for a client."),
    ]);
    let page = Page::starts(&world, &["serve", "--http", "127.0.0.1:0"]);
    let place = world.home.path().join(file);
    // Node does not read types yet; this is the only one.
    std::fs::write(&place, code.replace("body!", "body")).unwrap();
    let mut client = Command::new(program)
        .arg(&place)
        .args(["make", "it"])
        .current_dir(world.project.path())
        .env("HOME", world.home.path())
        .env("GNOMA_API", format!("http://{}/api/v1", page.address))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(b"y\n").unwrap();
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{wrong}");
    assert!(said.contains("fs.write") && said.contains("Done for a client."), "{said}\n{wrong}");
    assert_eq!(world.read("made.txt"), "by a client\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn python_client_of_the_documentation_opens_approves_and_reads_the_answer() {
    run_sample("python3", "python", "client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_client_of_the_documentation_opens_approves_and_reads_the_answer() {
    run_sample("node", "typescript", "client.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_returns_when_the_session_asks_when_it_rests_and_at_its_limit() {
    let world =
        World::new([calls("fs_write", r#"{"path":"made.txt","content":"x"}"#), says("Written.")]);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let opened = page.does("process/open", &json!({ "interactive": true, "detach": "keep" }));
    let here = format!("sessions/{}", opened["opened"]["session"].as_str().unwrap());
    let wait = |seconds: u32| {
        page.does(&format!("{here}/wait"), &json!({ "max_seconds": seconds }))["status"].clone()
    };
    assert_eq!(wait(60)["state"], "idle", "nothing was said");
    page.does(&format!("{here}/send"), &said("write it"));
    let asks = wait(60);
    assert_eq!((&asks["state"], &asks["questions"]), (&json!("active"), &json!(1)));
    let mark = r#""questions":[{"call":{"id":"call_a""#;
    page.events_until(&format!("attach={}", &here[9..]), mark);
    page.does(&format!("{here}/answer"), &json!({ "call": "call_a", "answer": "allow" }));
    assert_eq!(wait(60)["state"], "idle", "the answered question does not count");
    assert_eq!(world.read("made.txt"), "x");
    assert_eq!(page.asks(&page.tokens[1], &format!("{here}/wait"), &json!({})).0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn hunk_and_file_are_reverted_and_redone_over_http() {
    let numbered = |others: &[(usize, &str)]| -> String {
        let line = |at: usize| match others.iter().find(|(other, _)| *other == at) {
            Some((_, text)) => format!("{text}\n"),
            None => format!("line {at}\n"),
        };
        (1..=30).map(line).collect()
    };
    let both = numbered(&[(2, "two"), (28, "later")]);
    let write = json!({ "path": "notes.txt", "content": both }).to_string();
    let world = World::new([
        calls("fs_read", r#"{"path":"notes.txt"}"#),
        calls("fs_write", &write),
        says("Written."),
    ]);
    world.write("notes.txt", &numbered(&[]));
    let git = "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm one";
    let made = Command::new("sh").args(["-c", git]).current_dir(world.project.path()).output();
    assert!(made.unwrap().status.success());
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let spec =
        json!({ "interactive": true, "detach": "keep", "overrides": { "mode": "accept_edits" } });
    let opened = page.does("process/open", &spec);
    let here = format!("sessions/{}", opened["opened"]["session"].as_str().unwrap());
    page.does(&format!("{here}/send"), &said("write it"));
    page.does(&format!("{here}/wait"), &json!({}));
    assert_eq!(world.read("notes.txt"), both);

    let text = |request: &str| {
        page.does(&format!("{here}/{request}"), &json!({}))["text"].as_str().unwrap().to_owned()
    };
    let revert = |fields: Value| {
        let (status, answer) = page.asks(&page.tokens[0], &format!("{here}/revert_file"), &fields);
        (status, answer.to_string())
    };
    for (since, request) in
        [("turn", "changes"), ("start", "session_changes"), ("commit", "commit_changes")]
    {
        let changes = text(request);
        assert!(changes.contains("+++ b/notes.txt"), "{since}: {changes}");
        let at = changes.rfind("@@ -").unwrap();
        let fields = json!({ "since": since, "path": "notes.txt", "hunk": &changes[at..] });
        assert_eq!(revert(fields.clone()).0, 200, "{since}: {changes}");
        assert_eq!(world.read("notes.txt"), numbered(&[(2, "two")]), "{since}");
        let (status, why) = revert(fields);
        assert!(status == 400 && why.contains("does not contain this change"), "{since}: {why}");
        text("redo");
        assert_eq!(world.read("notes.txt"), both, "{since}");
        assert_eq!(revert(json!({ "since": since, "path": "notes.txt" })).0, 200, "{since}");
        assert_eq!(world.read("notes.txt"), numbered(&[]), "{since}");
        text("redo");
        assert_eq!(world.read("notes.txt"), both, "{since}");
    }
    let (status, why) = revert(json!({ "since": "start", "path": ".gnoma/config.toml" }));
    assert!(status == 400 && why.contains("not reverted from here"), "{why}");
    let (status, why) = revert(json!({ "since": "start", "path": "../other" }));
    assert!(status == 400 && why.contains("no changes to revert"), "{why}");
    let fields = json!({ "since": "start", "path": "notes.txt" });
    assert_eq!(page.asks(&page.tokens[1], &format!("{here}/revert_file"), &fields).0, 403);
    std::fs::write(world.project.path().join(".git/config"), "[core]\n\tfsmonitor = evil\n")
        .unwrap();
    let (status, why) = page.asks(&page.tokens[0], &format!("{here}/commit_changes"), &json!({}));
    assert!(status == 400 && why.to_string().contains("git would run"), "{why}");
}

/// A model that has two elfs look at a file, one of which writes another one.
fn with_two_elfs(request: &gnoma_testkit::Request) -> gnoma_testkit::Reply {
    if request.method == "GET" {
        return gnoma_testkit::Reply::json(200, r#"{"data":[{"id":"m1"}]}"#.to_owned());
    }
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let last = messages.iter().rposition(|it| it["role"] == "user").unwrap();
    let said = messages[last]["content"].to_string();
    let is_first = messages.len() == last + 1;
    if said.contains("only read it") {
        return says("It is fine.").with_delay(Duration::from_millis(800));
    }
    if said.contains("write about it") {
        let file = r#"{"path":"about.txt","content":"a file\n"}"#;
        return if is_first { calls("fs_write", file) } else { says("Written.") };
    }
    let tasks = r#"{"tasks":[{"name":"ada","task":"only read it"},{"name":"bob","task":"write about it"}]}"#;
    if is_first { calls("elf_spawn", tasks) } else { says("Both are done.") }
}

#[tokio::test(flavor = "multi_thread")]
async fn elfs_are_below_their_session_and_what_they_ask_is_answered_over_http() {
    let world = World::with(gnoma_testkit::Server::start(with_two_elfs).unwrap());
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let spec = json!({ "interactive": true, "detach": "keep" });
    let opened = page.does("process/open", &spec);
    let session = opened["opened"]["session"].as_str().unwrap().to_owned();
    page.does(&format!("sessions/{session}/send"), &said("have two look at it"));
    let asked = page.events_until(&format!("attach={session}"), "permission_asked");
    assert!(asked.contains("elf `bob` needs approval"), "{asked}");
    let live = page.does("process/list", &json!({}));
    let live = live["live"].as_array().unwrap();
    let parents: Vec<_> = live.iter().filter(|it| it["parent"] == session.as_str()).collect();
    assert!(!parents.is_empty() && live.len() == parents.len() + 1, "{live:?}");
    // Its elf can be watched, and asks the same question.
    let elf = parents.iter().find(|it| it["status"]["questions"] == 1).unwrap();
    let elf = elf["status"]["session"].as_str().unwrap();
    page.events_until(&format!("attach={elf}"), "\"questions\":[{");
    let (_, question) = asked.split_once(r#""permission_asked":{"call":{"id":""#).unwrap();
    let yes = json!({ "call": question.split('"').next().unwrap(), "answer": "allow" });
    page.does(&format!("sessions/{session}/answer"), &yes);
    let end = Instant::now() + PATIENCE;
    let history = json!({ "before": null, "max": 9 });
    while !page
        .does(&format!("sessions/{session}/history"), &history)
        .to_string()
        .contains("Both are done.")
    {
        assert!(Instant::now() < end, "the turn does not end");
        std::thread::sleep(STEP);
    }
    assert_eq!(world.read("about.txt"), "a file\n");
    let live = page.does("process/list", &json!({}));
    assert_eq!(live["live"].as_array().unwrap().len(), 1, "elfs are gone: {live}");
}

/// Where a process listens over TCP, as the kernel writes it: hexadecimal addresses and ports.
#[cfg(target_os = "linux")]
fn listening(pid: u32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open: Vec<_> = open.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok()).collect();
    let mut all = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_own = open.iter().any(|it| it.as_os_str() == &*format!("socket:[{}]", words[9]));
            if words[3] == "0A" && is_own {
                all.push(words[1].to_owned());
            }
        }
    }
    all
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn web_server_listens_only_on_loopback() {
    let world = World::new([says("Hello.")]);
    for arguments in [&["web", "--port", "0"][..], &["serve", "--http", "127.0.0.1:0"]] {
        let page = Page::starts(&world, arguments);
        let port: u16 = page.address.rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(listening(page.child.id()), [format!("0100007F:{port:04X}")], "{arguments:?}");
    }
}

/// What is done at the machine itself, over both ways that a request can come.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_need_the_person_at_the_machine_are_refused_over_http() {
    let world = World::new([]);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let opened = page.does("process/open", &json!({ "detach": "keep" }));
    let session = opened["opened"]["session"].as_str().unwrap().to_owned();
    let settings = std::fs::read(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    for request in [
        json!({ "set_mode": { "mode": "bypass" } }),
        json!({ "set_setting": { "key": "permission.mode", "value": "bypass" } }),
        json!({ "set_setting": { "key": "tools.shell", "value": "evil" } }),
        json!({ "add_provider": { "provider": "p", "by": { "key": "k" } } }),
        json!({ "try_provider": { "provider": "p", "by": { "key": "k" } } }),
        json!("trust"),
        json!({ "open": { "overrides": { "mode": "bypass", "confirm_bypass": true } } }),
        json!({ "open": { "environment": { "PATH": "/tmp" } } }),
    ] {
        let session = request.get("open").is_none().then_some(&session);
        let message = json!({ "id": 7, "session": session, "request": request });
        let (_, told) = page.asks(&page.tokens[0], "messages", &message);
        let error = &told["reply"]["result"]["Err"];
        assert_eq!(error["kind"], "refused", "{request}: {told}");
        let remedy = error["remedy"].as_str().unwrap();
        assert!(remedy.contains("at the machine itself"), "{request}: {remedy}");
    }
    let now = std::fs::read(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    assert_eq!(now, settings);
    let status = page.does(&format!("sessions/{session}/status"), &json!({}));
    assert_eq!(status["status"]["mode"], "auto", "{status}");
    // Each setting that may be changed is one that a project may set that nobody trusts.
    for name in gnoma_web::SETTINGS {
        let row = ROWS.iter().find(|row| row.path == name).unwrap();
        assert_eq!(row.guard, Guard::Open, "{name}");
    }
    let rounds = json!({ "key": "tools.max_rounds", "value": "20" });
    page.does(&format!("sessions/{session}/set_setting"), &rounds);
    let now = world.home.path().join(".config/gnoma/config.toml");
    assert!(std::fs::read_to_string(now).unwrap().contains("max_rounds = 20"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_refused_over_http() {
    let world = World::new([calls("bash", r#"{"command":"touch new.txt"}"#), says("Denied.")]);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let refused = |path: &str, body: &Value, cause: &str| {
        let (code, error) = page.asks(&page.tokens[0], path, body);
        assert!(code == 400 && error["cause"].as_str().unwrap().contains(cause), "{code} {error}");
    };
    refused("process/open", &json!({ "agent": "nosuch" }), "there is no agent `nosuch`");
    assert_eq!(page.does("process/list", &json!({}))["live"], json!([]), "nothing is left of it");
    let spec = json!({ "interactive": true, "detach": "keep", "overrides": { "mode": "default" } });
    let opened = page.does("process/open", &spec);
    let session = opened["opened"]["session"].as_str().unwrap().to_owned();
    let send = format!("sessions/{session}/send");
    for (base64, cause) in [("!!", "not base64"), ("AAAA", "no PNG, JPEG, GIF or WebP")] {
        let image = json!({ "image": { "mime": "image/png", "base64": base64 } });
        refused(&send, &json!({ "content": [image] }), cause);
    }
    refused(&send, &said("  "), "empty");

    page.does(&send, &said("make a file"));
    let asked = page.events_until(&format!("attach={session}"), "permission_asked");
    let (_, question) = asked.split_once(r#""permission_asked":{"call":{"id":""#).unwrap();
    let call = question.split('"').next().unwrap();
    let answer = format!("sessions/{session}/answer");
    let rule = json!({ "rule": { "rule": "bash(((bad", "scope": "session" } });
    refused(&answer, &json!({ "call": call, "answer": rule }), "is not a rule");
    let status = page.does(&format!("sessions/{session}/status"), &json!({}));
    assert_eq!(status["status"]["questions"], 1, "the question is still there: {status}");
    page.does(&answer, &json!({ "call": call, "answer": { "deny": { "reason": "" } } }));
    page.does(&format!("sessions/{session}/wait"), &json!({}));
    assert!(!world.project.path().join("new.txt").exists(), "a mistyped rule approves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_says_what_a_turn_took_before_and_after_a_restart() {
    let world = World::new([says("First.")]);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let opened = page.does("process/open", &json!({ "interactive": true, "detach": "keep" }));
    let session = opened["opened"]["session"].as_str().unwrap().to_owned();
    page.does(&format!("sessions/{session}/send"), &said("one"));
    let end_of_turn = |page: &Page| {
        page.does(&format!("sessions/{session}/wait"), &json!({}));
        let all = json!({ "before": null, "max": 9 });
        let history = page.does(&format!("sessions/{session}/history"), &all);
        let notes = history["history"]["notes"].as_array().cloned().unwrap_or_default();
        let ended = notes.into_iter().find(|note| note["event"]["turn_ended"].is_object());
        ended.unwrap_or_else(|| panic!("the turn has no end: {history}"))
    };
    let before = end_of_turn(&page);
    drop(page);
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let start = json!({ "stored": { "id": session, "fork": false } });
    let folder = world.project.path();
    page.does("process/open", &json!({ "folder": folder, "start": start, "detach": "keep" }));
    let after = end_of_turn(&page);
    assert_eq!(
        (&before["after"], &after["after"], &after["seq"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let usage = |note: &Value| note["event"]["turn_ended"]["usage"].clone();
    assert_eq!(usage(&before), usage(&after));
}

#[test]
fn page_knows_every_command_of_the_terminal() {
    let page = include_str!("../../../gnoma-web/page/actions.js");
    let is_name = |name: &&str| name.starts_with(|first: char| first.is_ascii_lowercase());
    for name in gnoma_tui::slash_command_names().filter(is_name) {
        let is_known = page.contains(&format!("\"{name}\"")) || page.contains(&format!(" {name}:"));
        assert!(is_known, "the page neither does /{name} nor says that it is at the terminal");
    }
}

#[tokio::test]
async fn the_api_is_described() {
    let world = World::new([]);
    let api = world.json(&["protocol", "--openapi"]).await;
    assert_eq!(api["openapi"], "3.1.0");
    let paths = api["paths"].as_object().unwrap();
    for path in ["/api/v1/process/open", "/api/v1/sessions/{session}/send", "/api/v1/events"] {
        assert!(paths.contains_key(path), "{path}");
    }
    let types = api["components"]["schemas"].as_object().unwrap();
    let text = api.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(types.contains_key(name), "{name} is not described");
    }
    assert!(!text.contains("#/$defs/"));
    assert!(world.run(&["protocol", "--schema"]).await.out.contains("x-protocol-version"));
}

/// Returns the smallest value that a schema allows; of strings the empty one.
fn smallest_value(schema: &Value, types: &Value) -> Value {
    let first = |list: &str| schema.get(list).and_then(|list| list.get(0));
    if let Some(name) = schema["$ref"].as_str() {
        return smallest_value(&types[name.rsplit('/').next().unwrap()], types);
    }
    if let Some(only) = schema.get("const").or_else(|| first("enum")) {
        return only.clone();
    }
    if let Some(choice) = first("oneOf").or_else(|| first("anyOf")) {
        return smallest_value(choice, types);
    }
    let kind = if schema["type"].is_array() { &schema["type"][0] } else { &schema["type"] };
    match kind.as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let field = |name: &Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), smallest_value(&schema["properties"][name], types))
            };
            Value::Object(required.map(field).collect())
        }
        Some("array") => json!([]),
        Some("string") => json!(""),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => Value::Null,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_carries_every_request_that_is_described() {
    let world = World::new([]);
    let api = world.json(&["protocol", "--openapi"]).await;
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let types = &api["components"]["schemas"];
    let mut requests = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("post").filter(|_| !path.ends_with("/messages")) else {
            continue;
        };
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = smallest_value(schema, types);
        let path = path.replace("/api/v1/", "").replace("{session}", "none");
        let (_, answer) = page.asks(&page.tokens[0], &path, &body);
        assert_ne!(answer["cause"], "this request is not allowed over HTTP", "{path} {body}");
        requests += 1;
    }
    assert!(requests > 40, "{requests}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_of_all_sessions_over_http_is_that_of_the_command() {
    let world = World::new([says("one"), says("two")]);
    for prompt in ["hello", "again"] {
        assert_eq!(world.run(&[prompt]).await.code, Some(0));
    }
    let page = Page::starts(&world, &["web", "--port", "0"]);
    let read = |token: &str| {
        let bearer = format!("Bearer {token}");
        page.says("GET", "usage", &[("Authorization", &bearer)], "")
    };
    let answer = read(&page.tokens[0]);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let report: Value = serde_json::from_str(body).unwrap();
    let printed = world.json(&["usage", "--json"]).await;
    assert_eq!((&report["total"], &report["total"]["calls"]), (&printed["total"], &json!(2)));
    assert_eq!(report["rows"], printed["rows"]);
    assert!(read(&page.tokens[1]).starts_with("HTTP/1.1 403"), "the watcher's link");
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_metrics_with_the_token_and_only_if_they_are_offered() {
    let world = World::new([says("one")]);
    assert_eq!(world.run(&["hello"]).await.code, Some(0));
    let read = |page: &Page, headers: &str| {
        let mut stream = TcpStream::connect(&page.address).unwrap();
        let address = &page.address;
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let token = |world: &World| {
        let file = world.home.path().join(".local/state/gnoma/web.token");
        let token = std::fs::read_to_string(file).unwrap();
        format!("Authorization: Bearer {}\r\n", token.trim())
    };
    let page = Page::starts(&world, &["serve", "--http", "127.0.0.1:0", "--metrics"]);
    let answer = read(&page, &token(&world));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = "gnoma_model_calls_total{provider=\"test\",model=\"m1\"} 1\n";
    assert!(answer.contains(line) && answer.contains("\ngnoma_sessions 0\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    assert!(read(&page, "").starts_with("HTTP/1.1 401"));
    drop(page);
    let page = Page::starts(&world, &["serve", "--http", "127.0.0.1:0"]);
    assert!(read(&page, &token(&world)).starts_with("HTTP/1.1 404"));
    let refused = world.run(&["serve", "--metrics"]).await;
    assert!(refused.code == Some(2) && refused.err.contains("--http"), "{refused:?}");
}

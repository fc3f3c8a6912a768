//! Requests of a program that speaks the protocol itself, against real sessions in a real server.

use serde_json::json;

use super::*;

/// A program that is connected.
struct Speaker {
    lines: BufReader<UnixStream>,
    last_id: u64,
}

impl Speaker {
    fn new(world: &World) -> Self {
        let socket = world.home.path().join("run/gnoma/server.sock");
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut speaker = Self { lines: BufReader::new(stream), last_id: 0 };
        speaker.says(&json!({ "version": 1, "program": "test", "client": "a speaker" }));
        assert!(speaker.hears()["welcome"].is_object());
        speaker
    }

    fn says(&mut self, message: &Value) {
        self.lines.get_mut().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn hears(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the connection has ended: {line}"))
    }

    /// The reply to a request; what happens meanwhile is passed over.
    #[expect(clippy::needless_pass_by_value, reason = "requests are written where they are asked")]
    fn asks(&mut self, session: Option<&str>, request: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "request": request });
        if let Some(session) = session {
            message["session"] = json!(session);
        }
        self.says(&message);
        loop {
            let heard = self.hears();
            if heard["reply"]["id"] == self.last_id {
                return heard["reply"]["result"].clone();
            }
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is asked for")]
    fn opens(&mut self, world: &World, more: Value) -> Value {
        let environment = json!({ "HOME": world.home.path(), "PATH": "/usr/bin:/bin" });
        let mut spec = json!({
            "folder": world.project.path(), "environment": environment,
            "interactive": true, "detach": "keep",
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.asks(None, json!({ "open": spec }))
    }

    /// A session in which everything is allowed.
    fn session(&mut self, world: &World) -> String {
        let overrides = json!({ "mode": "bypass", "confirm_bypass": true });
        let opened = self.opens(world, json!({ "overrides": overrides }));
        opened["Ok"]["opened"]["session"].as_str().expect("no session").to_owned()
    }

    /// Says something and waits for the end of the turn.
    fn turn(&mut self, session: &str, words: &str) {
        let send = json!({ "send": { "content": [{ "text": { "text": words } }] } });
        let before = self.status(session)["messages"].as_u64().unwrap();
        assert_eq!(self.asks(Some(session), send), json!({ "Ok": "done" }));
        let end = Instant::now() + PATIENCE;
        loop {
            let status = self.status(session);
            if status["state"] == "idle" && status["messages"].as_u64().unwrap() > before + 1 {
                return;
            }
            assert!(Instant::now() < end, "no end of the turn: {status}");
            thread::sleep(STEP);
        }
    }

    fn status(&mut self, session: &str) -> Value {
        self.asks(Some(session), json!("status"))["Ok"]["status"].clone()
    }

    fn jobs(&mut self) -> Value {
        self.asks(None, json!("list"))["Ok"]["live"][0]["jobs"].clone()
    }
}

fn background(command: &str) -> Reply {
    let arguments = json!({ "command": command, "background": true });
    calls("bash", &arguments.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_open_is_given_a_title() {
    let world = World::new([says("An answer."), says("Another one.")]);
    let _served = Served::starts(&world, &[]);
    let mut speaker = Speaker::new(&world);
    let session = speaker.session(&world);
    let rename = |title: &str| json!({ "rename": { "title": title } });
    let unsaved = speaker.asks(Some(&session), rename("too early"));
    assert!(unsaved["Err"]["cause"].as_str().unwrap().contains("nothing was said"), "{unsaved}");
    speaker.turn(&session, "what was asked");
    let renamed = speaker.asks(Some(&session), rename(" a title "));
    assert_eq!(renamed["Ok"]["text"], "a title", "{renamed}");
    let empty = speaker.asks(Some(&session), rename(" "));
    assert_eq!(empty["Err"]["kind"], "invalid", "{empty}");
    assert_eq!(sessions(&world).await[0]["title"], "a title");
    // The conversation goes on beside it, and is whole.
    speaker.turn(&session, "and now");
    assert_eq!(speaker.asks(Some(&session), json!("close")), json!({ "Ok": "done" }));
    waits_until("end of the session", &world, <[Value]>::is_empty).await;
    assert_eq!(world.json(&["sessions", "list", "--json"]).await[0]["title"], "a title");
    let shown = world.run(&["sessions", "show", &session]).await;
    for said in ["what was asked", "An answer.", "and now", "Another one."] {
        assert!(shown.out.contains(said), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rewind_leaves_background_jobs_running() {
    let world = World::new([background("sleep 60"), says("It runs.")]);
    let _served = Served::starts(&world, &[]);
    let mut speaker = Speaker::new(&world);
    let session = speaker.session(&world);
    speaker.turn(&session, "start it");
    assert_eq!(speaker.jobs(), 1);
    let rewind = |turns, files, conversation| json!({ "rewind": { "turns": turns, "files": files, "conversation": conversation } });
    for (what, request) in [
        ("too many turns", rewind(99, true, true)),
        ("nothing of a turn", rewind(1, false, false)),
        ("nothing to redo", json!("redo")),
        ("no such provider", json!({ "switch": { "provider": "nobody" } })),
    ] {
        let reply = speaker.asks(Some(&session), request);
        assert!(reply["Err"]["cause"].is_string(), "{what}: {reply}");
        assert_eq!(speaker.jobs(), 1, "{what}");
    }
    let reply = speaker.asks(Some(&session), rewind(1, false, true));
    assert!(reply["Ok"]["text"].is_string(), "{reply}");
    assert_eq!(speaker.jobs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_end_by_itself_while_a_background_job_runs() {
    let world = World::new([background("sleep 4; touch made"), says("It runs.")]);
    let mut served = Served::starts(&world, &["--idle-exit", "1s"]);
    let mut speaker = Speaker::new(&world);
    let session = speaker.session(&world);
    speaker.turn(&session, "start it");
    drop(speaker);
    assert_eq!(served.ends().0, Some(0));
    assert!(exists(world.project.path(), "made"), "it ended with a job at work");
}

#[tokio::test(flavor = "multi_thread")]
async fn background_jobs_that_a_server_ends_are_named() {
    let world = World::new([background("sleep 60"), says("It runs.")]);
    let mut served = Served::starts(&world, &[]);
    let mut speaker = Speaker::new(&world);
    let session = speaker.session(&world);
    speaker.turn(&session, "start it");
    let listed = world.run(&["ps"]).await;
    assert!(listed.out.contains("job"), "{listed:?}");
    served.signals(Signal::TERM);
    let (_, said) = served.ends();
    assert!(said.contains("stopped while working (job)") && said.contains(&session), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_session_that_lives_is_found_by_its_project_only() {
    let world = World::new([says("An answer.")]);
    let _served = Served::starts(&world, &[]);
    let mut speaker = Speaker::new(&world);
    let session = speaker.session(&world);
    speaker.turn(&session, "what was asked");
    // The newest of the project is the one that lives.
    for start in [json!({ "newest": { "fork": false } }), stored(&session), stored(&session[..12])]
    {
        let opened = speaker.opens(&world, json!({ "start": start }));
        assert_eq!(opened["Ok"]["opened"]["session"], *session, "{start}: {opened}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    for (what, more) in [
        ("another project", json!({ "folder": elsewhere.path() })),
        ("a profile that is not there", json!({ "profile": "absent" })),
        ("incognito", json!({ "overrides": { "incognito": true } })),
    ] {
        let mut more = more;
        more["start"] = stored(&session);
        let opened = speaker.opens(&world, more);
        assert!(opened["Err"]["cause"].is_string(), "{what}: {opened}");
    }
}

fn stored(id: &str) -> Value {
    json!({ "stored": { "id": id, "fork": false } })
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_effect_are_errors() {
    let world = World::new([counts()]);
    let _served = Served::starts(&world, &[]);
    let mut speaker = Speaker::new(&world);
    let session = speaker.session(&world);
    let send = |content: Value| json!({ "send": { "content": content } });
    let text = |words: &str| json!([{ "text": { "text": words } }]);
    let result = json!([{ "tool_result": { "call_id": "c", "parts": [], "is_error": false } }]);
    assert_eq!(speaker.asks(Some(&session), send(text("count"))), json!({ "Ok": "done" }));
    waits_until("turn", &world, |all| all[0]["status"]["state"] == "active").await;
    for (request, kind) in [
        (send(json!([])), "invalid"),
        (send(result), "invalid"),
        (json!({ "pin": { "arm": { "provider": "no", "model": "one" } } }), "not_found"),
        (json!({ "compact": { "focus": "" } }), "busy"),
    ] {
        let reply = speaker.asks(Some(&session), request.clone());
        let is_so = reply["Err"]["kind"] == kind
            || (kind == "invalid" && reply["Err"]["kind"] == "unknown");
        assert!(is_so, "{request}: {reply}");
    }
}

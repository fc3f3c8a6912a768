//! Windows that come to a session, fall behind, and leave it.

use super::*;

fn text(text: &str) -> Event {
    Event::Text { text: text.to_owned() }
}

fn answer(text: &str) -> Event {
    Event::Appended(Arc::new(
        Message::assistant(vec![Content::from_text(text)], None, None).unwrap(),
    ))
}

fn round(number: u32) -> Event {
    Event::RoundStarted { round: number, arm: arm("haiku"), why: "it is cheap".to_owned() }
}

impl Scene {
    /// The past that the view asked for last.
    fn past(&mut self, first: u64, texts: &[&str]) -> &mut Self {
        let ViewRequest { request, purpose } = self.late.pop_back().expect("the past is asked for");
        assert!(matches!(request, Request::History { .. }), "{request:?}");
        let messages = texts.iter().map(|text| user(text)).collect();
        let result = Ok(Reply::History { first, messages, notes: Vec::new() });
        self.input(Input::Reply { purpose, result })
    }

    fn whole(&mut self) -> String {
        let live = self.live();
        format!("{}\n{live}", self.finished.join("\n"))
    }
}

#[test]
fn window_attaching_during_a_turn_shows_history_and_the_streaming_answer() {
    let mut scene = Scene::new();
    scene.slow();
    scene.view = SessionView::new(SessionId::new("s1"), Epoch(3), None);
    scene.view.info = info();
    for event in [Event::State(SessionState::Active), Event::Appended(user("go")), round(1)] {
        scene.unheard(event);
    }
    scene.unheard(text("The answer ")).catches_up();
    scene.event(text("goes on."));
    assert!(!scene.whole().contains("goes on"), "it waits for the past");
    let seen = scene.past(0, &["go"]).whole();
    assert!(seen.contains("go") && seen.contains("The answer goes on."), "{seen}");
    assert!(seen.contains("Esc stops"), "{seen}");
}

#[test]
fn session_closed_before_attach_shows_the_reason_once() {
    let mut scene = Scene::new();
    scene.view = SessionView::new(SessionId::new("s2"), Epoch(4), None);
    scene.view.info = info();
    let text = "local: cannot connect".to_owned();
    scene.unheard(Event::Notice { level: NoticeLevel::Warning, text });
    scene.unheard(Event::State(SessionState::Closed)).catches_up();
    let seen = scene.whole();
    assert_eq!(seen.matches("local: cannot connect").count(), 1, "{seen}");
    assert!(seen.contains("/clear to retry") && !seen.contains("/resume"), "{seen}");
}

#[test]
fn window_that_fell_behind_shows_the_streaming_answer_once() {
    let mut scene = Scene::new();
    scene.running("go").event(round(1)).event(text("One, two, "));
    scene.unheard(text("three, ")).unheard(text("four, ")).catches_up();
    scene.event(text("five."));
    let seen = scene.whole();
    assert_eq!(seen.matches("One, two, three, four, five.").count(), 1, "{seen}");
    assert_eq!(seen.matches("One").count(), 1, "{seen}");
}

#[test]
fn turn_that_ended_while_behind_is_shown_to_its_end() {
    let mut scene = Scene::new();
    scene.running("go").event(round(1)).event(text("The first "));
    let ended = Event::TurnEnded {
        outcome: complete(),
        rounds: 1,
        usage: Usage::default(),
        undelivered: Vec::new(),
        answer: None,
    };
    scene.unheard(text("answer.")).unheard(answer("The first answer."));
    scene.unheard(ended).unheard(Event::State(SessionState::Idle));
    scene.unheard(Event::State(SessionState::Active)).unheard(Event::Appended(user("and then?")));
    scene.unheard(round(1)).unheard(text("The second ")).catches_up();
    let seen = scene.event(text("answer.")).whole();
    for part in ["The first answer.", "and then?", "The second answer."] {
        assert_eq!(seen.matches(part).count(), 1, "{part}: {seen}");
    }
}

#[test]
fn messages_missing_from_the_snapshot_are_loaded_from_history() {
    let mut scene = Scene::new();
    scene.running("go").slow();
    // Too much for the view.
    scene.unheard(Event::Appended(user(&"much ".repeat(20_000)))).catches_up();
    let wanted = Request::History { before: Some(2), max: 1 };
    assert_eq!(scene.requests(), [wanted]);
    assert!(scene.past(1, &["what was said"]).said().contains("what was said"));
}

#[test]
fn permission_question_answered_while_behind_is_removed() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm one").asks("c2", "rm two");
    let (call, reason) = (CallId::new("c1"), "another window".to_owned());
    scene.unheard(Event::PermissionDecided { call, allowed: true, reason }).catches_up();
    let live = scene.live();
    assert!(live.contains("rm two") && !live.contains("more behind it"), "{live}");
}

#[test]
fn message_from_another_window_is_shown_beside_ones_own() {
    let mut scene = Scene::new();
    scene.send("mine here").event(Event::State(SessionState::Active)).appended("theirs, not ours");
    scene.appended("mine here");
    let said = scene.said();
    assert_eq!(said.matches("theirs, not ours").count(), 1, "{said}");
    assert_eq!(said.matches("mine here").count(), 1, "{said}");
    scene.ends(Outcome::Cancelled, &["sent by others"]);
    assert_eq!(scene.written(), "", "it comes back where it was written");
}

#[test]
fn usage_counts_survive_a_model_change_but_not_a_new_session() {
    let mut scene = Scene::new();
    scene.running("go").ends(complete(), &[]).look();
    scene.another("", 1, 1);
    scene.finished.clear();
    let is_counted = |scene: &mut Scene| {
        scene.send("/usage").look();
        let said = scene.said();
        scene.finished.clear();
        said.contains("10k tokens")
    };
    assert!(is_counted(&mut scene));
    scene.another("", 2, 0);
    assert!(!is_counted(&mut scene), "the conversation was taken back");
    scene.slow().another("s1", 1, 2);
    let said = scene.past(0, &["one", "[system] Go on where it was cut off.", "two"]).said();
    assert!(said.contains("one") && said.contains("two"), "{said}");
    assert!(!said.contains("cut off"), "no person said that: {said}");
}

#[test]
fn slow_lookup_shows_loading_and_esc_cancels_it() {
    let mut scene = Scene::new();
    scene.slow().send("/resume");
    assert!(!scene.live().contains("loading"));
    assert_eq!(scene.state.next_tick(), Some(scene.now + Duration::from_millis(100)));
    scene.wait(100);
    assert!(scene.live().contains("loading conversations · Esc stops"), "{}", scene.live());
    scene.keys("esc").replies();
    assert!(!scene.live().contains("Resume"), "it comes too late");
    scene.send("/resume").send("/diff").replies();
    assert!(scene.said().contains("new") && !scene.live().contains("Resume"));
}

#[test]
fn keys_typed_for_a_loading_list_are_applied_when_it_opens() {
    let mut scene = Scene::new();
    scene.slow().send("/resume").keys("x backspace down");
    assert_eq!(scene.written(), "");
    scene.replies();
    let late = scene.live();
    scene.keys("esc").send("/resume").replies().keys("down");
    assert_eq!(late, scene.live());
    scene.keys("esc").send("/resume").write("no such").replies();
    assert!(scene.live().contains("› no such"), "{}", scene.live());
    scene.keys("esc");
    // Nothing is sent by an Enter that was meant for a list.
    scene.send("/resume").write("some words").keys("enter esc").replies();
    assert_eq!(scene.written(), "some words");
    assert!(scene.sent().is_empty());
}

#[test]
fn failed_request_shows_its_remedy() {
    let mut scene = Scene::new();
    scene.slow().send("/diff");
    let ViewRequest { purpose, .. } = scene.late.pop_back().unwrap();
    let error =
        RequestError::new(RequestErrorKind::Failed, "git is missing").with_remedy("Install it.");
    scene.input(Input::Reply { purpose, result: Err(error) });
    assert!(scene.said().contains("git is missing. Install it."));
}

#[test]
fn detach_leaves_the_window_only_if_the_session_is_served() {
    let mut scene = Scene::new();
    scene.keys("ctrl+\\");
    assert!(scene.live().contains("runs in this window"), "{}", scene.live());
    assert_eq!(scene.requests(), []);
    let mut scene = Scene::with(|options| options.is_served = true);
    scene.send("/detach");
    assert!(scene.state.is_detached());
    assert_eq!(scene.took().last(), Some(&Effect::Quit));
}

#[test]
fn answer_interrupted_by_a_lost_server_is_not_shown_twice() {
    for (whole, seen) in [("One, two", "One, two"), ("One, two, three", ", three")] {
        let mut scene = Scene::new();
        scene.another("s1", 1, 0).running("go").event(round(1)).event(text("One, two"));
        scene.input(Input::Disconnected { returns: true }).input(Input::Connected);
        scene.slow();
        let messages = scene.view.messages + 1;
        scene.another("s1", 2, messages);
        let ViewRequest { purpose, .. } = scene.late.pop_back().expect("the past is asked for");
        let Event::Appended(message) = answer(whole) else { unreachable!() };
        let reply =
            Reply::History { first: messages - 1, messages: vec![message], notes: Vec::new() };
        scene.input(Input::Reply { purpose, result: Ok(reply) });
        let shown = scene.whole();
        assert_eq!(shown.matches("One, two").count(), 1, "{shown}");
        assert!(shown.contains(seen), "{shown}");
    }
}

#[test]
fn draft_survives_a_lost_server_connection() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 0).write("half").input(Input::Disconnected { returns: true });
    assert!(scene.said().contains("Lost the connection to the server"));
    scene.write(" a line").input(Input::Connected);
    scene.another("s1", 2, 0).took();
    scene.keys("enter");
    assert_eq!(scene.sent(), ["half a line"]);
}

#[test]
fn message_sent_while_disconnected_is_delivered_after_reconnect() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 0).input(Input::Disconnected { returns: true });
    scene.write("and now").keys("enter").input(Input::Connected).write("and then").keys("enter");
    assert!(scene.said().contains("will be sent once the server is back"));
    assert!(scene.sent().is_empty());
    scene.another("s1", 2, 0);
    assert_eq!(scene.sent(), ["and now"]);
    scene.event(Event::State(SessionState::Active)).appended("and now").ends(complete(), &[]);
    assert_eq!(scene.sent(), ["and then"]);
}

#[test]
fn message_in_flight_at_disconnect_is_not_resent_by_itself() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 0).send("may have arrived");
    scene.input(Input::Disconnected { returns: true }).write("and now").keys("enter");
    scene.input(Input::Connected).another("s1", 2, 0);
    assert_eq!(scene.sent(), ["may have arrived"], "once");
    scene.keys("enter");
    assert_eq!(scene.sent(), ["may have arrived"]);
}

#[test]
fn message_for_a_lost_session_is_not_sent_to_another() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 0).input(Input::Disconnected { returns: true });
    scene.write("and now").keys("enter").input(Input::Connected);
    let error = RequestError::new(RequestErrorKind::NoSession, "no such session");
    scene.input(Input::NoSession(error)).another("s2", 3, 0);
    assert!(scene.sent().is_empty());
    assert!(scene.live().contains("and now"), "{}", scene.live());
}

#[test]
fn window_attaching_during_a_turn_counts_each_token_once() {
    let used = |input, turn| Event::Usage {
        round: Usage { input, ..Usage::default() },
        turn: Usage { input: turn, ..Usage::default() },
    };
    let ends = |turn| Event::TurnEnded {
        outcome: complete(),
        rounds: 1,
        usage: Usage { input: turn, ..Usage::default() },
        undelivered: Vec::new(),
        answer: None,
    };
    let mut scene = Scene::new();
    scene.view = SessionView::new(SessionId::new("s1"), Epoch(3), None);
    for event in [
        Event::State(SessionState::Active),
        used(100, 100),
        ends(100),
        Event::State(SessionState::Idle),
        Event::State(SessionState::Active),
        round(1),
        used(1_000, 1_000),
    ] {
        scene.unheard(event);
    }
    let session = |scene: &mut Scene| {
        scene.finished.clear();
        let said = scene.send("/usage").said();
        let of = |name: &str| {
            said.lines().map(str::trim).find(|line| line.starts_with(name)).unwrap().to_owned()
        };
        [of("turn "), of("session ")].map(|line| line.split(" in,").next().unwrap().to_owned())
    };
    scene.catches_up();
    let lines = ["turn           1.0k", "session        1.1k"];
    assert_eq!(session(&mut scene), lines);
    scene.event(round(2)).event(used(2_000, 3_000));
    let lines = ["turn           3.0k", "session        3.1k"];
    assert_eq!(session(&mut scene), lines);
    scene.event(ends(3_000)).event(Event::State(SessionState::Idle));
    assert_eq!(session(&mut scene), lines);
}

#[test]
fn queued_message_of_another_window_is_shown_until_it_is_sent() {
    let mut scene = Scene::new();
    scene.running("go").send("mine, too");
    let queued = |texts: &[&str]| Event::Queued {
        queue: texts.iter().map(|text| vec![Content::from_text(*text)]).collect(),
    };
    scene.event(queued(&["theirs waits", "mine, too"]));
    let live = scene.live();
    assert!(live.contains("theirs waits  (at the next step, from another window)"), "{live}");
    assert_eq!(live.matches("mine, too").count(), 1, "{live}");
    scene.event(queued(&["mine, too"]));
    assert!(!scene.live().contains("theirs"), "{}", scene.live());
    scene.event(queued(&["theirs again"])).ends(Outcome::Cancelled, &["theirs again"]);
    assert!(!scene.live().contains("theirs"), "{}", scene.live());
    // Who comes later sees it, too.
    let mut late = Scene::new();
    late.view = SessionView::new(SessionId::new("s1"), Epoch(3), None);
    late.unheard(Event::State(SessionState::Active)).unheard(queued(&["long ago"])).catches_up();
    assert!(late.live().contains("long ago"), "{}", late.live());
}

#[test]
fn new_session_greets_with_what_it_found_and_how_to_resume_the_last_one() {
    for accessible in [false, true] {
        let mut scene = Scene::before_any_event(|options| options.accessible = accessible);
        scene.view = SessionView::new(SessionId::new("s1"), Epoch(3), None);
        scene.view.info = SessionInfo {
            instructions: vec!["AGENTS.md".to_owned(), "~/.claude/CLAUDE.md".to_owned()],
            ..info()
        };
        scene.view.seq = 1;
        scene.catches_up();
        let seen = scene.whole();
        for part in [
            "gnoma 0.1.0 · ~/src/gnoma (main) · anthropic/haiku",
            "Instructions: AGENTS.md, ~/.claude/CLAUDE.md",
            "Continue your last session “Fix the parser”, just now: /resume",
        ] {
            assert!(seen.contains(part), "{part}: {seen}");
        }
        assert_eq!(seen.contains("Type a message and press Enter"), accessible, "{seen}");
    }
}

#[test]
fn resumed_session_shows_its_history_and_title() {
    let mut scene = Scene::before_any_event(|options| options.now_ms = 3 * 3_600_000);
    scene.slow();
    scene.view = SessionView::new(SessionId::new("s1"), Epoch(3), None);
    let resumed = ResumedFrom { title: "Fix the parser".to_owned(), ..ResumedFrom::default() };
    // No model is known yet: a server on this machine has not answered.
    scene.view.info = SessionInfo { resumed: Some(resumed), model: None, ..info() };
    (scene.view.seq, scene.view.messages) = (1, 1);
    scene.catches_up();
    let seen = scene.past(0, &["first question"]).whole();
    assert!(seen.contains("first question"), "{seen}");
    assert!(seen.contains("Continuing “Fix the parser”, 3h ago"), "{seen}");
    assert!(!seen.contains("Ask anything"), "{seen}");
    scene.event(Event::Models { models: known_models() });
    assert_eq!(scene.whole().matches("Continuing").count(), 1);
}

#[test]
fn messages_that_were_queued_in_another_session_are_not_queued_in_this_one() {
    let queued = |session: Option<&str>| Draft {
        session: session.map(str::to_owned),
        ..Draft::from("then the tests")
    };
    for (session, stays) in [(Some("s1"), true), (None, true), (Some("s0"), false)] {
        let mut scene = Scene::before_any_event(|options| {
            options.drafts = vec![Draft::default(), queued(session)];
        });
        scene.view = SessionView::new(SessionId::new("s1"), Epoch(3), None);
        (scene.view.seq, scene.view.info) = (1, info());
        scene.catches_up();
        let seen = scene.whole();
        assert_eq!(seen.contains("⋯ then the tests"), stays, "{seen}");
        if !stays {
            assert!(seen.contains("Up brings it back"), "{seen}");
            scene.keys("up");
            assert_eq!(scene.written(), "then the tests");
        }
    }
}

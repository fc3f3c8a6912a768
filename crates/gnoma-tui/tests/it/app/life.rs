//! The first start, attention, time, small screens and readers.

use super::*;

#[test]
fn first_screen_shows_status_and_takes_a_prompt() {
    let mut scene = Scene::new();
    insta::assert_snapshot!(scene.live(), @r"
    ────────────────────────────────────────────────────────────────────────────────
    › ▏Ask anything, or / for commands
    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.size = Size::new(40, 12);
    scene.write("hello\\").keys("enter").write("there");
    insta::assert_snapshot!(scene.live(), @r"
    ────────────────────────────────────────
    › hello
      there▏
    auto mode · anthropic/haiku · main
    ");
}

#[test]
fn first_start_setup_selects_tests_and_saves_a_provider() {
    let mut scene = Scene::without_provider(false);
    insta::assert_snapshot!(scene.live(), @r"

    Set up a provider › ▏
    ›   anthropic       the key in ANTHROPIC_API_KEY
        ollama          http://localhost:11434 · 3 models
        openai          enter a key
        llamacpp        on this machine: how to start it
        another server  OpenAI-compatible: its address, and a key if it needs one
        demo            no provider needed: a scripted turn shows how it works
    Enter select · Esc close · type to narrow

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.keys("down down enter");
    scene.input(Input::Paste("made-up-key\n".to_owned()));
    insta::assert_snapshot!(scene.live(), @r"

    key for openai › ••••••••▏
    type or paste it (hidden) · Enter test · Esc back

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.slow().keys("enter");
    assert!(scene.live().contains("trying openai"), "it is shown before it is done");
    assert_eq!(scene.logged(), [""; 0]);
    scene.is_slow = false;
    scene.replies();
    assert!(scene.live().contains("openai works: 12 models"));
    scene.keys("enter");
    assert_eq!(scene.logged(), ["test openai", "keep openai made-up-key"]);
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Provider("openai".to_owned()))));
}

#[test]
fn first_start_setup_can_be_cancelled_or_run_the_demo() {
    let mut scene = Scene::without_provider(false);
    scene.write("demo").keys("enter");
    assert_eq!(scene.took(), [Effect::Demo]);
    let mut scene = Scene::without_provider(false);
    scene.keys("esc").write("hello");
    assert_eq!(scene.written(), "hello");
}

#[test]
fn notification_is_sent_only_while_the_window_is_unfocused() {
    let notified = |scene: &mut Scene| {
        scene.took().into_iter().any(|effect| matches!(effect, Effect::Notify(_)))
    };
    let mut scene = Scene::new();
    scene.input(Input::FocusGained).running("go").wait(60_000).ends(complete(), &[]);
    assert!(!notified(&mut scene), "somebody looks");
    scene.running("go").input(Input::FocusLost).asks("c1", "ls");
    assert!(notified(&mut scene));
    scene.asks("c2", "ls");
    assert!(!notified(&mut scene), "once is enough");
    scene.ends(complete(), &[]);
    assert!(notified(&mut scene));
}

#[test]
fn window_title_shows_whether_gnoma_works_or_waits() {
    let mut scene = Scene::new();
    let titles = |scene: &mut Scene| -> Vec<String> {
        let titles = scene.took().into_iter().filter_map(|effect| match effect {
            Effect::Title(title) => Some(title),
            _ => None,
        });
        titles.collect()
    };
    scene.send("go").wait(1_000).asks("c1", "ls");
    assert_eq!(titles(&mut scene), ["● gnoma · ~/src/gnoma", "? gnoma · ~/src/gnoma"]);
    scene.keys("y").ends(complete(), &[]);
    assert_eq!(titles(&mut scene), ["● gnoma · ~/src/gnoma", "gnoma · ~/src/gnoma"]);
}

#[test]
fn redraw_timer_runs_only_while_something_moves() {
    let mut scene = Scene::new();
    assert_eq!(scene.state.next_tick(), None);
    scene.running("go").wait(5_000);
    assert_eq!(scene.state.next_tick(), Some(scene.now + Duration::from_millis(500)));
    scene.asks("c1", "ls").wait(1);
    assert_eq!(scene.state.next_tick(), None, "a person is waited for");
}

#[test]
fn drafts_are_saved_and_restored() {
    let mut scene = Scene::new();
    scene.running("go").write("waits").keys("tab").write("half");
    scene.wait(1_500);
    let saved = scene.took().into_iter().rev().find_map(|effect| match effect {
        Effect::Save(drafts) => Some(drafts),
        _ => None,
    });
    let saved = saved.unwrap();
    assert_eq!(saved, [Draft::from("half"), Draft::from("waits")]);
    let mut scene = Scene::with(|options| options.drafts = saved);
    assert_eq!(scene.written(), "half");
    assert_eq!(scene.sent(), [""; 0]);
    scene.keys("ctrl+u enter");
    assert_eq!(scene.sent(), ["waits"]);
    scene.input(Input::Ending);
    assert!(matches!(scene.took().last(), Some(Effect::Save(_))));
}

#[test]
fn screen_reader_mode_prints_permission_questions_once() {
    let mut scene = Scene::with(|options| options.accessible = true);
    scene.running("go").wait(5_000).look();
    assert_eq!(scene.state.next_tick(), None, "nothing moves");
    scene.finished.clear();
    scene.asks("c1", "rm -rf build");
    let said = scene.said();
    assert!(
        said.contains("rm -rf build")
            && said.ends_with("r  no, and tell the model why\nType y, a, n or r and press Enter"),
        "{said}"
    );
    scene.wait(1).look();
    assert_eq!(scene.said(), said, "nothing is repeated");
}

#[test]
fn screen_reader_mode_takes_answers_by_line() {
    let answer = |line: &str| {
        let mut scene = Scene::with(|options| options.accessible = true);
        scene.running("go").asks("c1", "rm -rf build").asks("c2", "rm -rf dist").send(line);
        scene.told()
    };
    let to_first = |answer| [Request::Answer { call: CallId::new("c1"), answer }];
    assert_eq!(
        answer("y"),
        to_first(PermissionAnswer::Allow),
        "its Enter does not answer the next"
    );
    let reason = "use make clean".to_owned();
    assert_eq!(answer("n use make clean"), to_first(PermissionAnswer::Deny { reason }));
    assert_eq!(answer(""), [], "Enter alone is no answer");
    assert!(matches!(&answer("yes please")[..], [Request::Send { .. }]), "words steer");
}

#[test]
fn screen_reader_mode_prints_lists_and_selects_by_number_or_name() {
    let mut scene = Scene::with(|options| options.accessible = true);
    scene.send("/model");
    scene.look();
    insta::assert_snapshot!(scene.said(), @r"
    Choose the model
      1 auto: the router chooses
      2 anthropic/opus: 200k
      3 anthropic/haiku: 200k (in use)
      4 ollama/qwen: 200k
    Type a number or a name; q cancels; Enter alone selects:
    3 of 4: anthropic/haiku: 200k
    ");
    scene.send("nonsense");
    assert!(scene.said().contains("nothing matches `nonsense`"), "a miss is told");
    scene.send("qwen");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Model("ollama/qwen".to_owned()))));
    let mut scene = Scene::without_provider(true);
    assert!(!scene.said().contains("enter a key"), "the terminal would show it");
}

#[test]
fn screen_reader_list_beside_a_question_is_numbered() {
    let mut scene = Scene::with(|options| options.accessible = true);
    scene.running("go").asks("c1", "rm -rf build").look();
    scene.finished.clear();
    scene.send("/theme").look();
    let said = scene.said();
    assert!(!said.contains("Sent to the model"), "{said}");
    assert!(said.contains("  1 ") && said.contains("  2 "), "{said}");
    assert_eq!(said.matches("1 of ").count(), 1, "{said}");
    scene.send("q").look();
    assert!(scene.said().contains("rm -rf build"), "the question is read again");
}

#[test]
fn screen_reader_mode_announces_queued_drafts() {
    let mut scene = Scene::with(|options| {
        options.accessible = true;
        options.drafts = vec![Draft::from("half a question")];
    });
    assert!(scene.said().contains("Queued: half a question"), "{}", scene.said());
    scene.send("something else");
    assert_eq!(scene.sent(), ["something else"], "nothing stands before it");
    scene.event(Event::State(SessionState::Active)).appended("something else");
    scene.ends(complete(), &[]);
    scene.keys("enter");
    assert_eq!(scene.sent(), ["half a question"]);
    let mut scene = Scene::with(|options| {
        options.accessible = true;
        options.drafts = vec![Draft::from("half a question")];
    });
    scene.send("/drop").keys("enter");
    assert_eq!(scene.sent(), [""; 0]);
}

#[test]
fn message_undelivered_at_disconnect_is_restored_to_the_editor() {
    let mut scene = Scene::new();
    scene.send("go").input(Input::Disconnected { returns: true });
    scene.another("", 1, 0).took();
    scene.keys("enter");
    assert_eq!(scene.sent(), ["go"]);
}

#[test]
fn cleared_draft_is_removed_from_the_file_at_once() {
    let mut scene = Scene::new();
    scene.write("secret").wait(300);
    assert_eq!(scene.took().last(), Some(&Effect::Save(vec![Draft::from("secret")])));
    scene.keys("ctrl+u");
    assert_eq!(scene.took(), [Effect::Save(vec![Draft::default()])]);
}

#[test]
fn too_small_window_is_reported_and_accepts_typing() {
    let mut scene = Scene::new();
    for (width, height) in [(1, 1), (3, 2), (10, 3), (7, 40), (200, 3)] {
        scene.size = Size::new(width, height);
        scene.write("x");
        let frame = scene.look();
        assert!(frame.live.len() <= height && frame.cursor.is_none());
    }
    assert!(scene.live().starts_with("Window too"), "{}", scene.live());
    scene.size = Size::new(12, 4);
    assert!(scene.live().contains("xxxxx") && scene.look().cursor.is_some());
}

#[test]
fn quit_after_a_session_switch_leaves_no_input_line() {
    let mut scene = Scene::new();
    scene.send("/clear");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::New)));
    scene.another("other", 1, 0);
    assert!(scene.live().contains('›'));
    scene.keys("ctrl+d");
    assert_eq!(scene.live(), "", "the shell goes on below the conversation");
}

#[test]
fn ctrl_l_redraws_the_screen() {
    let mut scene = Scene::new();
    scene.keys("ctrl+l");
    assert_eq!(scene.took(), [Effect::Redraw]);
}

#[test]
fn missing_provider_shows_setup_and_queues_messages() {
    let mut scene = Scene::without_provider(false);
    assert!(scene.live().contains("Set up a provider"));
    assert!(!scene.said().contains("closed"));
    scene.keys("esc").send("a question");
    assert_eq!(scene.sent(), [] as [String; 0]);
    assert!(scene.said().contains("No provider set up. Your message is queued"));
    let error = RequestError::new(RequestErrorKind::Failed, "the folder is gone");
    scene.input(Input::NoSession(error));
    assert!(scene.said().contains("Could not open a session"));
}

#[test]
fn unsaved_session_that_ended_with_its_server_is_reported() {
    let mut scene = Scene::new();
    scene.write("half");
    let error = RequestError::new(RequestErrorKind::NotFound, "no session `s1` is stored");
    scene.view.info.is_kept = false;
    scene.view.epoch = Epoch(2);
    scene.catches_up().input(Input::NoSession(error));
    let said = scene.said();
    assert!(said.contains("was not saved and ended with its server"), "{said}");
    assert!(!said.contains("no session `s1`"), "{said}");
    assert_eq!(scene.written(), "half");
}

#[test]
fn second_ctrl_c_during_a_turn_quits() {
    let mut scene = Scene::new();
    scene.running("go").keys("ctrl+c");
    assert_eq!(scene.told(), [Request::Cancel]);
    scene.keys("ctrl+c");
    assert_eq!(scene.took().last(), Some(&Effect::Quit));
}

#[test]
fn resumed_conversation_is_not_greeted() {
    let mut scene = Scene::new();
    scene.slow().another("s1", 1, 1);
    let ViewRequest { purpose, .. } = scene.late.pop_back().unwrap();
    let result = Ok(Reply::History { first: 0, messages: vec![user("before")], notes: Vec::new() });
    scene.input(Input::Reply { purpose, result });
    assert!(!scene.live().contains("ask something"), "{}", scene.live());
}

#[test]
fn screen_reader_mode_does_not_repeat_the_typed_line() {
    let mut scene = Scene::with(|options| options.accessible = true);
    scene.send("what is this").replies();
    assert_eq!(scene.sent(), ["what is this"]);
    scene.event(Event::State(SessionState::Active)).appended("what is this");
    assert!(!scene.said().contains("what is this"), "{}", scene.said());
    scene.send("and that").ends(complete(), &[]);
}

#[test]
fn message_typed_in_an_ended_elf_view_goes_to_the_parent_session() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 2);
    let mut elf = SessionView::new(SessionId::new("elf"), Epoch(1), Some(SessionId::new("s1")));
    (elf.seq, elf.info) = (1, info());
    scene.input(Input::Snapshot(Box::new(elf.clone())));
    scene.view = elf;
    scene.event(Event::State(SessionState::Closed)).send("and now?");
    assert_eq!(scene.sent(), [""; 0]);
    assert!(!scene.said().contains("Session closed"), "{}", scene.said());
    scene.another("s1", 1, 2);
    assert_eq!(scene.sent(), ["and now?"]);
}

#[test]
fn line_with_an_unknown_command_does_not_stand_before_the_next_line() {
    let mut scene = Scene::with(|options| options.accessible = true);
    for line in ["/frobnicate", "/ps", "/status please"] {
        scene.send(line);
        assert_eq!(scene.written(), "", "{line}");
    }
    assert!(scene.said().contains("Unknown command /ps"), "{}", scene.said());
    scene.send("hello");
    assert_eq!(scene.sent(), ["hello"]);
}

//! Commands behind a slash.

use super::*;

#[test]
fn a_model_is_chosen_from_a_list_by_name_or_by_number() {
    let mut scene = Scene::new();
    scene.slow().send("/model");
    insta::assert_snapshot!(scene.live(), @r"

    Choose the model › ▏
        auto             the router chooses
        anthropic/opus   200k
    › • anthropic/haiku  200k
    Enter select · Esc close · asking the providers …

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    assert_eq!(scene.requests(), [Request::Models { ask: true }]);
    scene.replies();
    insta::assert_snapshot!(scene.live(), @r"

    Choose the model › ▏
        auto             the router chooses
        anthropic/opus   200k
    › • anthropic/haiku  200k
        ollama/qwen      200k
    Enter select · Esc close · type to narrow

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.size = Size::new(40, 12);
    insta::assert_snapshot!(scene.live(), @r"

    Choose the model › ▏
        auto             the router chooses
        anthropic/opus   200k
    › • anthropic/haiku  200k
        ollama/qwen      200k
    Enter select · Esc close · type to narr…

    auto mode · anthropic/haiku · main
    ");
    scene.is_slow = false;
    scene.write("qw").keys("enter");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Model("ollama/qwen".to_owned()))));
    scene.send("/model ollama/qwen");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Model("ollama/qwen".to_owned()))));
    scene.send("/model 3");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Model("ollama/qwen".to_owned()))));
    scene.send("/model gpt");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Model("gpt".to_owned()))));
}

#[test]
fn late_model_list_does_not_move_the_selection_or_enter_other_lists() {
    let mut scene = Scene::new();
    scene.slow().send("/model").keys("up").replies();
    assert!(
        scene.live().contains("› anthropic/opus") || scene.live().contains("›   anthropic/opus")
    );
    scene.keys("esc").send("/model").keys("esc").send("/theme").replies();
    assert!(!scene.live().contains("qwen"), "{}", scene.live());
}

#[test]
fn home_and_end_on_an_empty_line_scroll_the_conversation() {
    let mut scene = Scene::new();
    scene.keys("home end");
    assert_eq!(scene.took(), [Effect::Scroll(isize::MAX), Effect::Scroll(-isize::MAX)]);
    scene.write("x").keys("home end");
    assert!(!scene.took().iter().any(|effect| matches!(effect, Effect::Scroll(_))));
    scene.input(Input::Wheel(3));
    assert!(scene.took().contains(&Effect::Scroll(3)));
}

#[test]
fn model_of_the_session_is_pinned_and_unpinned_without_a_switch() {
    let mut scene = Scene::new();
    scene.send("/model opus");
    assert_eq!(scene.told(), [Request::Pin { arm: Some(arm("opus")) }]);
    assert!(scene.wait(5_000).live().contains("anthropic/opus · main"));
    scene.send("/model auto");
    assert_eq!(scene.told(), [Request::Pin { arm: None }]);
    scene.send("/model 1").effects.clear();
    scene.send("/model").write("auto").keys("enter");
    assert_eq!(scene.told(), [Request::Pin { arm: None }]);
}

#[test]
fn compact_command_requests_compaction_after_the_turn() {
    let mut scene = Scene::new();
    scene.send("/compact the parser");
    let focus = "the parser".to_owned();
    assert_eq!(scene.told(), [Request::Compact { focus }]);
    scene.running("go").send("/compact");
    assert_eq!(scene.told(), [], "not in a turn");
    assert!(scene.live().contains("Turn running"));
    scene.ends(complete(), &[]);
    assert_eq!(scene.told(), [Request::Compact { focus: String::new() }], "but after it");
}

#[test]
fn compaction_summary_can_be_shown_edited_and_undone() {
    let mut scene = Scene::new();
    scene.send("/compact show");
    assert_eq!(scene.told(), []);
    let said = scene.said();
    assert!(said.contains("about Summary"), "{said}");
    scene.send("/compact edit").write(" and tabs").keys("enter");
    let summary = "about Summary and tabs".to_owned();
    assert_eq!(scene.told(), [Request::EditSummary { summary }]);
    scene.send("/compact undo");
    assert_eq!(scene.told(), [Request::UndoCompaction]);
}

#[test]
fn init_command_is_sent_as_a_prompt() {
    let mut scene = Scene::new();
    scene.send("/init the release steps");
    let told = scene.told();
    let [Request::Send { content }] = &told[..] else { panic!("{told:?}") };
    let [Content::Text(text)] = &content[..] else { panic!("{content:?}") };
    assert_eq!(text.text, "/init the release steps", "what it stands for is the host's to know");
    scene.send("/init");
    assert_eq!(scene.told(), [], "not in a turn");
}

#[test]
fn ended_turn_can_be_rated_good_or_bad() {
    let mut scene = Scene::new();
    scene.send("/good");
    assert!(scene.live().contains("No answer to rate yet"));
    scene.running("go").send("/good");
    assert_eq!(scene.told(), []);
    scene.ends(complete(), &[]).effects.clear();
    scene.send("/good").send("/bad");
    assert_eq!(scene.told(), [Request::Rate { good: true }, Request::Rate { good: false }]);
}

#[test]
fn route_and_usage_commands_show_the_choice_of_model_and_its_cost() {
    let mut scene = Scene::new();
    scene.send("/route");
    assert!(scene.live().contains("No turn has been routed yet"));
    scene.running("go").event(Event::Routed(Box::new(Routing {
        kind: "debug".to_owned(),
        complexity: 70,
        decided_by: "heuristic".to_owned(),
        strategy: "cascade".to_owned(),
        arms: vec![arm("haiku")],
        why: "it is right often enough".to_owned(),
        candidates: vec!["anthropic/haiku 0.81".to_owned(), "anthropic/opus 0.93".to_owned()],
        seed: 7,
    })));
    let (arm, turn) = (arm("haiku"), 12_400);
    scene.event(Event::Cost {
        arm,
        call_micro_usd: Some(12_400),
        turn_micro_usd: turn,
        session_micro_usd: 340_000,
        estimated: false,
    });
    assert!(scene.wait(5_000).live().contains("$0.012 of $0.340"));
    scene.ends(complete(), &[]).look();
    scene.finished.clear();
    scene.send("/route").send("/usage");
    insta::assert_snapshot!(scene.said(), @r"
      task           debug, difficulty 70 of 100, judged by wording
      strategy       cascade: anthropic/haiku
      because        it is right often enough
        anthropic/haiku 0.81
        anthropic/opus 0.93

    Usage
      turn           10k in, 9.0k of it cached (90%), 200 out, $0.012
      session        10k in, 9.0k of it cached (90%), 200 out, $0.340
      total          10k tokens in 1 turn
      context        0 of 200k tokens (0%)
      model          anthropic/haiku: 1 call, $0.012
    ");
}

#[test]
fn model_and_session_do_not_change_while_a_turn_runs() {
    let mut scene = Scene::new();
    scene.running("go").send("/model 1").send("/clear").keys("ctrl+x");
    let is_switch = |request: &Request| matches!(request, Request::Switch(_));
    assert!(!scene.requests().iter().any(is_switch));
    assert!(scene.live().contains("Turn running"));
}

#[test]
fn command_queued_during_a_turn_runs_before_messages_typed_later() {
    let chosen = Request::Switch(Switch::Model("ollama/qwen".to_owned()));
    let mut scene = Scene::new();
    scene.running("go").send("/model qwen");
    assert!(scene.live().contains("Queued until it ends"), "{}", scene.live());
    scene.send("and now this");
    assert_eq!(orders(&mut scene), []);
    let (outcome, usage) = (complete(), Usage::default());
    let undelivered = Vec::new();
    scene.event(Event::TurnEnded { outcome, rounds: 1, usage, undelivered, answer: None });
    assert_eq!(orders(&mut scene), [], "the session does not rest yet");
    scene.event(Event::State(SessionState::Idle));
    assert_eq!(orders(&mut scene), [chosen]);
    scene.another("s1", 2, 2);
    assert_eq!(orders(&mut scene), [sent("and now this")], "to the model that was chosen");
}

/// What changes the session, or is sent to it.
fn orders(scene: &mut Scene) -> Vec<Request> {
    let is_order = |request: &Request| {
        matches!(request, Request::Switch(_) | Request::Send { .. } | Request::Cancel)
    };
    scene.requests().into_iter().filter(is_order).collect()
}

fn sent(text: &str) -> Request {
    Request::Send { content: vec![Content::from_text(text)] }
}

#[test]
fn commands_queued_during_a_turn_run_in_order() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 2).running("go");
    scene.send("/incognito").send("/incognito").send("/model qwen").send("a secret");
    assert_eq!(orders(&mut scene), []);
    scene.ends(complete(), &[]);
    assert_eq!(orders(&mut scene), [Request::Switch(Switch::Incognito(true))], "once");
    scene.another("s2", 2, 0);
    assert_eq!(orders(&mut scene), [Request::Switch(Switch::Model("ollama/qwen".to_owned()))]);
    scene.another("s2", 3, 0);
    assert_eq!(orders(&mut scene), [sent("a secret")], "only to where all of it leads");
    assert!(!scene.said().contains("not run"), "{}", scene.said());
}

#[test]
fn first_esc_clears_the_command_queue_and_second_esc_stops_the_turn() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 2).running("go").send("/incognito").send("/clear");
    assert!(scene.live().contains("press Esc to remove"), "{}", scene.live());
    scene.send("a secret").keys("esc");
    assert_eq!(orders(&mut scene), [], "the turn goes on");
    let said = scene.said();
    assert!(said.contains("Removed from the queue and not run: /incognito, /clear"), "{said}");
    scene.keys("esc");
    assert_eq!(orders(&mut scene), [Request::Cancel]);
    scene.ends(Outcome::Cancelled, &[]);
    assert_eq!(orders(&mut scene), [], "what was written behind them waits for the person");
    scene.keys("enter");
    assert_eq!(orders(&mut scene), [sent("a secret")]);
}

#[test]
fn ctrl_c_stops_the_turn_and_clears_the_command_queue() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 2).running("go").send("/clear").keys("ctrl+c");
    assert_eq!(orders(&mut scene), [Request::Cancel]);
    assert!(scene.said().contains("not run: /clear"), "{}", scene.said());
    scene.ends(Outcome::Cancelled, &[]);
    assert_eq!(orders(&mut scene), []);
}

#[test]
fn dropped_queued_commands_are_named_and_hold_later_messages() {
    let lost: [fn(&mut Scene); 3] = [
        |scene| {
            scene.input(Input::Disconnected { returns: true }).another("s1", 2, 2);
        },
        |scene| {
            scene.send("/elfs smith").another("elf", 2, 0);
        },
        |scene| {
            scene.slow().ends(complete(), &[]).refuses();
            let switch = orders(scene);
            assert_eq!(switch, [Request::Switch(Switch::Incognito(true))]);
        },
    ];
    for (place, lose) in lost.into_iter().enumerate() {
        let mut scene = Scene::new();
        scene.another("s1", 1, 2).running("go");
        scene.send("/incognito").send("/model qwen").send("a secret").took();
        lose(&mut scene);
        let said = scene.said();
        assert!(said.contains("not run: ") && said.contains("/model"), "{place}: {said}");
        scene.replies();
        assert_eq!(orders(&mut scene), [], "{place}");
        scene.keys("enter");
        assert_eq!(orders(&mut scene), [sent("a secret")], "{place}");
    }
}

#[test]
fn command_queue_is_limited() {
    let mut scene = Scene::new();
    scene.another("s1", 1, 2).running("go");
    for _ in 0..4 {
        scene.send("/incognito").send("/fork");
    }
    assert!(!scene.said().contains("not run"), "{}", scene.said());
    scene.send("/clear");
    assert!(scene.said().contains("too many commands are queued: /clear"), "{}", scene.said());
}

#[test]
fn redo_is_not_queued_during_a_turn() {
    let mut scene = Scene::new();
    scene.running("go").send("/redo").ends(complete(), &[]);
    assert!(!scene.requests().contains(&Request::Redo));
}

#[test]
fn session_commands_send_their_switch_request() {
    let expected = [
        ("/clear", Request::Switch(Switch::New)),
        ("/new", Request::Switch(Switch::New)),
        ("/fork", Request::Fork),
        ("/redo", Request::Redo),
        ("/incognito", Request::Switch(Switch::Incognito(true))),
        ("/resume last", Request::Switch(Switch::Stored(None))),
        ("/resume s1", Request::Switch(Switch::Stored(Some("s1".to_owned())))),
        ("/provider ollama", Request::Switch(Switch::Provider("ollama".to_owned()))),
    ];
    for (line, again) in expected {
        let mut scene = Scene::new();
        scene.write("kept").keys("ctrl+u").send(line);
        assert_eq!(scene.next(), Some(again), "{line}");
    }
}

#[test]
fn resume_list_opens_the_selected_session() {
    let mut scene = Scene::new();
    scene.send("/resume").write("docs").keys("enter");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Stored(Some("s1".to_owned())))));
}

#[test]
fn rewind_asks_whether_files_or_conversation_go_back() {
    let mut scene = Scene::new();
    scene.send("/rewind");
    assert!(scene.live().contains("Fix the parser"));
    scene.keys("enter down enter");
    let again = Request::Rewind { turns: 1, files: false, conversation: true };
    assert_eq!(scene.next(), Some(again));
    scene.another("s1", 2, 0);
    assert_eq!(scene.written(), "Fix the parser", "to be asked in another way");
}

#[test]
fn rewind_elf_command_names_the_elf() {
    let mut scene = Scene::new();
    scene.send("/rewind elf smith");
    assert_eq!(scene.next(), Some(Request::RewindElf { name: "smith".to_owned() }));
}

#[test]
fn context_usage_is_updated_after_redo() {
    let mut scene = Scene::new();
    scene.send("/redo");
    let mut view = gnoma_core::protocol::SessionView::new(SessionId::new("s1"), Epoch(2), None);
    (view.seq, view.info) = (1, info());
    view.info.last_call = Usage { input: 12_000, ..Usage::default() };
    scene.input(Input::Snapshot(Box::new(view)));
    assert!(scene.send("/context").said().contains("12k"), "{}", scene.said());
}

#[test]
fn clear_of_a_long_conversation_needs_confirmation() {
    let mut scene = Scene::new();
    for _ in 0..6 {
        scene.running("go").ends(complete(), &[]);
    }
    scene.send("/clear");
    assert!(scene.live().contains("Start a new conversation? This one has 6 turns (y/n)"));
    scene.keys("x");
    assert!(scene.live().contains("Type y or n") && scene.live().contains("6 turns (y/n)"));
    scene.keys("n").send("/clear").effects.clear();
    scene.keys("y");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::New)));
}

#[test]
fn config_list_shows_origins_and_changes_settings() {
    let mut scene = Scene::new();
    scene.send("/config");
    insta::assert_snapshot!(scene.live(), @r"

    Settings › ▏
    ›   provider.timeout_s  60  (built in)
        tui.vim             false  (~/.config/gnoma/config.toml)
    Enter select · Esc close · type to narrow

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.keys("enter ctrl+u").send("90");
    assert_eq!(scene.logged(), ["set provider.timeout_s = 90"]);
    for line in ["/config vim", "/config get vim"] {
        scene.send(line).keys("enter up enter");
        assert_eq!(scene.logged(), ["set tui.vim = true"], "{line}");
    }
    scene.send("/config set tui.theme mono");
    assert_eq!(scene.logged(), ["set tui.theme = mono"]);
}

#[test]
fn theme_command_applies_at_once_and_is_saved() {
    let mut scene = Scene::new();
    scene.send("/theme forest");
    assert!(scene.took().contains(&Effect::Theme("forest".to_owned())));
    assert_eq!(scene.logged(), ["set tui.theme = forest"]);
    scene.send("/theme").write("mono").keys("enter");
    assert!(scene.took().contains(&Effect::Theme("mono".to_owned())));
}

#[test]
fn vim_keys_are_switched_on() {
    let mut scene = Scene::new();
    scene.send("/vim").write("word").keys("esc x");
    assert_eq!(scene.written(), "wor");
    assert_eq!(scene.logged(), ["set tui.vim = true"]);
}

#[test]
fn why_usage_and_context_commands_show_known_facts() {
    let mut scene = Scene::new();
    scene.running("go");
    let arm = ModelRef { provider: "anthropic".to_owned(), model: "opus".to_owned() };
    scene.event(Event::RoundStarted { round: 1, arm, why: "it is the strongest".to_owned() });
    let round = Usage { input: 1_000, cache_read: 9_000, output: 200, ..Usage::default() };
    scene.event(Event::Usage { round, turn: round }).ends(complete(), &[]);
    scene.look();
    scene.finished.clear();
    scene.send("/status").send("/usage").send("/why").send("/context");
    insta::assert_snapshot!(scene.said(), @r"
    Session
      version        0.1.0
      model          anthropic/opus
      reason         it is the strongest
      mode           auto
      folder         ~/src/gnoma
      branch         main
      incognito      off
      context        10k of 200k tokens (5%)
      turns          1

    Usage
      turn           10k in, 9.0k of it cached (90%), 200 out
      session        10k in, 9.0k of it cached (90%), 200 out
      total          10k tokens in 1 turn
      context        10k of 200k tokens (5%)

    Decisions
      called anthropic/opus: it is the strongest

      about Routing

    Context window
      █▓■▪··············································
      used           10k of 200k tokens (5%)
      █ system       500 (<1%)
      ▓ tools        2.0k (1%)
      ▒ instructions 0
      ■ conversation 3.2k (1%)
      ▪ tool results 4.5k (2%)
      · free         189k (94%)
      last call      1.0k new, 9.0k cached, 200 out
    ");
}

#[test]
fn help_and_keys_list_every_command_and_key() {
    let mut scene = Scene::new();
    scene.keys("f1");
    let help = scene.said();
    for name in ["/why", "/diff", "/theme", "/rewind", "@path", "Shift+Tab"] {
        assert!(help.contains(name), "{name} is missing");
    }
    scene.send("/keys");
    assert!(scene.said().contains("history_search"));
}

#[test]
fn copy_export_shell_diff_and_exit_commands_have_their_effects() {
    let mut scene = Scene::new();
    scene.send("/copy");
    assert!(scene.live().contains("No answer to copy yet"));
    scene.running("go").event(Event::Text { text: "The answer.".to_owned() });
    let answer = Message::assistant(vec![Content::from_text("The answer.")], None, None).unwrap();
    scene.event(Event::Appended(Arc::new(answer))).ends(complete(), &[]).effects.clear();
    scene.send("/copy");
    assert!(scene.took().contains(&Effect::Copy("The answer.".to_owned())));
    scene.send("/export talk.md");
    assert_eq!(scene.logged(), ["export talk.md"]);
    scene.send("/shell htop");
    assert!(scene.took().contains(&Effect::HandOver(Some("htop".to_owned()))));
    scene.send("/diff");
    assert!(scene.said().contains("new"));
    scene.keys("ctrl+z");
    assert!(scene.took().contains(&Effect::Suspend));
    scene.send("/exit");
    assert_eq!(scene.took().last(), Some(&Effect::Quit));
}

#[test]
fn invalid_command_arguments_are_reported_and_open_no_list() {
    for line in ["/rewind many", "/theme nonsense", "/config set tui.vim", "/why x"] {
        let mut scene = Scene::new();
        scene.send(line).replies();
        scene.write("typed next");
        assert_eq!(scene.written(), "typed next", "{line}");
    }
    let mut scene = Scene::new();
    scene.send("/config set tui.theme nonsense");
    assert!(scene.live().contains("Unknown theme `nonsense`"), "{}", scene.live());
    assert_eq!(scene.requests(), []);
}

#[test]
fn shell_line_with_an_interactive_program_gets_the_terminal() {
    let mut scene = Scene::new();
    scene.send("!vim notes.txt");
    assert!(scene.took().contains(&Effect::HandOver(Some("vim notes.txt".to_owned()))));
}

#[test]
fn resume_of_a_session_open_elsewhere_offers_a_fork() {
    let mut scene = Scene::new();
    scene.slow().send("/resume last");
    let ViewRequest { request, purpose } = scene.late.pop_back().expect("something was asked");
    assert_eq!(request, Request::Switch(Switch::Stored(None)));
    let held = RequestError::new(RequestErrorKind::Held, "session `s9` is open in process 7");
    scene.input(Input::Reply { purpose, result: Err(held) });
    assert!(scene.live().contains("is open in process 7. Continue in a copy? (y/n)"));
    scene.effects.clear();
    scene.keys("y");
    assert_eq!(scene.next(), Some(Request::Switch(Switch::Copy(None))));
}

#[test]
fn command_that_takes_no_arguments_refuses_them() {
    let mut scene = Scene::new();
    scene.send("/status now");
    assert!(scene.live().contains("/status takes no arguments"), "{}", scene.live());
    assert_eq!(scene.written(), "/status now", "to be corrected");
}

#[test]
fn login_enters_another_key_for_a_provider_and_uses_it() {
    for (line, question) in [("/login mistral", "key for mistral"), ("/providers", "Add or repair")]
    {
        let mut scene = Scene::new();
        scene.event(Event::Info(Box::new(info()))).send(line);
        assert!(scene.live().contains(question), "{line}: {}", scene.live());
        if line == "/providers" {
            scene.write("mistral").keys("enter");
        }
        scene.input(Input::Paste("made-up-key\n".to_owned())).keys("enter");
        assert!(scene.live().contains("mistral works: 12 models"), "{}", scene.live());
        scene.keys("enter");
        assert_eq!(scene.logged(), ["test mistral", "keep mistral made-up-key"]);
        let switch = Switch::Provider("mistral".to_owned());
        assert_eq!(scene.next(), Some(Request::Switch(switch)));
    }
}

#[test]
fn login_can_be_left_and_removes_providers() {
    let mut scene = Scene::new();
    scene.event(Event::Info(Box::new(info()))).send("/login").keys("esc").write("hello");
    assert_eq!(scene.written(), "hello");
    assert!(!scene.said().contains("No provider set up"), "{}", scene.said());
    scene.keys("ctrl+u").effects.clear();
    scene.send("/login remove ollama");
    let removal = Request::RemoveProvider { provider: "ollama".to_owned() };
    assert_eq!(scene.requests(), std::slice::from_ref(&removal));
    scene.send("/login remove").keys("enter");
    assert!(scene.requests().contains(&removal));
    scene.send("/login nosuch");
    assert!(scene.live().contains("Unknown provider `nosuch`"), "{}", scene.live());
}

#[test]
fn model_of_a_provider_without_api_key_asks_for_the_key_first() {
    let mut scene = Scene::new();
    scene.event(Event::Info(Box::new(info()))).slow().send("/model openai/gpt-5");
    let ViewRequest { purpose, .. } = scene.late.pop_back().expect("the models are asked for");
    scene.input(Input::Reply { purpose, result: Ok(Reply::Choices(models())) });
    let ViewRequest { purpose, .. } = scene.late.pop_back().expect("the session is to change");
    let cause = "no key for `openai`. Do one of these:\n  export OPENAI_API_KEY=…";
    let error = RequestError::new(RequestErrorKind::Invalid, cause);
    scene.input(Input::Reply { purpose, result: Err(error) });
    scene.is_slow = false;
    scene.replies();
    assert!(scene.live().contains("key for openai"), "{}", scene.live());
    assert!(!scene.said().contains("export"), "{}", scene.said());
    scene.input(Input::Paste("made-up-key\n".to_owned())).keys("enter enter");
    let switch = Switch::Model("openai/gpt-5".to_owned());
    assert_eq!(scene.next(), Some(Request::Switch(switch)));
}

#[test]
fn hints_disappear_when_their_cause_ends() {
    let mut scene = Scene::new();
    scene.send("/compact");
    assert!(scene.live().contains("Compacting"));
    scene.event(Event::Compacted { summary: "short".to_owned(), messages: 3 });
    assert!(!scene.live().contains("Compacting the"), "{}", scene.live());
    scene.running("go").keys("ctrl+c");
    assert!(scene.live().contains("Stopping the turn"));
    scene.ends(Outcome::Cancelled, &[]);
    assert!(!scene.live().contains("Stopping the turn"), "{}", scene.live());
    scene.keys("shift+tab");
    assert!(scene.live().contains("mode "));
    scene.running("go").asks("c1", "ls");
    assert!(!scene.live().contains("asks before"), "{}", scene.live());
}

#[test]
fn tasks_run_by_name_from_a_list_and_resume_by_choice() {
    let run = |line: &str| Request::Task(TaskRequest::Run { line: line.to_owned() });
    let mut scene = Scene::new();
    scene.send("/task release v1.2.0");
    assert_eq!(scene.requests(), [run("release v1.2.0")]);
    scene.send("/task").keys("down enter");
    assert_eq!(scene.next(), Some(run("standup")));
    scene.send("/tasks").keys("enter");
    assert_eq!(scene.written(), "/task release ");
    scene.keys("ctrl+u").send("/task resume again");
    let choice = Some(TaskResumeChoice::Again);
    let resume = Request::Task(TaskRequest::Resume { run: String::new(), choice });
    assert_eq!(scene.next(), Some(resume));
    scene.send("/task resume release skip");
    let choice = Some(TaskResumeChoice::Skip);
    let resume = Request::Task(TaskRequest::Resume { run: "release".to_owned(), choice });
    assert_eq!(scene.next(), Some(resume));
    scene.send("/task resume stronger");
    let choice = Some(TaskResumeChoice::Stronger);
    let resume = Request::Task(TaskRequest::Resume { run: String::new(), choice });
    assert_eq!(scene.next(), Some(resume));
    scene.send("/task resume it maybe");
    assert!(scene.live().contains("Type `/task resume`"), "{}", scene.live());
    scene.send("/task edit release");
    assert!(scene.live().contains("`gnoma task edit release` does that"), "{}", scene.live());
}

#[test]
fn words_behind_a_task_are_completed_with_tab() {
    let mut scene = Scene::new();
    scene.write("/task rel").keys("tab");
    assert_eq!(scene.written(), "/task release ");
    scene.write("mi").keys("tab");
    assert_eq!(scene.written(), "/task release minor ");
    scene.keys("tab");
    assert!(scene.live().contains("There is nothing to complete here"), "{}", scene.live());
    scene.keys("ctrl+u").write("/task release ").keys("tab down down enter");
    assert_eq!(scene.written(), "/task release \"a b\" ");
}

#[test]
fn task_of_the_session_is_saved_after_a_yes() {
    let mut scene = Scene::new();
    scene.send("/task save mine").effects.clear();
    assert!(scene.live().contains("Save the task mine?"), "{}", scene.live());
    scene.keys("n");
    assert!(scene.requests().is_empty());
    scene.send("/task save mine").effects.clear();
    scene.keys("y");
    let save = Request::Task(TaskRequest::Save { name: "mine".to_owned() });
    assert_eq!(scene.next(), Some(save));
}

#[test]
fn log_says_where_the_debug_log_is_or_how_to_write_one() {
    let mut scene = Scene::new();
    scene.send("/log");
    let text = format!("{}{}", scene.said(), scene.live());
    assert!(text.contains("There is no debug log") && text.contains("GNOMA_LOG=debug"), "{text}");
    let mut scene = Scene::with(|options| options.debug_log = Some("/tmp/a.log".to_owned()));
    scene.send("/log");
    let text = format!("{}{}", scene.said(), scene.live());
    assert!(text.contains("The debug log is `/tmp/a.log`"), "{text}");
}

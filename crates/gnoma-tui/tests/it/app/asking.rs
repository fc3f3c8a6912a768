//! Questions for permission, and modes.

use super::*;

#[test]
fn permission_question_shows_the_whole_command_and_takes_every_answer() {
    let answers = [
        ("y", PermissionAnswer::Allow),
        ("enter", PermissionAnswer::Allow),
        ("a", PermissionAnswer::Always),
        ("down enter", PermissionAnswer::Always),
        ("n", PermissionAnswer::Deny { reason: String::new() }),
    ];
    for (keys, expected) in answers {
        let mut scene = Scene::new();
        scene.running("clean up").wait(5_000).asks("c1", "rm -rf build && make");
        if keys == "y" {
            insta::assert_snapshot!(scene.live(), @r"
            ? Run this command?
              rm -rf build && make

              in ~/src/gnoma
              reason: `rm -rf build` removes files

            › y  yes, once
              a  always: bash(rm -rf build)
                 for this session · s: other scope · e: edit the rule
              n  no
              r  no, and tell the model why

            ? waiting for you · Esc stops · auto mode · anthropic/haiku · main · ~/src/gnoma
            ");
            scene.size = Size::new(40, 12);
            insta::assert_snapshot!(scene.live(), @r"
            ? Run this command?
              rm -rf build && make
              in ~/src/gnoma
              reason: `rm -rf build` removes files
            › y  yes, once
              a  always: bash(rm -rf build)
                 for this session
                 s: other scope · e: edit the rule
              n  no
              r  no, and tell the model why
            ? waiting for you · auto mode
            ");
        }
        scene.keys(keys);
        let call = CallId::new("c1");
        assert_eq!(scene.told(), [Request::Answer { call, answer: expected }], "{keys}");
        assert!(!scene.live().contains("Run this command?"));
    }
}

#[test]
fn denial_reason_is_sent_to_the_model() {
    let mut scene = Scene::new();
    scene
        .running("clean up")
        .wait(5_000)
        .asks("c1", "rm -rf build")
        .keys("r")
        .write("use make clean");
    insta::assert_snapshot!(scene.live(), @r"
    ? Bash rm -rf build

    Tell the model why
    › use make clean▏
    Enter denies and sends this to the model · Esc back

    ? waiting for you · Esc stops · auto mode · anthropic/haiku · main · ~/src/gnoma
    ");
    scene.keys("enter");
    let answer = PermissionAnswer::Deny { reason: "use make clean".to_owned() };
    assert_eq!(scene.told(), [Request::Answer { call: CallId::new("c1"), answer }]);
}

#[test]
fn denial_reason_of_an_ended_question_stays_in_the_editor() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build").keys("r").write("because");
    scene.ends(Outcome::Cancelled, &[]);
    assert_eq!(scene.written(), "because");
}

#[test]
fn permission_questions_queue_and_wait_until_typing_pauses() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).write("please say");
    scene.asks("c1", "rm one").asks("c2", "rm two").write(" anything");
    assert_eq!(scene.told(), [], "what is being written answers nothing");
    assert!(scene.live().contains("? Bash needs your approval"));
    assert_eq!(scene.written(), "please say anything");
    scene.wait(300);
    let tick = scene.state.next_tick();
    assert_eq!(tick, Some(scene.now + Duration::from_millis(400)), "then it is shown");
    scene.wait(400);
    assert!(scene.live().contains("1 more waiting"));
    scene.keys("y n");
    let calls: Vec<_> = scene
        .told()
        .into_iter()
        .map(|command| match command {
            Request::Answer { call, .. } => call.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(calls, ["c1", "c2"]);
    assert_eq!(scene.written(), "please say anything");
}

#[test]
fn typing_pause_does_not_answer_an_unseen_permission_question() {
    let mut scene = Scene::new();
    scene.running("clean up").write("make it").wait(10_000).asks("c1", "rm one").wait(100);
    scene.write(" all").wait(200).write("a");
    assert_eq!(scene.told(), []);
    assert_eq!(scene.written(), "make it alla");
}

#[test]
fn answer_that_the_session_refused_is_asked_for_again() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(10_000).asks("c1", "rm one").slow().keys("y").refuses();
    assert!(scene.live().contains("Run this command?"));
    scene.keys("esc").refuses().effects.clear();
    scene.keys("esc");
    assert_eq!(scene.told(), [Request::Cancel]);
}

#[test]
fn ctrl_c_at_a_permission_question_stops_the_turn() {
    let mut scene = Scene::new();
    scene.running("clean up").write("draft").wait(10_000).asks("c1", "rm one").wait(1_000);
    scene.keys("ctrl+c");
    assert_eq!(scene.told(), [Request::Cancel]);
    assert_eq!(scene.written(), "draft");
}

#[test]
fn permission_question_answered_in_another_window_disappears() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build");
    let (call, reason) = (CallId::new("c1"), "another window".to_owned());
    scene.event(Event::PermissionDecided { call, allowed: true, reason });
    assert!(!scene.live().contains("Run this command?"));
}

#[test]
fn an_edit_shows_its_diff() {
    let mut scene = Scene::new();
    scene.running("rename").wait(5_000);
    let arguments = RawJson::parse(r#"{"path":"src/x.rs","content":"new"}"#).unwrap();
    let preview = "--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1 +1 @@\n-let old = 1;\n+let new = 1;\n";
    scene.event(Event::PermissionAsked {
        call: ToolCall::new(CallId::new("c1"), "fs.write", arguments),
        reason: "the mode asks for edits".to_owned(),
        preview: Some(preview.to_owned()),
        always: None,
        inquiry: None,
        during: None,
        parts: Vec::new(),
        notable: Vec::new(),
        dangers: Vec::new(),
    });
    let live = scene.live();
    assert!(
        live.contains("src/x.rs") && live.contains("let old = 1;") && live.contains("let new = 1;")
    );
    scene.keys("a");
    assert_eq!(scene.told(), [], "no rule is offered");
}

#[test]
fn shift_tab_cycles_permission_modes_and_bypass_needs_confirmation() {
    let mut scene = Scene::new();
    let mut modes = Vec::new();
    for _ in 0..4 {
        scene.keys("shift+tab");
        modes.extend(scene.told().into_iter().map(|command| match command {
            Request::SetMode { mode } => mode.name(),
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(modes, ["plan", "default", "accept_edits", "auto"]);
    scene.send("/permission bypass");
    assert!(scene.live().contains("asks for almost nothing"));
    scene.send("yes");
    assert_eq!(scene.told(), []);
    scene.send("/permission bypass").send("bypass");
    assert_eq!(scene.told(), [Request::SetMode { mode: PermissionMode::Bypass }]);
    scene.keys("shift+tab").effects.clear();
    scene.send("/perm bypass");
    assert_eq!(scene.told(), [Request::SetMode { mode: PermissionMode::Bypass }]);
    scene.send("/permission sometimes");
    assert!(scene.live().contains("unknown permission mode"));
    scene.send("/permission Accept-Edits");
    assert_eq!(scene.told(), [Request::SetMode { mode: PermissionMode::AcceptEdits }]);
}

#[test]
fn always_rule_is_saved_in_the_chosen_scope() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build").keys("s");
    insta::assert_snapshot!(scene.live(), @r"
    ? Run this command?
      rm -rf build

      in ~/src/gnoma
      reason: `rm -rf build` removes files

    › y  yes, once
      a  always: bash(rm -rf build)
         everywhere, in ~/.config/gnoma/config.toml
         s: other scope · e: edit the rule
      n  no
      r  no, and tell the model why

    this project is not trusted · ? waiting for you · auto mode · anthropic/haiku
    ");
    scene.keys("a");
    let (call, rule) = (CallId::new("c1"), "bash(rm -rf build)".to_owned());
    let answer = PermissionAnswer::Rule { rule, scope: Scope::User };
    assert_eq!(scene.told(), [Request::Answer { call, answer }]);
    assert_eq!(scene.logged(), ["keep bash(rm -rf build)"]);
    assert!(scene.live().contains("`bash(rm -rf build)` is kept"));
}

#[test]
fn always_scope_cycles_back_to_the_session() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build").keys("s s a");
    let call = CallId::new("c1");
    assert_eq!(scene.told(), [Request::Answer { call, answer: PermissionAnswer::Always }]);
}

#[test]
fn always_rule_can_be_edited_before_it_is_saved() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build").keys("e");
    insta::assert_snapshot!(scene.live(), @r"
    ? Bash rm -rf build

    Always allow for this session (Tab: other scope)
    › bash(rm -rf build)▏
    Enter allows this · Tab other scope · Esc back

    ? waiting for you · Esc stops · auto mode · anthropic/haiku · main · ~/src/gnoma
    ");
    scene.keys("backspace enter");
    assert!(scene.live().contains("`bash(rm -rf build` is no rule"));
    assert_eq!(scene.told(), [], "what is no rule answers nothing");
    scene.keys("ctrl+u").write("bash(rm *)").keys("tab");
    assert!(scene.live().contains("everywhere, in ~/.config/gnoma/config.toml"));
    scene.keys("enter");
    let answer = PermissionAnswer::Rule { rule: "bash(rm *)".to_owned(), scope: Scope::User };
    assert_eq!(scene.told(), [Request::Answer { call: CallId::new("c1"), answer }]);
    assert_eq!(scene.logged(), ["keep bash(rm *)"]);
}

#[test]
fn cancelled_rule_edit_answers_nothing() {
    let mut scene = Scene::new();
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build").keys("e x x esc");
    assert!(scene.live().contains("Run this command?") && scene.told().is_empty());
    scene.keys("e").ends(Outcome::Cancelled, &[]);
    assert!(!scene.live().contains("Always allow"));
    assert_eq!(scene.written(), "", "a rule is no message");
}

#[test]
fn permission_question_on_a_tiny_screen_shows_the_command() {
    let mut scene = Scene::new();
    scene.size = Size::new(20, 5);
    scene.running("clean up").wait(5_000).asks("c1", "rm -rf build");
    let seen = scene.live();
    assert!(seen.contains("rm -rf build") && seen.contains("y yes"), "{seen}");
}

#[test]
fn a_question_of_the_models_offers_its_answers_and_takes_others() {
    let arguments = RawJson::parse(r#"{"question":"Which database?"}"#).unwrap();
    let asked = Event::PermissionAsked {
        call: ToolCall::new(CallId::new("q1"), "ask", arguments),
        reason: "Which database?".to_owned(),
        preview: None,
        always: None,
        inquiry: Some(Inquiry { choices: vec!["SQLite".to_owned(), "Postgres".to_owned()] }),
        during: Some(CallId::new("c1")),
        parts: Vec::new(),
        notable: Vec::new(),
        dangers: Vec::new(),
    };
    let said = |text: &str| PermissionAnswer::Text { text: text.to_owned() };
    let none = || PermissionAnswer::Deny { reason: String::new() };
    let answers = [("2", said("Postgres")), ("enter", said("SQLite")), ("n", none())];
    for (keys, answer) in answers {
        let mut scene = Scene::new();
        scene.running("store it").wait(5_000).event(asked.clone());
        insta::allow_duplicates! {
            insta::assert_snapshot!(scene.live(), @r"
            ? The model asks
              Which database?

            › 1  SQLite
              2  Postgres
              r  write an answer
              n  no answer

            ? waiting for you · Esc stops · auto mode · anthropic/haiku · main · ~/src/gnoma
            ");
        }
        scene.keys("y a 9");
        assert_eq!(scene.told(), [], "nothing can be approved");
        scene.keys(keys);
        assert_eq!(scene.told(), [Request::Answer { call: CallId::new("q1"), answer }], "{keys}");
    }
    let mut scene = Scene::new();
    scene.running("store it").wait(5_000).event(asked).keys("r").write("a file").keys("enter");
    let answer = said("a file");
    assert_eq!(scene.told(), [Request::Answer { call: CallId::new("q1"), answer }]);
}

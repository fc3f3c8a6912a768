//! What is written: sent, steering, queued, completed, kept.

use super::*;

#[test]
fn completed_file_mentions_are_checked_when_the_message_is_sent() {
    let mut scene = Scene::new();
    scene.write("see @no").input(Input::Listing(vec!["notes.txt".to_owned()]));
    scene.keys("tab").write("and @nobody").keys("enter");
    assert!(scene.took().contains(&Effect::LookFor(vec!["notes.txt".to_owned()])));
    scene.input(Input::Missing(vec!["notes.txt".to_owned()]));
    assert!(scene.said().contains("`notes.txt` does not exist"));
}

#[test]
fn mention_that_looks_like_a_path_is_checked_without_completion() {
    let mut scene = Scene::new();
    let people = "@ana @types/node @property @pytest.fixture me@x.org @~/a.txt";
    scene.send(&format!("see @src/mian.rs, {people}"));
    assert!(scene.took().contains(&Effect::LookFor(vec!["src/mian.rs".to_owned()])));
}

#[test]
fn too_large_paste_is_refused_with_its_size() {
    let mut scene = Scene::new();
    scene.input(Input::PasteRefused(100 << 20));
    assert!(scene.said().contains("Paste too large: 100 MB, the limit is 4 MB"));
}

#[test]
fn a_prompt_begins_a_turn_that_is_shown_until_it_ends() {
    let mut scene = Scene::new();
    scene.send("what is this?");
    assert_eq!(scene.sent(), ["what is this?"]);
    scene.event(Event::State(SessionState::Active)).appended("what is this?");
    let arm = ModelRef { provider: "anthropic".to_owned(), model: "opus".to_owned() };
    scene.event(Event::RoundStarted { round: 1, arm, why: "it is the strongest".to_owned() });
    scene.wait(1_500);
    insta::assert_snapshot!(scene.live(), @r"
    ────────────────────────────────────────────────────────────────────────────────
    › ▏
    ◒ waiting for the model 1s · Esc stops · auto mode · anthropic/opus · main
    ");
    assert_eq!(scene.said().matches("what is this?").count(), 1, "it is shown once");
    scene.ends(complete(), &[]);
    assert!(!scene.live().contains("Esc stops"));
}

#[test]
fn steering_message_is_shown_until_the_model_gets_it() {
    let mut scene = Scene::new();
    scene.running("go").send("use tabs").send("and no macros");
    assert_eq!(scene.sent(), ["use tabs", "and no macros"]);
    insta::assert_snapshot!(scene.live(), @r"
    ↳ use tabs  (at the next step)
    ↳ and no macros  (at the next step)
    ────────────────────────────────────────────────────────────────────────────────
    › ▏
    ◐ working 0s · Esc stops · auto mode · anthropic/haiku · main · ~/src/gnoma
    ");
    scene.appended("use tabs");
    assert!(!scene.live().contains("↳ use tabs"));
    assert!(scene.said().contains("use tabs"));
    // The turn ends before the other is read: it is sent as the next prompt.
    scene.ends(complete(), &["and no macros"]);
    assert_eq!(scene.sent(), ["and no macros"]);
}

#[test]
fn queued_message_waits_for_the_turn_end_and_can_be_edited() {
    let mut scene = Scene::new();
    scene.running("go").write("second").keys("tab").write("third").keys("tab");
    assert_eq!(scene.sent(), [""; 0]);
    insta::assert_snapshot!(scene.live(), @r"
    ⋯ second  (queued)
    ⋯ third  (queued)
    ────────────────────────────────────────────────────────────────────────────────
    › ▏
    ◐ working 0s · Esc stops · auto mode · 2 queued · anthropic/haiku · main
    ");
    scene.keys("up").write(", changed").keys("tab");
    scene.ends(complete(), &[]);
    assert_eq!(scene.sent(), ["second"]);
    scene.event(Event::State(SessionState::Active)).appended("second").ends(complete(), &[]);
    assert_eq!(scene.sent(), ["third, changed"]);
}

#[test]
fn esc_stops_the_turn_and_preserves_everything_written() {
    let mut scene = Scene::new();
    scene.running("go").write("queued").keys("tab").send("steer").write("half a sen");
    scene.effects.clear();
    scene.keys("esc");
    assert_eq!(scene.told(), [Request::Cancel]);
    scene.keys("esc");
    assert_eq!(scene.told(), [], "once is enough");
    scene.ends(Outcome::Cancelled, &["steer"]);
    assert_eq!(scene.sent(), [""; 0], "nothing is sent by itself after a stop");
    let drafts = scene.state.unsent_drafts();
    let texts: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
    assert_eq!(texts, ["half a sen", "steer", "queued"]);
    scene.keys("ctrl+u enter");
    assert_eq!(scene.sent(), ["steer"], "Enter on nothing lets the queue go on");
}

#[test]
fn undelivered_message_returns_to_the_editor_after_a_stop() {
    let mut scene = Scene::new();
    scene.running("go").send("use tabs").keys("esc").ends(Outcome::Cancelled, &["use tabs"]);
    assert_eq!(scene.written(), "use tabs");
}

#[test]
fn messages_to_an_unresponsive_session_are_not_lost() {
    let mut scene = Scene::new();
    scene.slow().send("important");
    scene.took();
    scene.refuses().input(Input::Disconnected { returns: false });
    assert!(scene.state.unsent_drafts().iter().any(|draft| draft.text == "important"));
    scene.send("later");
    assert_eq!(scene.sent(), [""; 0]);
    assert_eq!(scene.state.unsent_drafts().len(), 3);
    scene.another("", 1, 0);
    scene.keys("enter");
    assert_eq!(scene.sent(), ["important"]);
}

#[test]
fn control_c_clears_then_stops_then_quits() {
    let mut scene = Scene::new();
    scene.running("go").write("not now").keys("ctrl+c");
    assert_eq!(scene.written(), "");
    scene.effects.clear();
    scene.keys("ctrl+c");
    assert_eq!(scene.told(), [Request::Cancel]);
    scene.ends(Outcome::Cancelled, &[]).wait(3_000).keys("ctrl+c");
    assert!(scene.live().contains("Press Ctrl+C again to quit"));
    scene.wait(3_000).keys("ctrl+c").effects.clear();
    scene.keys("ctrl+c");
    assert_eq!(scene.took().last(), Some(&Effect::Quit));
    scene.keys("up");
    assert_eq!(scene.written(), "not now");
}

#[test]
fn history_recall_restores_the_unsent_draft() {
    let mut scene = Scene::new();
    scene.write("new").keys("up");
    assert_eq!(scene.written(), "second prompt");
    scene.keys("up down down");
    assert_eq!(scene.written(), "new");
    scene.keys("up enter");
    assert_eq!(scene.sent(), ["second prompt"]);
    assert_eq!(scene.written(), "new", "what was put aside is there again");
}

#[test]
fn older_prompts_are_searched() {
    let mut scene = Scene::new();
    scene.keys("ctrl+r").write("prompt").keys("ctrl+r");
    insta::assert_snapshot!(scene.live(), @r"

    search › prompt▏
      first prompt
      Enter select · Ctrl+R older · Esc close

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.keys("enter");
    assert_eq!(scene.written(), "first prompt");
    scene.keys("ctrl+r").write("second").keys("esc");
    assert_eq!(scene.written(), "first prompt");
}

#[test]
fn files_are_completed_behind_an_at_sign() {
    let mut scene = Scene::new();
    scene.write("read @ma");
    assert!(scene.took().contains(&Effect::List));
    let files = ["Cargo.toml", "src/main.rs", "src/markdown.rs"].map(str::to_owned);
    scene.input(Input::Listing(files.into()));
    insta::assert_snapshot!(scene.live(), @r"

    › read @ma▏
    › src/main.rs
      src/markdown.rs

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.keys("down up tab");
    assert_eq!(scene.written(), "read @src/main.rs ");
    scene.write("@tom").keys("esc");
    assert!(!scene.live().contains("Cargo.toml"));
}

#[test]
fn commands_are_found_and_unknown_ones_stay_where_they_are() {
    let mut scene = Scene::new();
    scene.write("/mo");
    insta::assert_snapshot!(scene.live(), @r"

    › /mo▏
      /model        choose a model, or let the router choose
      /permission   choose the permission mode
      /memory       list the instructions that models are sent, and change yours

    auto mode · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.keys("esc").write("x").keys("enter");
    assert!(scene.live().contains("Unknown command /mox."));
    assert_eq!(scene.written(), "/mox");
    scene.keys("ctrl+u").send("/modle x");
    assert!(scene.live().contains("Unknown command /modle. Did you mean /model"));
    scene.keys("ctrl+u").send("/usr/bin/env is missing");
    assert_eq!(scene.sent(), ["/usr/bin/env is missing"]);
    assert!(!scene.live().contains("Unknown command"), "{}", scene.live());
}

#[test]
fn shell_line_output_is_sent_with_the_next_message() {
    let mut scene = Scene::new();
    scene.send("!git status");
    assert!(scene.took().contains(&Effect::RunShell("git status".to_owned())));
    let output = "On branch main\nclean\n".to_owned();
    scene.input(Input::Shell { line: "git status".to_owned(), output, failure: None });
    assert!(scene.said().contains("On branch main"));
    assert!(scene.live().contains("+ output of `git status` (2 lines)"));
    scene.send("why?");
    let expected = "I ran this:\n```\n$ git status\nOn branch main\nclean\n```\nwhy?";
    assert_eq!(scene.sent(), [expected]);
    assert!(scene.said().contains("[output of a command, 6 lines]"));
}

#[test]
fn backspace_drops_attached_shell_output() {
    let mut scene = Scene::new();
    let output = "x".to_owned();
    scene.input(Input::Shell {
        line: "ls".to_owned(),
        output,
        failure: Some("it failed".to_owned()),
    });
    scene.keys("backspace").send("hi");
    assert_eq!(scene.sent(), ["hi"]);
}

#[test]
fn a_long_paste_is_shown_as_a_chip_and_sent_whole() {
    let mut scene = Scene::new();
    let pasted = "a line\n".repeat(200);
    scene.write("look: ").input(Input::Paste(pasted.clone()));
    assert!(scene.live().contains("look: [Pasted text #1 +200 lines]"));
    scene.keys("enter");
    assert_eq!(scene.sent(), [format!("look: {pasted}")]);
    assert!(scene.said().contains("look: [pasted text, 200 lines]"));
}

#[test]
fn pasted_image_path_becomes_the_image() {
    let mut scene = Scene::new();
    scene.input(Input::Paste("/tmp/shot.png".to_owned()));
    let Some(Effect::ReadImage { text, .. }) = scene.took().into_iter().next() else {
        panic!("no image is read");
    };
    scene.input(Input::Image { instead: text, image: image(), name: "shot.png".to_owned() });
    scene.keys("enter");
    let Some(Request::Send { content }) = scene.told().into_iter().next() else {
        panic!("nothing is sent");
    };
    assert!(
        matches!(&content[..], [Content::Text(text), Content::Image(_)] if text.text == "[Image #1 shot.png]")
    );
}

#[test]
fn external_editor_changes_the_draft() {
    let mut scene = Scene::new();
    scene.write("draft").keys("ctrl+g");
    assert!(scene.took().contains(&Effect::OpenEditor("draft".to_owned())));
    scene.input(Input::Edited(Some("two\nlines\n".to_owned())));
    assert_eq!(scene.written(), "two\nlines");
    scene.keys("ctrl+g").input(Input::Edited(None));
    assert_eq!(scene.written(), "two\nlines");
}

#[test]
fn a_shell_line_is_seen_while_it_runs_and_can_be_stopped() {
    let mut scene = Scene::new();
    scene.send("!sleep 100");
    scene.took();
    scene.wait(61_000);
    assert!(scene.live().contains("! sleep 100 1m 1s"), "{}", scene.live());
    assert!(scene.state.next_tick().is_some());
    scene.keys("esc");
    assert_eq!(scene.took(), [Effect::StopShell]);
    let (line, output) = ("sleep 100".to_owned(), String::new());
    scene.input(Input::Shell { line, output, failure: Some("it failed".to_owned()) });
    assert!(!scene.live().contains("! sleep"), "{}", scene.live());
    scene.keys("ctrl+c");
    assert!(scene.live().contains("Press Ctrl+C again to quit"));
    scene.write("x").keys("backspace ctrl+c");
    assert!(!scene.took().contains(&Effect::Quit), "another key came in between");
}

#[test]
fn quit_needs_the_same_key_pressed_twice() {
    let mut scene = Scene::new();
    scene.running("go").keys("ctrl+d");
    assert!(scene.live().contains("Press Ctrl+D again to stop it and quit"), "{}", scene.live());
    assert!(!scene.took().contains(&Effect::Quit));
    scene.keys("ctrl+d");
    assert!(scene.took().contains(&Effect::Quit));
}

#[test]
fn scattered_letters_of_a_command_name_run_nothing() {
    for letters in ["/ps", "/mdl", "/rsm", "/pms"] {
        let mut scene = Scene::new();
        scene.send(letters);
        assert_eq!(scene.written(), letters);
        assert!(scene.took().iter().all(|effect| !matches!(effect, Effect::Ask(_))), "{letters}");
        let live = scene.live();
        assert!(live.contains(&format!("Unknown command {letters}.")), "{live}");
    }
    let mut scene = Scene::new();
    scene.send("/c");
    assert_eq!(scene.written(), "/c");
    assert!(scene.live().contains("/c could be /"), "{}", scene.live());
    scene.keys("esc ctrl+u").send("/compa");
    assert!(scene.requests().iter().any(|request| matches!(request, Request::Compact { .. })));
}

#[test]
fn command_that_is_chosen_with_the_arrows_runs_and_the_list_says_how_many_follow() {
    let mut scene = Scene::new();
    scene.write("/");
    let live = scene.live();
    assert!(live.contains(" more (↓)") && live.contains("/model"), "{live}");
    scene.keys("enter");
    assert_eq!(scene.written(), "/", "nothing was chosen");
    scene.keys("down down enter");
    assert!(scene.live().contains("Choose the model"), "{}", scene.live());
}

#[test]
fn beginning_of_an_own_command_is_sent_as_that_command() {
    let mut scene = Scene::new();
    let command = CommandInfo { name: "review".to_owned(), ..CommandInfo::default() };
    let commands = vec![command];
    scene.event(Event::Info(Box::new(SessionInfo { commands, ..info() })));
    scene.send("/revi the parser");
    assert_eq!(scene.sent(), ["/review the parser"]);
}

#[test]
fn long_answers_to_commands_are_shown_whole_above_the_status_line() {
    let mut scene = Scene::new();
    for width in [80, 40] {
        scene.size = Size::new(width, 24);
        scene.input(Input::Resize(scene.size));
        for (line, end) in [
            ("/detach", "return with `gnoma attach`"),
            ("/permission foo", "bypass"),
            ("/thinking foo", "tokens"),
        ] {
            scene.keys("ctrl+u").send(line);
            let live = scene.live().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(live.contains(end) && live.contains("auto mode"), "{line}: {live}");
        }
    }
}

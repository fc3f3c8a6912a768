//! Commands behind a slash.

use super::*;

#[test]
fn a_model_is_chosen_from_a_list_by_name_or_by_number() {
    let mut scene = Scene::new();
    scene.send("/model");
    insta::assert_snapshot!(scene.live(), @r"

    Choose the model › ▏
        anthropic/opus   200k
    › • anthropic/haiku  200k
        ollama/qwen      200k
    Enter takes · Esc closes · type to narrow
    auto · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.size = Size::new(40, 12);
    insta::assert_snapshot!(scene.live(), @r"

    Choose the model › ▏
        anthropic/opus   200k
    › • anthropic/haiku  200k
        ollama/qwen      200k
    Enter takes · Esc closes · type to narr…
    auto · anthropic/haiku · main
    ");
    scene.write("qw").keys("enter");
    assert_eq!(scene.next(), Some(Again::Model("ollama/qwen".to_owned())));
    scene.send("/model anthropic/opus");
    assert_eq!(scene.next(), Some(Again::Model("anthropic/opus".to_owned())));
    scene.send("/model 3");
    assert_eq!(scene.next(), Some(Again::Model("ollama/qwen".to_owned())));
    scene.send("/model gpt");
    assert!(scene.live().contains("unknown model: `gpt`"));
    assert!(!scene.took().contains(&Wish::Quit));
}

#[test]
fn nothing_is_exchanged_while_a_turn_runs() {
    let mut scene = Scene::new();
    scene.running("go").send("/model 1").send("/clear").keys("ctrl+x");
    assert!(!scene.took().contains(&Wish::Quit));
    assert!(scene.live().contains("a turn is running"));
}

#[test]
fn commands_lead_to_other_sessions() {
    let expected = [
        ("/clear", Again::New),
        ("/new", Again::New),
        ("/fork", Again::Fork),
        ("/redo", Again::Redo),
        ("/compact", Again::Compact),
        ("/incognito", Again::Incognito(true)),
        ("/resume last", Again::Resume(None)),
        ("/resume s1", Again::Resume(Some("s1".to_owned()))),
        ("/provider ollama", Again::Provider("ollama".to_owned())),
    ];
    for (line, again) in expected {
        let mut scene = Scene::new();
        scene.write("kept").keys("ctrl+u").send(line);
        assert_eq!(scene.next(), Some(again), "{line}");
    }
}

#[test]
fn a_stored_conversation_is_chosen() {
    let mut scene = Scene::new();
    scene.send("/resume").write("docs").keys("enter");
    assert_eq!(scene.next(), Some(Again::Resume(Some("s1".to_owned()))));
}

#[test]
fn going_back_asks_what_is_to_be_taken_back() {
    let mut scene = Scene::new();
    scene.send("/rewind");
    assert!(scene.live().contains("Fix the parser"));
    scene.keys("enter down enter");
    let again = Again::Rewind { turns: 1, files: false, conversation: true };
    assert_eq!(scene.next(), Some(again));
}

#[test]
fn a_long_conversation_is_not_dropped_without_a_question() {
    let mut scene = Scene::new();
    for _ in 0..6 {
        scene.running("go").ends(complete(), &[]);
    }
    scene.send("/clear");
    assert!(scene.live().contains("Leave these 6 turns and begin anew? (y/n)"));
    scene.keys("n").send("/clear").wishes.clear();
    scene.keys("y");
    assert_eq!(scene.next(), Some(Again::New));
}

#[test]
fn settings_show_their_origin_and_can_be_changed() {
    let mut scene = Scene::new();
    scene.send("/config");
    insta::assert_snapshot!(scene.live(), @r"

    Settings › ▏
    ›   provider.timeout_s  60  (built in)
        tui.vim             false  (~/.config/gnoma/config.toml)
    Enter takes · Esc closes · type to narrow
    auto · anthropic/haiku · main · ~/src/gnoma · / commands · F1 help
    ");
    scene.keys("enter ctrl+u").send("90");
    assert_eq!(scene.logged(), ["set provider.timeout_s = 90"]);
    scene.send("/config vim").keys("enter up enter");
    assert_eq!(scene.logged(), ["set tui.vim = true"]);
    scene.send("/config set tui.theme mono");
    assert_eq!(scene.logged(), ["set tui.theme = mono"]);
}

#[test]
fn the_theme_changes_at_once_and_stays() {
    let mut scene = Scene::new();
    scene.send("/theme forest");
    assert!(scene.took().contains(&Wish::Theme("forest".to_owned())));
    assert_eq!(scene.logged(), ["set tui.theme = forest"]);
    scene.send("/theme").write("mono").keys("enter");
    assert!(scene.took().contains(&Wish::Theme("mono".to_owned())));
}

#[test]
fn vim_keys_are_switched_on() {
    let mut scene = Scene::new();
    scene.send("/vim").write("word").keys("esc x");
    assert_eq!(scene.written(), "wor");
    assert_eq!(scene.logged(), ["set tui.vim = true"]);
}

#[test]
fn commands_tell_what_is_known() {
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

    version        0.1.0
    model          anthropic/opus
    chosen because it is the strongest
    mode           auto
    folder         ~/src/gnoma
    branch         main
    incognito      off
    context        10k of 200k tokens (5%)
    turns          1

    turn           10k in, 9.0k of it from the cache (90%), 200 out
    session        10k in, 9.0k of it from the cache (90%), 200 out
    total          10k tokens, turns: 1
    context        10k of 200k tokens (5%)

    called anthropic/opus: it is the strongest

    about Routing

    about Context
    ");
}

#[test]
fn every_command_and_key_can_be_looked_up() {
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
fn texts_go_where_they_are_wanted() {
    let mut scene = Scene::new();
    scene.send("/copy");
    assert!(scene.live().contains("there is no answer to copy yet"));
    scene.running("go").event(Event::Text { text: "The answer.".to_owned() });
    let answer = Message::assistant(vec![Content::text("The answer.")], None, None).unwrap();
    scene.event(Event::Appended(Arc::new(answer))).ends(complete(), &[]).wishes.clear();
    scene.send("/copy");
    assert!(scene.took().contains(&Wish::Copy("The answer.".to_owned())));
    scene.send("/export talk.md");
    assert_eq!(scene.logged(), ["export talk.md"]);
    scene.send("/shell htop");
    assert!(scene.took().contains(&Wish::HandOver(Some("htop".to_owned()))));
    scene.send("/diff");
    assert!(scene.said().contains("new"));
    scene.keys("ctrl+z");
    assert!(scene.took().contains(&Wish::Suspend));
    scene.send("/exit");
    assert_eq!(scene.next(), None);
}

//! Events in, lines out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Content, Event, Image, Message, ModelRef, RawJson, ResultPart, StopReason, ToolCall,
    ToolResult, Usage,
    error::{ErrorKind, ProviderError},
    session::{NoticeLevel, Outcome},
};
use gnoma_tui::{
    text::{Line, Style},
    transcript::{Transcript, TranscriptOptions, user_message_text},
};
use proptest::prelude::*;

const DIFF: &str = "--- a/src/sum.rs\n+++ b/src/sum.rs\n@@ -9,3 +9,4 @@\n fn sum() {\n-    let total = a;\n+    let total = a + b;\n+    total\n }\n";

fn shown(lines: &[Line]) -> String {
    lines.iter().map(|line| line.plain_text().trim_end().to_owned() + "\n").collect()
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(CallId::new(id), name, RawJson::parse(arguments).unwrap())
}

fn text(text: &str) -> Event {
    Event::Text { text: text.into() }
}

fn thinking(text: &str) -> Event {
    Event::Thinking { text: text.into() }
}

fn asked(calls: &[ToolCall]) -> Event {
    let content = calls.iter().cloned().map(Content::ToolCall).collect();
    Event::Appended(Arc::new(Message::assistant(content, None, None).unwrap()))
}

fn ended(call: &ToolCall, text: &str, is_error: bool, duration_ms: u64) -> Event {
    let result = ToolResult::from_text(call, text, is_error);
    Event::ToolEnded { call: call.clone(), result, diff: None, duration_ms, command: None }
}

fn done(rounds: u32) -> Event {
    let usage = Usage { input: 2_000, output: 1_234, cache_read: 8_000, ..Usage::default() };
    let outcome = Outcome::Complete { stop: StopReason::EndTurn };
    Event::TurnEnded { outcome, rounds, usage, undelivered: vec![], answer: None }
}

/// A turn with thinking, two calls of which one fails, an edit and an answer.
fn turn() -> Vec<Event> {
    let test = call("c1", "bash", r#"{"command":"cargo test\necho done"}"#);
    let read = call("c2", "fs.read", r#"{"path":"src/sum.rs"}"#);
    let edit = call("c1", "fs.edit", r#"{"path":"src/sum.rs","old":"a"}"#);
    let changed = ToolResult::from_text(&edit, "ok", false);
    let arm = ModelRef { provider: "anthropic".into(), model: "m".into() };
    vec![
        Event::RoundStarted { round: 1, arm: arm.clone(), why: "only one".into() },
        thinking("**Looking** at\nthe tests\n"),
        thinking("first"),
        text("I run the "),
        text("**tests**.\n\n"),
        Event::ToolCallDrafted { call: CallId::new("c"), name: "bash".into() },
        asked(&[test.clone(), read.clone()]),
        Event::ToolStarted { call: test.clone() },
        Event::ToolStarted { call: read.clone() },
        Event::ToolProgress {
            call: test.id.clone(),
            text: "one\r\n\u{1b}[32mtwo\u{1b}[0m\n".into(),
        },
        ended(&read, &"x".repeat(14_500), false, 12),
        ended(&test, "\u{1b}[31mtest failed\u{1b}[0m\n\tat sum\nexit status 101", true, 3_240),
        Event::RoundStarted { round: 2, arm, why: "only one".into() },
        asked(std::slice::from_ref(&edit)),
        Event::PermissionAsked {
            call: edit.clone(),
            reason: "it writes".into(),
            preview: None,
            always: None,
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        },
        Event::PermissionDecided { call: edit.id.clone(), allowed: true, reason: "you".into() },
        Event::ToolStarted { call: edit.clone() },
        Event::ToolEnded {
            call: edit,
            result: changed,
            diff: Some(DIFF.into()),
            duration_ms: 4,
            command: None,
        },
        text("Fixed:\n\n```rust\nlet total = a + b;\n```\n- one\n- two"),
        Event::Notice { level: NoticeLevel::Warning, text: "the context is 90 % full".into() },
        text(" more"),
        done(2),
    ]
}

fn told(options: TranscriptOptions, events: &[Event], width: usize) -> String {
    let mut transcript = Transcript::new(options);
    transcript.add_user_message("Fix the tests\nplease");
    events.iter().for_each(|event| transcript.on_event(event));
    shown(&transcript.take_finished(width))
}

#[test]
fn transcript_of_a_turn() {
    insta::assert_snapshot!(told(TranscriptOptions::default(), &turn(), 60), @r#"
    › Fix the tests
      please

    ∴ Looking at (2 more lines, Ctrl+O)

    I run the tests.

    ✗ Bash cargo test … · 3.2s
      test failed
          at sum
      exit status 101
    ✓ Read src/sum.rs · 14 KB
    ✓ Edit src/sum.rs · +2 −1
       9  fn sum() {
      10 -    let total = a;
      10 +    let total = a + b;
      11 +    total
      12  }

    Fixed:

      rust
      let total = a + b;

    • one
    • two more

    warning: the context is 90 % full
    2 model calls · 10.0k tokens in (80% cached) · 1.2k out
    "#);
}

#[test]
fn transcript_of_a_turn_in_few_columns() {
    insta::assert_snapshot!(told(TranscriptOptions::default(), &turn(), 24), @r#"
    › Fix the tests
      please

    ∴ Lookin… (2 more lines)

    I run the tests.

    ✗ Bash cargo tes… · 3.2s
      test failed
          at sum
      exit status 101
    ✓ Read src/sum.… · 14 KB
    ✓ Edit src/sum.… · +2 −1
       fn sum() {
      -    let total = a;
      +    let total = a +
       b;
      +    total
       }

    Fixed:

      rust
      let total = a + b;

    • one
    • two more

    warning: the context is
    90 % full
    2 model calls · 10.0k
    tokens in (80% cached) ·
    1.2k out
    "#);
}

#[test]
fn transcript_of_a_turn_for_screen_readers() {
    let options = TranscriptOptions { accessible: true, ..TranscriptOptions::default() };
    insta::assert_snapshot!(told(options, &turn(), 60), @r#"
    › Fix the tests
      please

    thinking: Looking at (2 more lines)

    I run the tests.

    running: Bash cargo test …
    running: Read src/sum.rs
    done: Read src/sum.rs · 14 KB
    failed: Bash cargo test … · 3.2s
      test failed
          at sum
      exit status 101
    running: Edit src/sum.rs
    done: Edit src/sum.rs · +2 −1
       9  fn sum() {
      10 -    let total = a;
      10 +    let total = a + b;
      11 +    total
      12  }

    Fixed:

      rust
      let total = a + b;

    • one
    • two more

    warning: the context is 90 % full
    2 model calls · 10.0k tokens in (80% cached) · 1.2k out
    "#);
}

#[test]
fn transcript_of_a_turn_unfolded() {
    let options = TranscriptOptions { unfolded: true, ..TranscriptOptions::default() };
    let lines: Vec<_> = told(options, &turn(), 70).lines().take(16).map(str::to_owned).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    › Fix the tests
      please

    ∴ Looking at
      the tests
      first

    I run the tests.

    ✗ Bash cargo test … · 3.2s
      test failed
          at sum
      exit status 101
    ✓ Read src/sum.rs · 14 KB
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    "#);
}

#[test]
fn a_plan_and_elfs_are_shown_in_place_of_their_result() {
    let plan = call(
        "c1",
        "plan",
        r#"{"steps":[{"text":"read","status":"done"},{"text":"fix it","status":"active"},{"text":"test","status":"pending"}]}"#,
    );
    let elfs = call("c2", "elf.spawn", r#"{"tasks":[{"task":"look at a"},{"task":"look at b"}]}"#);
    let report = "2 of 2 elfs completed\n- `elf-1`: completed · 1s\n- `elf-2`: completed · 2s\n\n<elf-result of=\"elf-1\">\nwords\n</elf-result>\n";
    let events = [
        asked(&[plan.clone(), elfs.clone()]),
        Event::ToolStarted { call: plan.clone() },
        ended(&plan, "[x] read\n[>] fix it\n[ ] test", false, 2),
        Event::ToolStarted { call: elfs.clone() },
        ended(&elfs, report, false, 2),
        done(1),
    ];
    insta::assert_snapshot!(told(TranscriptOptions::default(), &events, 60), @r"
    › Fix the tests
      please

    ✓ Plan · 1 of 3 done
      ✓ read
      ● fix it
      ○ test
    ✓ Start elfs look at a; look at b
      elf-1: completed · 1s
      elf-2: completed · 2s
    ");
    let accessible = TranscriptOptions { accessible: true, ..TranscriptOptions::default() };
    let heard = told(accessible, &events, 60);
    assert!(heard.contains("  done: read\n  now: fix it\n  next: test\n"), "{heard}");
}

#[test]
fn notice_continuation_lines_are_indented() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    transcript.add_notice(NoticeLevel::Warning, "the ledger is read-only, so nothing is counted");
    assert_eq!(
        shown(&transcript.take_finished(40)),
        "warning: the ledger is read-only, so\n         nothing is counted\n"
    );
}

#[test]
fn transcript_live_lines_while_a_turn_runs() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    let start = Instant::now();
    let mut screens = String::new();
    for (second, event) in (0..).zip(turn().iter().take(18)) {
        transcript.tick(start + Duration::from_secs(second));
        transcript.on_event(event);
        let finished = transcript.take_finished(50).len();
        let live = shown(&transcript.live_lines(50, 6));
        screens.push_str(&format!("-- {finished} finished\n{live}"));
    }
    insta::assert_snapshot!(screens, @r#"
    -- 0 finished
    -- 0 finished
    ∴ Looking at
      the tests
    -- 0 finished
    ∴ Looking at
      the tests
      first
    -- 1 finished

    I run the
    -- 2 finished
    -- 0 finished

    · Bash …
    -- 0 finished

    · Bash cargo test …
    · Read src/sum.rs
    -- 0 finished

    ● Bash cargo test …
    · Read src/sum.rs
    -- 0 finished

    ● Bash cargo test … · 1s
    ● Read src/sum.rs
    -- 0 finished

    ● Bash cargo test … · 2s
      │ one
      │ two
    ● Read src/sum.rs · 1s
    -- 0 finished

    ● Bash cargo test … · 3s
      │ one
      │ two
    ✓ Read src/sum.rs · 14 KB
    -- 6 finished
    -- 0 finished
    -- 0 finished
    · Edit src/sum.rs
    -- 0 finished
    ? Edit src/sum.rs
    -- 0 finished
    · Edit src/sum.rs
    -- 0 finished
    ● Edit src/sum.rs
    -- 6 finished
    "#);
}

#[test]
fn long_inserted_text_does_not_hide_the_streamed_answer() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    transcript.on_event(&text("First.\n\nIt is "));
    let mut finished = transcript.take_finished(60);
    transcript.add_lines(
        (0..200).map(|number| Line::new(format!("line {number}"), Style::default())).collect(),
    );
    transcript.on_event(&text("going on"));
    finished.extend(transcript.take_finished(60));
    let seen = shown(&finished);
    assert!(seen.starts_with("First.\n\nline 0\n") && seen.ends_with("line 199\n"), "{seen}");
    assert_eq!(shown(&transcript.live_lines(60, 10)), "\nIt is going on\n");
    transcript.on_event(&done(1));
    assert!(shown(&transcript.take_finished(60)).starts_with("\nIt is going on\n"));
}

#[test]
fn transcript_of_turn_outcomes() {
    let error = ProviderError::new(ErrorKind::Auth, "anthropic", "invalid key")
        .with_hint("run `gnoma provider`");
    let ends = [
        Outcome::Cancelled,
        Outcome::RoundLimit { rounds: 50 },
        Outcome::Stuck { what: "four equal calls of bash".into() },
        Outcome::Complete { stop: StopReason::MaxTokens },
        Outcome::Failed { error, kept_partial: true },
    ];
    let mut transcript = Transcript::new(TranscriptOptions::default());
    for outcome in ends {
        let usage = Usage::default();
        transcript.on_event(&Event::TurnEnded {
            outcome,
            rounds: 1,
            usage,
            undelivered: vec![],
            answer: None,
        });
    }
    insta::assert_snapshot!(shown(&transcript.take_finished(80)), @r"
    stopped; work done so far is kept
    stopped at the limit of 50 model calls for one turn; say `go on` to continue
    stopped: no progress (four equal calls of bash)
    the answer hit the model's output limit; say `go on` for the rest
    error: anthropic: not authorised: invalid key
    hint: run `gnoma provider`
    hint: `/login anthropic` enters another key
    the partial answer is kept
    ");
}

#[test]
fn refused_calls_say_why_and_lost_ones_that_they_are() {
    let write = call("a", "fs.write", r#"{"path":"x"}"#);
    let lost = call("b", "bash", r#"{"command":"sleep 9"}"#);
    let mut transcript = Transcript::new(TranscriptOptions::default());
    transcript.on_event(&asked(&[write.clone(), lost]));
    let reason = "denied by the user: not there".into();
    transcript.on_event(&Event::PermissionDecided {
        call: write.id.clone(),
        allowed: false,
        reason,
    });
    transcript.on_event(&ended(&write, "denied", true, 0));
    transcript.on_event(&done(1));
    insta::assert_snapshot!(shown(&transcript.take_finished(80)), @r#"
    ✗ Write x
      denied by the user: not there
    ✗ Bash sleep 9
      interrupted
    "#);
}

#[test]
fn folded_items_unfold_newest_first() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    turn().iter().for_each(|event| transcript.on_event(event));
    drop(transcript.take_finished(60));
    let mut titles = Vec::new();
    while transcript.unfold_newest() {
        let lines = transcript.take_finished(60);
        titles.extend(lines.iter().map(Line::plain_text).filter(|line| line.starts_with('▾')));
    }
    insta::assert_snapshot!(titles.join("\n"), @r#"
    ▾ thinking
    ▾ Edit src/sum.rs
    ▾ Bash cargo test …
    ▾ Read src/sum.rs
    "#);
}

#[test]
fn a_stored_session_looks_like_the_one_it_was() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    let run = call("c1", "bash", r#"{"command":"ls"}"#);
    let image =
        Image::from_bytes("image/png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x03\x20\0\0\x02\x58");
    let user =
        Message::user(vec![Content::from_text("look"), Content::Image(image.clone())]).unwrap();
    assert_eq!(user_message_text(&user), "look\n[image 800×600 png]");
    let mut result = ToolResult::from_text(&run, "a\nb", false);
    result.parts.push(ResultPart::Image(image));
    let content = vec![Content::from_text("I look."), Content::ToolCall(run)];
    for message in [
        user,
        Message::assistant(content, None, None).unwrap(),
        Message::results(vec![result]).unwrap(),
        Message::assistant(vec![Content::from_text("*Two* files.")], None, None).unwrap(),
    ] {
        transcript.replay_message(&message);
    }
    insta::assert_snapshot!(shown(&transcript.take_finished(60)), @r"
    › look
      [image 800×600 png]

    I look.

    ✓ Bash ls
      [image 800×600 png]
      a
      b

    Two files.
    ");
    assert_eq!(transcript.last_answer(), Some("*Two* files."));
}

#[test]
fn copied_answer_is_markdown() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    turn().iter().for_each(|event| transcript.on_event(event));
    assert!(transcript.last_answer().unwrap().starts_with("Fixed:\n\n```rust\n"));
}

#[test]
fn twenty_thousand_stream_deltas_lose_no_lines() {
    let mut transcript = Transcript::new(TranscriptOptions::default());
    let mut lines = 0;
    for number in 0..20_000 {
        transcript.on_event(&text(&format!("word{number} ")));
        if number % 10 == 9 {
            transcript.on_event(&text("\n\n"));
        }
        lines += transcript.take_finished(400).len();
        assert!(transcript.live_lines(400, 10).len() <= 2);
    }
    transcript.on_event(&done(1));
    lines += transcript.take_finished(400).len();
    assert_eq!(lines, 2_000 * 2 - 1);
}

#[test]
fn question_during_a_tool_call_leaves_no_extra_transcript_lines() {
    let bash = call("c1", "bash", r#"{"command":"touch x"}"#);
    let question = ToolCall::new(CallId::new("gnoma-question-1"), "bash", bash.arguments.clone());
    let events = [
        asked(std::slice::from_ref(&bash)),
        Event::ToolStarted { call: bash.clone() },
        Event::PermissionAsked {
            call: question.clone(),
            reason: "keep x?".into(),
            preview: None,
            always: None,
            inquiry: None,
            during: Some(bash.id.clone()),
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        },
        Event::PermissionDecided { call: question.id, allowed: true, reason: "you".into() },
        ended(&bash, "", false, 3),
        done(1),
    ];
    let lines = told(TranscriptOptions::default(), &events, 80);
    assert_eq!(lines.matches("touch x").count(), 1, "{lines}");
    assert!(!lines.contains("interrupted"), "{lines}");
}

/// Events of turns in any order that a session may send, and some that it may not.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = call("c1", "bash", r#"{"command":"ls"}"#);
    let two = call("c2", "fs.read", r#"{"path":"a\tb\u001b[31m"}"#);
    let event = prop::sample::select(vec![
        text("Some *words*"),
        text("\n\n- item\n"),
        text("```\ncode\n"),
        text(" "),
        thinking("hm\nhm\n\u{7}"),
        thinking(" "),
        Event::ToolCallDrafted { call: CallId::new("c"), name: "bash".into() },
        asked(&[one.clone(), two.clone()]),
        Event::ToolStarted { call: one.clone() },
        Event::ToolProgress { call: one.id.clone(), text: "out\t\u{1b}[31m漢\r".into() },
        ended(&one, "well", false, 1_500),
        ended(&two, "not\nwell\u{8}", true, 0),
        Event::PermissionAsked {
            call: two.clone(),
            reason: "r".into(),
            preview: None,
            always: None,
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        },
        Event::PermissionDecided { call: two.id, allowed: false, reason: "no\n".into() },
        Event::Notice { level: NoticeLevel::Info, text: "note\nnote".into() },
        done(2),
    ]);
    prop::collection::vec(event, 0..40)
}

proptest! {
    #[test]
    fn transcript_is_the_same_whenever_lines_are_taken(
        events in events(),
        often in 1_usize..7,
        accessible: bool,
        width in 2_usize..50,
    ) {
        let options = TranscriptOptions { accessible, ..TranscriptOptions::default() };
        let (mut once, mut now) = (Transcript::new(options), Transcript::new(options));
        let mut lines = Vec::new();
        for (at, event) in events.iter().chain([&done(1)]).enumerate() {
            once.on_event(event);
            now.on_event(event);
            if at % often == 0 {
                lines.extend(now.take_finished(width));
                for line in now.live_lines(width, 5) {
                    prop_assert!(line.width() <= width, "{:?}", line);
                }
            }
        }
        lines.extend(now.take_finished(width));
        prop_assert_eq!(&lines, &once.take_finished(width));
        prop_assert!(now.live_lines(width, 5).is_empty());
        for line in &lines {
            prop_assert!(line.width() <= width, "{} > {width}: {:?}", line.width(), line);
            prop_assert!(!line.plain_text().chars().any(char::is_control));
        }
    }
}

#[test]
fn answer_discarded_at_failover_is_marked_and_not_copied() {
    let mut transcript = Transcript::default();
    let arm = |model: &str| ModelRef { provider: "test".to_owned(), model: model.to_owned() };
    let text = |text: &str| Event::Text { text: text.to_owned() };
    transcript.on_event(&Event::RoundStarted { round: 1, arm: arm("a"), why: String::new() });
    transcript.on_event(&text("The first answer."));
    transcript.on_event(&Event::RoundStarted { round: 2, arm: arm("a"), why: String::new() });
    transcript.on_event(&text("Half a **broken** ans"));
    transcript.on_event(&Event::ArmChanged {
        from: arm("a"),
        to: arm("b"),
        why: "the stream broke off".to_owned(),
        retracted: true,
    });
    let lines = transcript.take_finished(60);
    let broken: Vec<_> =
        lines.iter().filter(|line| line.plain_text().contains("broken ans")).collect();
    assert!(!broken.is_empty());
    assert!(broken[0].spans.iter().all(|span| span.style.strike), "{broken:?}");
    assert_eq!(transcript.last_answer(), Some("The first answer."));
    let plain: Vec<String> = lines.iter().map(|line| line.plain_text() + "\n").collect();
    insta::assert_snapshot!(plain.concat(), @r"
    The first answer.

    Half a broken ans

    ✗ discarded what test/a began, “Half a **broken** ans”: the
    stream broke off
    → test/b starts over
    ");
}

#[test]
fn ensemble_names_the_model_whose_answer_is_used() {
    let mut transcript = Transcript::default();
    let [a, b, c] = ["a", "b", "c"]
        .map(|model| ModelRef { provider: "test".to_owned(), model: model.to_owned() });
    let members = vec![a, b.clone()];
    transcript.on_event(&Event::Conferred { members, chair: Some(c), author: b });
    let lines: Vec<_> = transcript.take_finished(90).iter().map(Line::plain_text).collect();
    let said = "test/a, test/b answered; using test/b's answer, chosen by test/c";
    assert!(lines.iter().any(|line| line.contains(said)), "{lines:?}");
}

#[test]
fn failed_check_shows_its_evidence_folded() {
    let mut transcript = Transcript::default();
    let arm = ModelRef { provider: "test".to_owned(), model: "a".to_owned() };
    let evidence: String = (0..9).map(|line| format!("\u{1b}[31mline {line}\u{1b}[m\n")).collect();
    let by = "cargo test".to_owned();
    transcript.on_event(&Event::Checked { arm, by, passed: false, evidence });
    let compacted = Event::Compacted { summary: "It was long.".to_owned(), messages: 12 };
    transcript.on_event(&compacted);
    let plain = |lines: Vec<Line>| -> String {
        lines.iter().map(|line| line.plain_text().trim_end().to_owned() + "\n").collect()
    };
    insta::assert_snapshot!(plain(transcript.take_finished(60)), @r"
    ✗ cargo test found problems in the work of test/a:
      line 0
      line 1
      line 2
      line 3
      line 4
      line 5
      … 3 more lines
    ≡ Compacted 12 messages
    ");
    assert!(transcript.unfold_newest());
    assert!(plain(transcript.take_finished(60)).contains("It was long."));
    assert!(transcript.unfold_newest());
    assert!(plain(transcript.take_finished(60)).contains("line 8"));
}

#[test]
fn notice_of_several_lines_preserves_its_lines() {
    let mut transcript = Transcript::default();
    transcript.add_notice(NoticeLevel::Warning, "the file is wrong\n  line 3");
    let lines: Vec<String> = transcript.take_finished(80).iter().map(Line::plain_text).collect();
    assert_eq!(lines, ["warning: the file is wrong", "           line 3"]);
}

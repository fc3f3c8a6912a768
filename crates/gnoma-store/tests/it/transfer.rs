//! Sessions that come from files and go to them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    CallId, Content, Message, ModelRef, RawJson, Role, Text, Thinking, ToolCall, ToolResult, Usage,
    store::{
        Entry, EntryId, Record, ResultId, ResultStore, SessionFacts, SessionStore, StoreErrorKind,
    },
};
use gnoma_store::{
    export::Format,
    import::{self, ImportedTranscript, Source},
};
use proptest::prelude::*;

use crate::support::{append, begin, is_legal, load, open, says, turn, wait};

fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// The conversation in few words: who, then calls and texts.
fn told(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .filter_map(|entry| match &entry.record {
            Record::Message(message) => Some(tell(message)),
            Record::Used(usage) => Some(format!("used {}+{}", usage.prompt_tokens(), usage.output)),
            _ => None,
        })
        .collect()
}

fn tell(message: &Message) -> String {
    let who = match message.role() {
        Role::User => "user",
        Role::Assistant => "model",
        Role::Tool => "tool",
    };
    let blocks: Vec<_> = message
        .content()
        .iter()
        .map(|block| match block {
            Content::Text(text) => text.text.clone(),
            Content::Thinking(thinking) => format!("({})", thinking.text),
            Content::ToolCall(call) => format!("{}{}", call.name, call.arguments),
            Content::ToolResult(result) => {
                let mark = if result.is_error { "!" } else { "" };
                format!("{mark}{}={}", result.name, result.joined_text())
            }
            Content::Image(image) => image.mime.clone(),
            Content::RedactedThinking(_) => "hidden".to_owned(),
        })
        .collect();
    format!("{who}: {}", blocks.join(" | "))
}

fn read(source: Source, path: &Path) -> ImportedTranscript {
    let imported = import::read_session(source, path).unwrap();
    assert!(is_legal(&imported.entries), "{:?}", told(&imported.entries));
    imported
}

#[test]
fn jsonl_export_and_import_restore_the_whole_session() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(open(home.path()));
    let session = begin(&store, 0);
    let large = "many\nlines\n".repeat(40);
    wait(store.result_store(session.clone()).save_result(large.clone())).unwrap();
    for record in (0..3).flat_map(turn) {
        append(&store, &session, record);
    }
    let facts = wait(store.session_facts(session.clone())).unwrap();
    let entries = load(&store, &session).entries;
    let mut text = Format::Lines.render_head(&facts, || jiff::tz::TimeZone::UTC);
    text.extend(entries.iter().map(|entry| Format::Lines.render_entry(entry)));
    for id in wait(store.list_results(session.clone())).unwrap() {
        let kept = wait(store.result_store(session.clone()).read_slice(id.clone(), 0, usize::MAX))
            .unwrap();
        text.push_str(&Format::Lines.render_result(&id, &kept.text));
    }
    let path = file(home.path(), "export.jsonl", &text);

    let imported = read(Source::Lines, &path);
    assert_eq!(imported.entries, entries);
    assert_eq!(imported.origin, Some(format!("{session} of a gnoma export")));
    assert_eq!(imported.left_out(), None);
    let copy = wait(store.import(imported, 9)).unwrap().session;
    let records = |entries: &[Entry]| -> Vec<Record> {
        entries.iter().map(|entry| entry.record.clone()).collect()
    };
    let copied = load(&store, &copy).entries;
    assert_eq!(records(&copied), records(&entries));
    let fork = wait(store.fork(copy.clone(), copied.last().unwrap().id, 9)).unwrap();
    for session in [copy.clone(), fork] {
        let id = ResultId::new("r1");
        assert_eq!(wait(store.result_store(session).read_slice(id, 0, 9999)).unwrap().text, large);
    }
    assert_eq!(wait(store.session_facts(copy)).unwrap().title, facts.title);

    let cut: Vec<_> = text.lines().enumerate().filter(|(at, _)| at % 5 != 0 || *at == 0).collect();
    let cut: String = cut.into_iter().map(|(_, line)| format!("{line}\n")).collect();
    read(Source::Lines, &file(home.path(), "cut.jsonl", cut));
}

/// Any record that can stand alone.
fn record() -> impl Strategy<Value = Record> {
    let text = || "\\PC{0,30}|[\n\r\t\"\\\\\u{0}-\u{1f}\u{2028}]{0,6}";
    let model = || (text(), text()).prop_map(|(provider, model)| ModelRef { provider, model });
    let said = (text(), prop::option::of(text())).prop_filter_map("empty", |(text, signature)| {
        Message::user(vec![Content::Text(Text { text, signature })]).ok()
    });
    let thought = (text(), text(), prop::option::of(model())).prop_filter_map(
        "empty",
        |(text, item, origin)| {
            let thinking = Thinking { text, signature: None, item: Some(item) };
            Message::assistant(vec![Content::Thinking(thinking)], origin, None).ok()
        },
    );
    let message = |message| Record::Message(Arc::new(message));
    let number = any::<i64>().prop_map(EntryId);
    prop_oneof![
        said.prop_map(message),
        thought.prop_map(message),
        (model(), text()).prop_map(|(arm, why)| Record::Routed { arm, why }),
        (text(), any::<bool>(), text()).prop_map(|(call, allowed, reason)| Record::Judged {
            call: CallId::new(call),
            allowed,
            reason
        }),
        any::<[u32; 5]>().prop_map(|[input, output, cache_read, cache_write, reasoning]| {
            let [input, output, cache_read, cache_write, reasoning] =
                [input, output, cache_read, cache_write, reasoning].map(u64::from);
            Record::Used(Usage { input, output, cache_read, cache_write, reasoning })
        }),
        (text(), number.clone()).prop_map(|(text, up_to)| Record::Summary { text, up_to }),
        text().prop_map(|text| {
            let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
            Record::ToolEnded(ToolResult::from_text(&call, text, false))
        }),
        text().prop_map(|id| Record::Checkpoint { id }),
        text().prop_map(|text| Record::Title { text }),
        number.clone().prop_map(|from| Record::Rewound { from }),
        number.prop_map(|of| Record::Tombstone { of }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn jsonl_export_round_trips_any_session(
        records in prop::collection::vec(prop::collection::vec(record(), 0..4), 1..5),
        at_ms in any::<i64>(),
        title in "\\PC{1,30}",
    ) {
        let turns = records.into_iter().zip(0..).flat_map(|(records, number)| {
            records.into_iter().chain(turn(number))
        });
        let entries: Vec<_> = turns
            .zip(1..)
            .map(|(record, id)| {
                let parent = Some(EntryId(id - 1)).filter(|parent| parent.0 > 0);
                Entry { id: EntryId(id), parent, at_ms, record }
            })
            .collect();
        let home = tempfile::tempdir().unwrap();
        let store = open(home.path());
        let session = begin(&store, 0);
        let facts = SessionFacts { title, ..wait(store.session_facts(session)).unwrap() };
        let lines: Vec<_> = entries.iter().map(|entry| Format::Lines.render_entry(entry)).collect();
        prop_assert!(lines.iter().all(|line| line.matches('\n').count() == 1));
        let text = format!("{}{}{}", Format::Lines.render_head(&facts, || jiff::tz::TimeZone::UTC), lines.concat(), Format::Lines.render_tail());
        let imported = read(Source::Lines, &file(home.path(), "export.jsonl", text));
        prop_assert_eq!(imported.left_out(), None);
        prop_assert_eq!(imported.entries, entries);
        prop_assert_eq!(imported.title, Some(facts.title));
    }
}

#[test]
fn html_and_markdown_export_escape_message_text() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    let nasty = "</pre><script>alert('x')</script> & \"q\" \u{1b}[31m\n```\n````\n# no heading";
    append(&store, &session, says(nasty));
    let result = Record::Summary { text: nasty.into(), up_to: gnoma_core::store::EntryId(1) };
    append(&store, &session, result);
    let facts = wait(store.session_facts(session.clone())).unwrap();
    let entries = load(&store, &session).entries;
    let write = |format: Format| -> String {
        let body: String = entries.iter().map(|entry| format.render_entry(entry)).collect();
        format!(
            "{}{body}{}",
            format.render_head(&facts, || jiff::tz::TimeZone::UTC),
            format.render_tail()
        )
    };
    let html = write(Format::Html);
    assert!(!html.contains("<script") && !html.contains('\u{1b}') && !html.contains("'x'"));
    assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)"));
    let markdown = write(Format::Markdown);
    assert!(markdown.contains("\n`````\n</pre>"), "{markdown}");
}

#[test]
fn claude_code_transcripts_are_read() {
    let home = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"type":"summary","summary":"Fix","leafUuid":"x"}"#,
        r#"{"type":"custom-title","customTitle":"Fix the door"}"#,
        r#"{"type":"ai-title","aiTitle":"Repair of a door"}"#,
        r#"{"type":"user","cwd":"/p","sessionId":"u1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"fix it"}}"#,
        r#"{"type":"assistant","message":{"id":"m1","model":"opus","content":[{"type":"thinking","thinking":"hm","signature":"s"}],"usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"type":"assistant","message":{"id":"m1","model":"opus","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":2}}}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a b"}]}]}}"#,
        r#"{"type":"assistant","message":{"id":"m1","model":"opus","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}],"stop_reason":"tool_use"}}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"no file"}]}}"#,
        r#"{"type":"assistant","isSidechain":true,"message":{"id":"m2","content":[{"type":"text","text":"sub"}]}}"#,
        r#"{"type":"file-history-snapshot"}"#,
        r#"{"type":"assistant","message":{"id":"m3","model":"opus","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}}"#,
        "not json",
    ];
    let path = file(home.path(), "c.jsonl", lines.join("\n"));
    let imported = read(Source::ClaudeCode, &path);
    assert_eq!(imported.title.as_deref(), Some("Fix the door"));
    assert_eq!(imported.project.as_deref(), Some("/p"));
    assert_eq!(imported.origin.as_deref(), Some("u1 of Claude Code"));
    assert_eq!(
        told(&imported.entries),
        [
            "user: fix it",
            "model: (hm) | Bash{\"command\":\"ls\"} | Read{}",
            "used 8+2",
            "tool: Bash=a b | !Read=no file",
            "model: done",
        ]
    );
    assert_eq!(
        imported.left_out().unwrap(),
        "left out of the import: file-history-snapshot: 1, messages of sub-agents: 1, unreadable \
         lines: 1"
    );
}

#[test]
fn codex_rollouts_are_read() {
    let home = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"i","cwd":"/p"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}"#,
        r#"{"type":"turn_context","payload":{"model":"gpt"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}"#,
        r#"{"type":"event_msg","payload":{"type":"user_message","message":"go"}}"#,
        r#"{"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"e"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"cmd\":1}","call_id":"a"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** x","call_id":"b"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"{\"output\":\"one\",\"metadata\":{\"exit_code\":2}}"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"b","output":{"content":"two","success":false}}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":3}}}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{broken","call_id":"c"}}"#,
    ];
    let imported = read(Source::Codex, &file(home.path(), "r.jsonl", lines.join("\n")));
    let told = told(&imported.entries);
    assert_eq!(
        told[..4],
        [
            "user: go",
            "model: (think) | shell{\"cmd\":1} | apply_patch\"*** x\"",
            "used 10+3",
            "tool: !shell=one | !apply_patch=two",
        ]
    );
    assert_eq!(told[4], "model: shell\"{broken\"");
    assert!(told[5].starts_with("tool: !shell=[interrupted"), "{}", told[5]);
    assert_eq!(imported.origin.as_deref(), Some("i of Codex"));
    assert_eq!(imported.skipped["encrypted reasoning"], 1);
    assert_eq!(imported.skipped["calls without a result"], 1);
}

#[test]
fn sessions_of_the_go_gnoma_are_read() {
    let home = tempfile::tempdir().unwrap();
    file(
        home.path(),
        "p/.gnoma/sessions/s/metadata.json",
        r#"{"id":"s","provider":"mistral","model":"m","usage":{"input_tokens":7,"output_tokens":2},"created_at":"2026-01-01T00:00:00Z"}"#,
    );
    file(
        home.path(),
        "p/.gnoma/sessions/s/messages.json",
        r#"[{"role":"user","content":[{"type":"text","text":"hi"}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":{"text":"hm"}},{"type":"tool_call","tool_call":{"id":"1","name":"fs.read","arguments":{"path":"x"}}}]},
        {"role":"user","content":[{"type":"tool_result","tool_result":{"tool_call_id":"1","content":"text","is_error":false}}]},
        {"role":"system","content":[{"type":"text","text":"be nice"}]},
        {"role":"assistant","content":[{"type":"text","text":"bye"}]}]"#,
    );
    let imported = read(Source::GnomaGo, &home.path().join("p/.gnoma/sessions/s"));
    assert_eq!(imported.origin.as_deref(), Some("s of the Go gnoma"));
    assert!(imported.is_about(&home.path().join("p")) && imported.project.is_some());
    assert_eq!(
        told(&imported.entries),
        [
            "user: hi",
            "model: (hm) | fs.read{\"path\":\"x\"}",
            "tool: fs.read=text",
            "model: bye",
            "used 7+2"
        ]
    );
    assert_eq!(imported.skipped["system messages"], 1);
}

fn opencode(folder: &Path) -> PathBuf {
    let part = |message: &str, part: &str, text: &str| {
        file(folder, &format!("storage/part/{message}/{part}.json"), text);
    };
    file(
        folder,
        "storage/message/ses_1/msg_1.json",
        r#"{"id":"msg_1","role":"user","time":{"created":5}}"#,
    );
    file(
        folder,
        "storage/message/ses_1/msg_2.json",
        r#"{"id":"msg_2","role":"assistant","providerID":"p","modelID":"m"}"#,
    );
    part("msg_1", "prt_1", r#"{"type":"text","text":"go"}"#);
    part("msg_2", "prt_2", r#"{"type":"step-start"}"#);
    part("msg_2", "prt_3", r#"{"type":"reasoning","text":"hm"}"#);
    part(
        "msg_2",
        "prt_4",
        r#"{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"c":1},"output":"no","metadata":{"exit":1}}}"#,
    );
    part(
        "msg_2",
        "prt_5",
        r#"{"type":"tool","callID":"c2","tool":"bash","state":{"status":"error","input":{},"error":"bad"}}"#,
    );
    part(
        "msg_2",
        "prt_6",
        r#"{"type":"step-finish","tokens":{"input":3,"output":1,"cache":{"read":2,"write":0}}}"#,
    );
    part("msg_2", "prt_7", r#"{"type":"step-start"}"#);
    part("msg_2", "prt_8", r#"{"type":"text","text":"done"}"#);
    part("msg_2", "prt_9", r#"{"type":"snapshot"}"#);
    file(
        folder,
        "storage/session/proj/ses_1.json",
        r#"{"id":"ses_1","title":"T","directory":"/p"}"#,
    )
}

#[test]
fn opencode_sessions_are_read() {
    let home = tempfile::tempdir().unwrap();
    let imported = read(Source::Opencode, &opencode(home.path()));
    assert_eq!(
        told(&imported.entries),
        [
            "user: go",
            "model: (hm) | bash{\"c\":1} | bash{}",
            "used 5+1",
            "tool: !bash=no | !bash=bad",
            "model: done"
        ]
    );
    assert_eq!(imported.title.as_deref(), Some("T"));
    assert_eq!(imported.origin.as_deref(), Some("ses_1 of opencode"));
    assert_eq!(imported.skipped["snapshot"], 1);
}

#[test]
fn opencode_export_is_imported_but_not_its_database() {
    let home = tempfile::tempdir().unwrap();
    let text = r#"{"info":{"id":"ses_1","title":"T","directory":"/p"},"messages":[
        {"info":{"id":"msg_1","role":"user","time":{"created":5}},"parts":[{"type":"text","text":"go"}]},
        {"info":{"id":"msg_2","role":"assistant","providerID":"p","modelID":"m"},"parts":[
            {"type":"step-start"},
            {"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"c":1},"output":"ok","metadata":{"exit":0}}},
            {"type":"step-finish","tokens":{"input":3,"output":1,"cache":{"read":2,"write":0}}},
            {"type":"text","text":"done"},
            {"type":"patch"}]}]}"#;
    let imported = read(Source::Opencode, &file(home.path(), "export.json", text));
    assert_eq!(
        told(&imported.entries),
        ["user: go", "model: bash{\"c\":1} | done", "used 5+1", "tool: bash=ok"]
    );
    assert_eq!(imported.project.as_deref(), Some("/p"));
    assert_eq!(imported.origin.as_deref(), Some("ses_1 of opencode"));
    assert_eq!(imported.skipped["patch"], 1);
    let database = file(home.path(), "opencode.db", "SQLite format 3\0 and so on");
    let error = import::read_session(Source::Opencode, &database).unwrap_err();
    assert!(error.sentence.contains("opencode export ID"), "{error}");
}

#[test]
fn import_rejects_ids_with_path_traversal() {
    let home = tempfile::tempdir().unwrap();
    opencode(home.path());
    for id in ["../../session/proj", "..", "", "/etc", "a/b", "a\\u0000"] {
        let text = format!("{{\"id\":\"{id}\"}}");
        let path = file(home.path(), "storage/session/proj/x.json", text);
        let error = import::read_session(Source::Opencode, &path).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Io, "{id}");
    }
    let link = home.path().join("link.jsonl");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    assert!(import::read_session(Source::Codex, &link).is_err());
    assert!(import::read_session(Source::Codex, Path::new("/dev/zero")).is_err());
    assert!(import::read_session(Source::Lines, &home.path().join("nothing")).is_err());
}

#[test]
fn import_skips_overlong_lines_and_deeply_nested_json() {
    let home = tempfile::tempdir().unwrap();
    let said = r#"{"type":"user","message":{"content":"still here"}}"#;
    let long = format!("{{\"type\":\"{}\"}}", "x".repeat(33 * 1024 * 1024));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let path = file(home.path(), "c.jsonl", format!("{long}\n{deep}\n{said}\n"));
    let imported = read(Source::ClaudeCode, &path);
    assert_eq!(told(&imported.entries), ["user: still here"]);
    assert_eq!(imported.skipped["lines that are too long"], 1);
    assert_eq!(imported.skipped["unreadable lines"], 1);
    let huge = home.path().join("huge.jsonl");
    fs::File::create(&huge).unwrap().set_len(5 << 30).unwrap();
    assert!(import::read_session(Source::ClaudeCode, &huge).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn shuffled_codex_transcript_imports_as_a_valid_conversation(order in prop::collection::vec(0..5_usize, 1..20)) {
        let pieces = [
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"go"}]}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"ok"}]}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"s","arguments":"{}","call_id":"a"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"s","arguments":"{}","call_id":"b"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"o"}}"#,
        ];
        let home = tempfile::tempdir().unwrap();
        let text: Vec<_> = order.iter().map(|which| pieces[*which]).collect();
        let path = file(home.path(), "r.jsonl", text.join("\n"));
        if let Ok(imported) = import::read_session(Source::Codex, &path) {
            prop_assert!(is_legal(&imported.entries));
        }
    }
}

#[test]
fn an_import_passes_the_same_redaction() {
    let home = tempfile::tempdir().unwrap();
    let mut options = crate::support::options(home.path());
    options.redact = Arc::new(|_, text: &str| text.replace("hush", "****").into());
    let store = gnoma_store::Store::open(options).unwrap().store;
    let path =
        file(home.path(), "c/c.jsonl", r#"{"type":"user","message":{"content":"say hush"}}"#);
    let session = wait(store.import(read(Source::ClaudeCode, &path), 1)).unwrap().session;
    let Record::Message(message) = load(&store, &session).entries[0].record.clone() else {
        panic!("no message")
    };
    assert_eq!(message.text_content(), "say ****");
}

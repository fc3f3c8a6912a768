//! Nothing reaches the disk that the caller's hook has not seen.

use std::{borrow::Cow, fs, sync::Arc};

use gnoma_core::{
    CallId, Content, Image, Message, ModelRef, RawJson, Redacted, ResultPart, Text, Thinking,
    ToolCall, ToolResult,
    store::{NewSession, Record, ResultStore, SessionStore},
};
use gnoma_store::Store;

use crate::support::{entry, load, options, wait};

const SECRET: &str = "hush\"hush\n7";

/// Every kind of record with the secret wherever a string can be.
fn records() -> Vec<Record> {
    let secret = || format!("a {SECRET} b");
    let model = || ModelRef { provider: secret(), model: secret() };
    let image = || Image { mime: secret(), base64: secret().into() };
    let arguments = serde_json::json!({ "list": [{ secret(): secret() }], "n": 1 });
    let mut call =
        ToolCall::new(CallId::new(secret()), secret(), RawJson::from_value(&arguments).unwrap());
    call.signature = Some(secret());
    call.item = Some(secret());
    let nested = format!("{}\"x {}\"{}", "[".repeat(200), "hush7", "]".repeat(200));
    let deep = ToolCall::new(CallId::new("deep"), "t", RawJson::parse(nested).unwrap());
    let result = ToolResult {
        call_id: call.id.clone(),
        name: secret(),
        parts: vec![ResultPart::Text { text: secret() }, ResultPart::Image(image())],
        is_error: false,
    };
    let says = vec![
        Content::Text(Text { text: secret(), signature: Some(secret()) }),
        Content::Thinking(Thinking {
            text: secret(),
            signature: Some(secret()),
            item: Some(secret()),
        }),
        Content::RedactedThinking(Redacted { data: secret() }),
        Content::ToolCall(call),
        Content::ToolCall(deep),
    ];
    let asks = vec![Content::from_text(secret()), Content::Image(image())];
    let message = |message: Message| Record::Message(Arc::new(message));
    vec![
        message(Message::user(asks).unwrap()),
        message(Message::assistant(says, Some(model()), None).unwrap()),
        message(Message::results(vec![result]).unwrap()),
        Record::Routed { arm: model(), why: secret() },
        Record::Judged { call: CallId::new(secret()), allowed: true, reason: secret() },
        Record::Checked {
            arm: ModelRef { provider: "p".into(), model: secret() },
            by: secret(),
            passed: false,
            evidence: secret(),
        },
        Record::Summary { text: secret(), up_to: gnoma_core::store::EntryId(1) },
        Record::Checkpoint { id: secret() },
        Record::Title { text: secret() },
        Record::Interrupted { calls: vec![CallId::new(secret())] },
    ]
}

#[test]
fn every_stored_string_passes_the_redaction_hook() {
    let home = tempfile::tempdir().unwrap();
    let mut options = options(home.path());
    options.project = format!("/home/{SECRET}");
    options.redact = Arc::new(|_, text: &str| {
        Cow::Owned(text.replace(SECRET, "[kept back]").replace("hush7", "[kept back]"))
    });
    let store = Arc::new(Store::open(options).unwrap().store);
    let title = Some(format!("about {SECRET}"));
    let session = wait(store.begin(NewSession { title, ..NewSession::default() })).unwrap();
    let mut first = None;
    for record in records() {
        let id = wait(store.append(entry(&session, record))).unwrap();
        first.get_or_insert(id);
    }
    wait(store.rename(session.clone(), SECRET.into(), 0)).unwrap();
    wait(store.fork(session.clone(), first.unwrap(), 0)).unwrap();
    wait(store.hold_session(session.clone(), 0)).unwrap();
    let results = store.result_store(session.clone());
    let id = wait(results.save_result(format!("a {SECRET} b"))).unwrap();
    assert_eq!(wait(results.read_slice(id, 0, 99)).unwrap().text, "a [kept back] b");
    drop(results);
    assert!(load(&store, &session).entries.len() > 9);
    assert!(wait(store.search("hush".into(), 10)).unwrap().is_empty());
    assert_clean(home.path());
    drop(store);
    assert_clean(home.path());
}

/// A signature stands for the words as they were: it goes where they change, and stays where not.
#[test]
fn redacted_text_loses_its_signature() {
    let home = tempfile::tempdir().unwrap();
    let mut options = options(home.path());
    options.redact = Arc::new(|_, text: &str| Cow::Owned(text.replace(SECRET, "[kept back]")));
    let store = Arc::new(Store::open(options).unwrap().store);
    let session = crate::support::begin(&store, 0);
    let thinking = |text: &str, signature: Option<&str>, item: Option<&str>| {
        let (signature, item) = (signature.map(str::to_owned), item.map(str::to_owned));
        Content::Thinking(Thinking { text: text.to_owned(), signature, item })
    };
    let text = |text: &str| Content::Text(Text { text: text.into(), signature: Some("S".into()) });
    let says = vec![
        thinking(SECRET, Some("S"), None),
        thinking("calm", Some("S"), None),
        thinking(SECRET, None, Some("one")),
        thinking("the same item", Some("S"), Some("one")),
        thinking("another", Some("S"), Some("two")),
        text(SECRET),
        text("calm"),
    ];
    let message = Message::assistant(says, None, None).unwrap();
    wait(store.append(entry(&session, Record::Message(Arc::new(message))))).unwrap();
    let stored = load(&store, &session).entries;
    let Record::Message(stored) = &stored[0].record else { panic!("{stored:?}") };
    let signed = stored.content().iter().map(|part| match part {
        Content::Text(Text { signature, .. }) | Content::Thinking(Thinking { signature, .. }) => {
            signature.is_some()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(signed.collect::<Vec<_>>(), [false, true, false, false, true, false, true]);
}

fn assert_clean(folder: &std::path::Path) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let found = bytes.windows(4).position(|window| window == b"hush");
        assert_eq!(found, None, "in {}", path.display());
    }
}

#[test]
fn unredacted_records_are_stored_byte_for_byte() {
    let home = tempfile::tempdir().unwrap();
    let store = crate::support::open(home.path());
    let session = crate::support::begin(&store, 0);
    let odd = r#"{"b" : 1e400, "a":[ 12345678901234567890123 ],"a":"\u0041"}"#;
    let call = ToolCall::new(CallId::new("c"), "t", RawJson::parse(odd).unwrap());
    let message = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
    let record = Record::Message(Arc::new(message));
    crate::support::append(&store, &session, record.clone());
    assert_eq!(load(&store, &session).entries[0].record, record);
}

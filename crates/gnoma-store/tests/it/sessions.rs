//! Sessions as people use them.

use std::{borrow::Cow, fs, os::unix::fs::PermissionsExt, sync::Arc};

use gnoma_core::{
    CallId, RawJson, ToolCall, ToolResult,
    store::{
        EntryId, NewSession, PageRequest, Parent, Record, SessionId, SessionStore, StoreErrorKind,
    },
};
use gnoma_store::{Options, Retention};

use crate::support::{append, begin, entry, is_legal, load, open, options, says, turn, wait};

#[test]
fn session_is_loaded_after_reopening_the_store() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 1_709_210_096_789);
    assert!(session.as_str().starts_with("20240229-123456-"), "{session}");
    let records = turn(1);
    for record in &records {
        append(&store, &session, record.clone());
    }
    drop(store);

    let store = open(home.path());
    let page = load(&store, &session);
    assert_eq!(page.earlier, None);
    let kept: Vec<_> = page.entries.iter().map(|entry| entry.record.clone()).collect();
    assert_eq!(kept, records);
    let facts = wait(store.session_facts(session)).unwrap();
    assert_eq!((facts.messages, facts.usage.input, facts.usage.output), (4, 10, 2));
    assert_eq!(facts.title, "question 1");
    assert_eq!(facts.project, "/home/me/project");
}

/// Sessions of one process on one database: one thread writes for them, but what one may write and what
/// it holds is its own.
#[test]
fn stores_on_one_database_have_separate_locks_and_redaction() {
    let home = tempfile::tempdir().unwrap();
    let one = open(home.path());
    let shouting = Options {
        redact: Arc::new(|_, text| Cow::Owned(text.to_uppercase())),
        ..options(home.path())
    };
    let database = one.database();
    let two = database.open_store(shouting.clone()).unwrap();
    let other = Options { key: "other".to_owned(), ..shouting.clone() };
    assert!(database.open_store(other).is_none(), "another file");

    let (mine, yours) = (begin(&one, 1), begin(&two, 2));
    append(&one, &mine, says("quiet"));
    append(&two, &yours, says("loud"));
    let words = |session| format!("{:?}", load(&one, session).entries);
    assert!(words(&mine).contains("quiet") && words(&yours).contains("LOUD"));

    wait(one.hold_session(mine.clone(), 3)).unwrap();
    let held = wait(two.hold_session(mine.clone(), 3)).unwrap_err();
    assert!(matches!(held.kind, StoreErrorKind::Held { .. }), "{held:?}");
    drop(one);
    wait(two.hold_session(mine, 3)).unwrap();
    append(&two, &yours, says("still here"));
    drop(two);
    assert!(!database.is_open() && database.open_store(shouting).is_none());
}

#[test]
fn a_session_gets_the_id_it_asks_for() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let wanted = gnoma_store::session_id(1_709_210_096_789, 0xabc);
    let begin_as = |id: &SessionId| {
        let new = NewSession { id: Some(id.clone()), ..NewSession::default() };
        wait(store.begin(new))
    };
    assert_eq!(begin_as(&wanted).unwrap(), wanted);
    append(&store, &wanted, says("hi"));
    assert_eq!(wait(store.session_facts(wanted.clone())).unwrap().messages, 1);

    let twice = begin_as(&wanted).unwrap_err();
    assert_eq!(twice.kind, StoreErrorKind::Exists);
    assert!(twice.sentence.contains(wanted.as_str()), "{twice}");
    for text in ["", "mine", "20240229-123456-ABCDEF", "20240229-123456-abcdef\n"] {
        let refused = begin_as(&SessionId::new(text)).unwrap_err();
        assert_eq!(refused.kind, StoreErrorKind::InvalidId, "{text:?}");
    }
    assert_eq!(wait(store.list(9)).unwrap().len(), 1);
}

#[test]
fn session_files_are_readable_by_their_owner_only() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("a/b");
    let store = open(&folder);
    let session = begin(&store, 0);
    append(&store, &session, says("hi"));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn session_pages_join_to_the_whole_history() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    for number in 0..10 {
        turn(number).into_iter().for_each(|record| {
            append(&store, &session, record);
        });
    }
    let whole = load(&store, &session).entries;
    let mut joined = Vec::new();
    let mut tip = None;
    loop {
        let request = PageRequest { tip, max_entries: 9, max_bytes: 2000 };
        let mut page = wait(store.load(session.clone(), request)).unwrap();
        assert!(!page.entries.is_empty() && page.entries.len() <= 9);
        page.entries.append(&mut joined);
        joined = page.entries;
        tip = page.earlier;
        if tip.is_none() {
            break;
        }
    }
    assert_eq!(joined, whole);
}

#[test]
fn interrupted_turn_is_closed_when_the_session_is_locked() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    for record in turn(1).into_iter().take(4) {
        append(&store, &session, record);
    }
    assert!(!is_legal(&load(&store, &session).entries));
    let taken = wait(store.hold_session(session.clone(), 5)).unwrap();
    let calls: Vec<_> = taken.interrupted.iter().map(|call| call.as_str().to_owned()).collect();
    // The other was not noted, as each of several is before it runs.
    assert_eq!(calls, ["call_0"]);
    let entries = load(&store, &session).entries;
    assert!(is_legal(&entries));
    assert!(matches!(entries.last().unwrap().record, Record::Interrupted { .. }));
    assert!(wait(store.hold_session(session, 6)).unwrap().interrupted.is_empty());
}

#[test]
fn unanswered_permission_question_is_denied_on_resume() {
    let judged = |call: &str, allowed| Record::Judged {
        call: CallId::new(call),
        allowed,
        reason: String::new(),
    };
    let asked = |call: &str| Record::Asked { call: CallId::new(call) };
    // Of `call_0` and `call_1`: what was stored of them, which were waiting for an answer, and which had begun.
    let cases: [(Vec<Record>, &[&str], &[&str]); 6] = [
        (vec![], &[], &[]),
        (vec![judged("call_0", true), asked("call_1")], &["call_1"], &["call_0"]),
        (vec![asked("call_0"), asked("call_1")], &["call_0", "call_1"], &[]),
        (vec![asked("call_0"), asked("call_1"), judged("call_0", true)], &["call_1"], &["call_0"]),
        // It ran, and then somebody was asked whether it may run again outside the sandbox.
        (vec![judged("call_0", true), asked("call_0")], &[], &["call_0"]),
        (vec![asked("gnoma-question-1")], &[], &[]),
    ];
    let home = tempfile::tempdir().unwrap();
    for (records, waiting, begun) in cases {
        let store = open(home.path());
        let session = begin(&store, 0);
        let calling = turn(1).into_iter().filter(|record| matches!(record, Record::Message(_)));
        for record in calling.take(2).chain(records) {
            append(&store, &session, record);
        }
        drop(store);
        let store = open(home.path());
        let taken = wait(store.hold_session(session.clone(), 5)).unwrap();
        let ids = |calls: &[CallId]| Vec::from_iter(calls.iter().map(ToString::to_string));
        assert_eq!(ids(&taken.unapproved), waiting);
        let entries = load(&store, &session).entries;
        assert!(is_legal(&entries));
        let results = entries.iter().rev().find_map(|entry| match &entry.record {
            Record::Message(message) => Some(message),
            _ => None,
        });
        for result in results.unwrap().tool_results() {
            let was_waiting = waiting.contains(&result.call_id.as_str());
            let was_running = ids(&taken.interrupted).contains(&result.call_id.to_string());
            let text = result.joined_text();
            assert_eq!(text.contains("not approved"), was_waiting, "{text}");
            assert_eq!(text.contains("is unknown"), was_running, "{text}");
            assert_eq!(text.contains("did not run"), !was_running, "{text}");
            let began = begun.contains(&result.call_id.as_str());
            assert_eq!(was_running, began, "{text}");
            let no = Record::Judged {
                call: result.call_id.clone(),
                allowed: false,
                reason: "gnoma stopped before anybody approved it".to_owned(),
            };
            assert_eq!(entries.iter().any(|entry| entry.record == no), was_waiting);
        }
        let again = wait(store.hold_session(session, 6)).unwrap();
        assert!(again.interrupted.is_empty() && again.unapproved.is_empty());
    }
}

#[test]
fn finished_tool_call_keeps_its_result_on_resume() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    let calling = turn(1).into_iter().filter(|record| matches!(record, Record::Message(_)));
    for record in calling.take(2) {
        append(&store, &session, record);
    }
    let call = ToolCall::new(CallId::new("call_0"), "bash", RawJson::empty_object());
    let result = ToolResult::from_text(&call, "what it said", false);
    let judged = |call: &str| Record::Judged {
        call: CallId::new(call),
        allowed: true,
        reason: String::new(),
    };
    append(&store, &session, judged("call_0"));
    let noted = append(&store, &session, Record::ToolEnded(result.clone()));
    append(&store, &session, judged("call_1"));
    drop(store);
    let store = open(home.path());
    let taken = wait(store.hold_session(session.clone(), 5)).unwrap();
    assert_eq!(taken.interrupted, [CallId::new("call_1")]);
    let entries = load(&store, &session).entries;
    assert!(is_legal(&entries));
    let (answer, results) = entries
        .iter()
        .rev()
        .find_map(|entry| match &entry.record {
            Record::Message(message) => Some((entry.id, message)),
            _ => None,
        })
        .unwrap();
    assert_eq!(results.tool_results().next(), Some(&result));
    // What is hidden later leaves no copy.
    append(&store, &session, Record::Tombstone { of: answer });
    assert!(load(&store, &session).entries.iter().all(|entry| entry.id != noted));
}

#[test]
fn session_locked_by_another_process_is_reported_and_can_be_forked() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (open(home.path()), open(home.path()));
    let session = begin(&first, 0);
    let said = append(&first, &session, says("mine"));
    wait(first.hold_session(session.clone(), 1)).unwrap();

    let refused = wait(second.hold_session(session.clone(), 2)).unwrap_err();
    let StoreErrorKind::Held { by } = &refused.kind else { panic!("{refused:?}") };
    assert_eq!(by.pid, std::process::id());
    let refused = wait(second.append(entry(&session, says("no")))).unwrap_err();
    assert!(matches!(refused.kind, StoreErrorKind::Held { .. }));
    assert!(wait(second.delete(session.clone())).is_err());
    assert!(wait(second.session_facts(session.clone())).unwrap().held_by.is_some());

    let fork = wait(second.fork(session.clone(), said, 3)).unwrap();
    append(&second, &fork, says("my own way"));
    assert_eq!(load(&second, &fork).entries.len(), 2);
    assert_eq!(load(&first, &session).entries.len(), 1);
    let facts = wait(first.session_facts(fork)).unwrap();
    assert_eq!(facts.forked_from, Some((session.clone(), said)));

    drop(first);
    wait(second.hold_session(session, 4)).unwrap();
}

#[test]
fn rewind_creates_a_new_branch_and_keeps_the_old_one() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    let first = append(&store, &session, says("one"));
    let second = append(&store, &session, says("two"));
    let mut back = entry(&session, Record::Rewound { from: second });
    back.parent = Parent::After(first);
    wait(store.append(back)).unwrap();
    append(&store, &session, says("other"));
    let texts = |tip| -> Vec<EntryId> {
        let request = PageRequest { tip, ..crate::support::ALL };
        let page = wait(store.load(session.clone(), request)).unwrap();
        page.entries.iter().map(|entry| entry.id).collect()
    };
    assert_eq!(texts(None).len(), 3);
    assert_eq!(texts(Some(second)), [first, second]);
}

#[test]
fn session_search_finds_words_and_treats_operators_as_text() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (old, new) = (begin(&store, 0), begin(&store, 1));
    append(&store, &old, says("the walrus likes oysters, said the carpenter"));
    let hidden = append(&store, &new, says("a walrus is here\nand OYSTERS too"));
    let find = |query: &str| wait(store.search(query.into(), 10)).unwrap();
    let hits = find("walrus oyst");
    assert_eq!(hits.iter().map(|hit| &hit.session).collect::<Vec<_>>(), [&new, &old]);
    assert!(hits.iter().all(|hit| hit.snippet.contains("walrus")));
    for nothing in ["", "\"", "NOT", "walrus OR carpenter", "*", "a\0b"] {
        find(nothing);
    }
    append(&store, &new, Record::Tombstone { of: hidden });
    assert_eq!(find("walrus").len(), 1);
    wait(store.delete(old)).unwrap();
    assert!(find("walrus").is_empty());
}

#[test]
fn fork_keeps_shared_entries_after_its_source_is_deleted() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let source = begin(&store, 0);
    let kept = append(&store, &source, says("shared"));
    append(&store, &source, says("unshared walrus"));
    let fork = wait(store.fork(source.clone(), kept, 1)).unwrap();
    let grandchild = wait(store.fork(fork.clone(), kept, 2)).unwrap();
    wait(store.delete(source.clone())).unwrap();
    assert_eq!(wait(store.session_facts(source)).unwrap_err().kind, StoreErrorKind::NotFound);
    assert!(wait(store.search("walrus".into(), 5)).unwrap().is_empty());
    wait(store.delete(fork)).unwrap();
    assert_eq!(load(&store, &grandchild).entries.len(), 1);
    wait(store.delete(grandchild)).unwrap();
    assert!(wait(store.search("shared".into(), 5)).unwrap().is_empty());
}

#[test]
fn unknown_session_or_entry_ids_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (session, other) = (begin(&store, 0), begin(&store, 1));
    let foreign = append(&store, &other, says("not yours"));
    let nobody = SessionId::new("20200101-000000-000000");
    let not_found = |result: Result<(), gnoma_core::store::StoreError>| {
        assert_eq!(result.unwrap_err().kind, StoreErrorKind::NotFound);
    };
    not_found(wait(store.hold_session(nobody.clone(), 0)).map(drop));
    not_found(wait(store.rename(nobody.clone(), "x".into(), 0)));
    not_found(wait(store.delete(nobody.clone())));
    not_found(wait(store.fork(session.clone(), foreign, 0)).map(drop));
    not_found(wait(store.append(entry(&nobody, says("x")))).map(drop));
    let mut astray = entry(&session, says("x"));
    astray.parent = Parent::After(foreign);
    not_found(wait(store.append(astray)).map(drop));
    not_found(wait(store.append(entry(&session, Record::Tombstone { of: foreign }))).map(drop));
    assert!(load(&store, &session).entries.is_empty());
    assert_eq!(wait(store.list(10)).unwrap().len(), 2);
}

#[test]
fn session_pruning_by_age_count_and_size_spares_locked_sessions() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let sessions: Vec<_> = (0..6)
        .map(|at_ms| {
            let session = begin(&store, at_ms * 1000);
            let mut new = entry(&session, says("x".repeat(1000)));
            new.at_ms = at_ms * 1000;
            wait(store.append(new)).unwrap();
            session
        })
        .collect();
    let other = open(home.path());
    wait(other.hold_session(sessions[0].clone(), 0)).unwrap();
    let prune = |retention| wait(store.prune(retention, 5000)).unwrap();
    let aged = prune(Retention { max_age_ms: Some(3500), ..Retention::default() });
    assert_eq!(aged.in_use, [sessions[0].clone()]);
    assert_eq!(aged.forgotten, [sessions[1].clone()]);
    let counted = prune(Retention { max_sessions: Some(4), ..Retention::default() });
    assert_eq!(counted.in_use, [sessions[0].clone()]);
    assert!(counted.forgotten.is_empty());
    wait(other.release_session(sessions[0].clone())).unwrap();
    let sized = prune(Retention { max_bytes: Some(2500), ..Retention::default() });
    assert_eq!(sized.forgotten, [sessions[0].clone(), sessions[2].clone(), sessions[3].clone()]);
    assert_eq!(wait(store.list(10)).unwrap().len(), 2);
    assert_eq!(prune(Retention::default()), gnoma_store::PrunedSessions::default());
}

#[test]
fn entries_appended_together_are_atomic_and_consecutive() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    let first = append(&store, &session, says("first"));
    append(&store, &session, says("left behind"));
    let mut together: Vec<_> = turn(1).into_iter().map(|record| entry(&session, record)).collect();
    together[0].parent = Parent::After(first);
    let ids = wait(store.append_all(together.clone())).unwrap();
    let path = load(&store, &session).entries;
    assert_eq!(path.iter().skip(1).map(|entry| entry.id).collect::<Vec<_>>(), ids);
    let records: Vec<_> = path.into_iter().skip(1).map(|entry| entry.record).collect();
    assert_eq!(records, turn(1));

    // One of them is no entry: none of them is kept.
    together[0].parent = Parent::Tip;
    let nowhere = Record::Tombstone { of: EntryId(9_999) };
    together.push(entry(&session, nowhere));
    wait(store.append_all(together)).unwrap_err();
    assert_eq!(load(&store, &session).entries.last().map(|entry| entry.id), ids.last().copied());
}

//! What servers, files and other people bring that no program of ours would write.

use std::{
    borrow::Cow,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    Usage,
    store::{
        Entry, EntryId, NewEntry, Record, ResultId, ResultStore, SessionId, SessionStore,
        StoreErrorKind,
    },
};
use gnoma_store::{Options, Retention, Store, import::ImportedTranscript};
use rusqlite::Connection;

use crate::support::{append, begin, entry, load, open, options, says, try_open, turn, wait};

const HOUR_MS: i64 = 60 * 60 * 1000;

fn beside(path: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}.{ending}", path.display()))
}

fn raw(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |file: fs::DirEntry| file.file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|file| name(file.unwrap())).collect();
    names.sort();
    names
}

fn imported(records: impl IntoIterator<Item = (i64, Record)>) -> ImportedTranscript {
    let entries = (1..)
        .zip(records)
        .map(|(id, (at_ms, record))| Entry { id: EntryId(id), parent: None, at_ms, record })
        .collect();
    ImportedTranscript { entries, ..ImportedTranscript::default() }
}

#[test]
fn huge_token_counts_are_stored_without_overflow() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let most = u64::MAX;
    let absurd =
        Usage { input: most, output: most, cache_read: most, cache_write: most, reasoning: most };
    let session = begin(&store, 0);
    for _ in 0..3 {
        append(&store, &session, Record::Used(absurd));
    }
    let records = (0..3).map(|_| (0, Record::Used(absurd))).chain([(0, says("hello"))]);
    wait(store.import(imported(records), 1)).unwrap();
    let listed = wait(store.list(9)).unwrap();
    assert_eq!(listed.len(), 2);
    for facts in listed {
        let mut sum = facts.usage;
        sum += absurd;
        assert_eq!(sum.total_tokens(), most);
        assert!(facts.usage.input < most / 1024);
    }
    assert!(!beside(store.path(), "doubt").exists());
}

#[test]
fn overflowed_session_totals_are_read_and_repaired() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    let sums = "UPDATE session SET input = 9.3e18, bytes = 9.3e18, messages = -1.0";
    raw(store.path()).execute(sums, []).unwrap();
    assert_eq!(wait(store.list(9)).unwrap().len(), 1);
    wait(store.prune(Retention { max_age_ms: Some(i64::MAX), ..Retention::default() }, 0)).unwrap();
    append(&store, &session, Record::Used(Usage { input: 1, ..Usage::default() }));
    let whole = "SELECT typeof(input) = 'integer' AND typeof(bytes) = 'integer' FROM session";
    assert!(raw(store.path()).query_row(whole, [], |row| row.get::<_, bool>(0)).unwrap());
    assert!(!beside(store.path(), "doubt").exists());
}

#[test]
fn database_in_use_is_not_recovered() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    fs::write(beside(store.path(), "doubt"), "").unwrap();
    let Err(error) = try_open(home.path()) else { panic!("it was rescued under a writer") };
    assert_eq!(error.kind, StoreErrorKind::Busy, "{error}");
    append(&store, &session, says("still here"));
    drop(store);
    let again = try_open(home.path()).unwrap();
    assert_eq!(again.rescued.unwrap().entries, 1);
    // Who has rescued goes on as one of the users.
    fs::write(beside(again.store.path(), "doubt"), "").unwrap();
    assert!(try_open(home.path()).is_err());
    assert_eq!(load(&again.store, &session).entries.len(), 1);
}

#[test]
fn database_recovery_preserves_session_locks() {
    const ROW: &str = "INSERT INTO hold SELECT number, 'other', hold.pid, hold.host, hold.boot, \
                       hold.space, hold.started, 0, 0 FROM session, kept.hold";
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (path, session) = (store.path().to_owned(), begin(&store, 0));
    wait(store.hold_session(session.clone(), 0)).unwrap();
    let side = raw(&path);
    let kept = home.path().join("kept");
    side.execute("ATTACH ?1 AS kept", [kept.to_str()]).unwrap();
    side.execute("CREATE TABLE kept.hold AS SELECT * FROM main.hold", []).unwrap();
    drop(store);
    side.execute(ROW, []).unwrap();
    drop(side);
    fs::write(beside(&path, "doubt"), "").unwrap();
    let again = try_open(home.path()).unwrap();
    assert!(again.rescued.is_some());
    let error = wait(again.store.hold_session(session, 1)).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Held { .. }), "{error}");
}

/// Adds an entry as a newer version may write it, at the tip.
fn add_unknown(path: &Path, session: &SessionId, body: &str) {
    let side = raw(path);
    side.execute(
        "INSERT INTO entry(session, parent, at_ms, body) \
         SELECT number, tip, 7, ?2 FROM session WHERE id = ?1",
        [session.as_str(), body],
    )
    .unwrap();
    let id = side.last_insert_rowid();
    side.execute("UPDATE session SET tip = ?1", [id]).unwrap();
}

#[test]
fn records_of_a_newer_version_are_preserved_and_skipped() {
    const BODIES: [&str; 3] =
        [r#"{"dreamt":{"of":"sheep"}}"#, r#""woken""#, r#"{"message":{"role":"chorus"}}"#];
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (path, session) = (store.path().to_owned(), begin(&store, 0));
    for body in BODIES {
        append(&store, &session, says("a walrus"));
        add_unknown(&path, &session, body);
    }
    let all_is_there = |store: &Store| {
        assert_eq!(load(store, &session).entries.len(), BODIES.len());
        assert!(wait(store.hold_session(session.clone(), 1)).unwrap().interrupted.is_empty());
        assert_eq!(wait(store.search("walrus".into(), 9)).unwrap().len(), 3);
        let kept = "SELECT count(*) FROM entry WHERE body IN (?1, ?2, ?3)";
        let kept: i64 = raw(&path).query_row(kept, BODIES, |row| row.get(0)).unwrap();
        assert_eq!(kept, 3);
        assert!(!beside(&path, "doubt").exists());
    };
    all_is_there(&store);
    drop(store);
    fs::write(beside(&path, "doubt"), "").unwrap();
    let again = try_open(home.path()).unwrap();
    let rescued = again.rescued.unwrap();
    assert_eq!((rescued.entries, rescued.lost), (6, 0));
    all_is_there(&again.store);
}

#[test]
fn unreadable_record_does_not_trigger_database_recovery() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    append(&store, &session, says("before"));
    add_unknown(store.path(), &session, "{ no json");
    append(&store, &session, says("after"));
    assert_eq!(load(&store, &session).entries.len(), 2);
    assert!(!beside(store.path(), "doubt").exists());
}

#[test]
fn tool_call_answered_by_a_newer_record_version_is_not_interrupted() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    for record in turn(0).into_iter().take(3) {
        append(&store, &session, record);
    }
    add_unknown(store.path(), &session, r#"{"message":{"role":"tool","content":["odd"]}}"#);
    assert!(wait(store.hold_session(session, 1)).unwrap().interrupted.is_empty());
}

#[test]
fn database_recovery_leaves_no_temporary_files() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (path, session) = (store.path().to_owned(), begin(&store, 0));
    append(&store, &session, says("kept"));
    drop(store);
    fs::write(beside(&path, "doubt"), "").unwrap();
    drop(try_open(home.path()).unwrap());
    for name in names(home.path()) {
        let half = ["building", "copy", "rescued", "doubt"].iter().any(|part| name.contains(part));
        assert!(!half, "{name}");
    }
}

#[test]
fn recovery_interrupted_between_renames_is_finished_once() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (path, session) = (store.path().to_owned(), begin(&store, 0));
    append(&store, &session, says("kept"));
    drop(store);
    crate::support::fold(&path);
    fs::rename(&path, beside(&path, "rescued")).unwrap();
    for ending in ["-wal", "-journal", "-shm"] {
        fs::write(format!("{}{ending}", path.display()), "of the damaged one").unwrap();
    }
    fs::write(beside(&path, "doubt"), "").unwrap();
    let store = open(home.path());
    assert_eq!(load(&store, &session).entries.len(), 1);
    wait(store.check_integrity()).unwrap();
    assert!(!beside(&path, "doubt").exists());
}

#[test]
fn damaged_database_copies_are_limited_in_number() {
    const MOST: usize = 8;
    let home = tempfile::tempdir().unwrap();
    let path = options(home.path()).path();
    drop(open(home.path()));
    let mut first = None;
    for _ in 0..2 * MOST {
        fs::write(beside(&path, "doubt"), "").unwrap();
        let rescued = try_open(home.path()).unwrap().rescued.unwrap();
        assert!(rescued.aside.exists());
        first.get_or_insert(rescued.aside);
    }
    let is_part = |name: &str| ["-wal", "-shm", "-journal"].iter().any(|end| name.ends_with(end));
    let names = names(home.path());
    let aside = names.iter().filter(|name| name.contains(".damaged-") && !is_part(name));
    assert_eq!(aside.count(), MOST);
    assert!(first.unwrap().exists());
}

#[test]
fn planted_symlink_in_place_of_a_lock_file_is_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("sessions");
    fs::create_dir(&folder).unwrap();
    let path = options(&folder).path();
    let outside = home.path().join("outside");
    for ending in ["lock", "users"] {
        symlink(&outside, beside(&path, ending)).unwrap();
        assert!(try_open(&folder).is_err(), "{ending}");
        assert!(!outside.exists(), "{ending}");
        fs::remove_file(beside(&path, ending)).unwrap();
    }
    open(&folder);
}

#[test]
fn session_folder_mode_is_tightened_and_foreign_owner_rejected() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("sessions");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    drop(open(&folder));
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    if !rustix::process::geteuid().is_root() {
        return gnoma_testkit::skip_test("only root can make a stranger's folder");
    }
    std::os::unix::fs::chown(&folder, Some(4242), None).unwrap();
    let Err(error) = try_open(&folder) else { panic!("a stranger's folder was used") };
    assert_eq!(error.kind, StoreErrorKind::Foreign);
    assert!(error.sentence.contains("belongs to another user"), "{error}");
}

#[test]
fn imported_result_ids_do_not_exhaust_the_id_range() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(open(home.path()));
    let handles = [i64::MAX.to_string(), "4294967296".into(), "0".into(), "7".into()];
    let results =
        handles.iter().map(|number| (ResultId::new(format!("r{number}")), "text".into())).collect();
    let import = ImportedTranscript { results, ..imported([(0, says("hello"))]) };
    wait(store.import(import, 1)).unwrap();
    let session = wait(store.list(1)).unwrap().remove(0).id;
    let results = store.result_store(session.clone());
    assert_eq!(wait(results.save_result("more".into())).unwrap().as_str(), "r8");
    assert_eq!(wait(store.list_results(session)).unwrap().len(), 2);
}

#[test]
fn a_panic_in_one_job_is_that_jobs_error() {
    let home = tempfile::tempdir().unwrap();
    let mut upset = options(home.path());
    upset.redact = Arc::new(|_, text| {
        assert!(!text.contains("upsetting"), "redaction failed");
        Cow::Borrowed(text)
    });
    let store = Store::open(upset).unwrap().store;
    let session = begin(&store, 0);
    let error = wait(store.append(entry(&session, says("upsetting")))).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Io, "{error}");
    append(&store, &session, says("calm"));
    assert_eq!(load(&store, &session).entries.len(), 1);
}

/// Lets a process elsewhere hold `session` that last wrote at 0.
fn held_elsewhere(path: &Path, session: &SessionId) {
    let side = raw(path);
    side.execute(
        "INSERT INTO hold SELECT number, 'token', 1, 'elsewhere', 'boot', 'space', '1', 0, 0 \
         FROM session WHERE id = ?1",
        [session.as_str()],
    )
    .unwrap();
}

fn at(folder: &Path, clock: fn() -> i64) -> Store {
    Store::open(Options { clock, ..options(folder) }).unwrap().store
}

#[test]
fn stale_session_lock_is_ignored_and_not_renewed() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(at(home.path(), || 7 * HOUR_MS));
    let session = begin(&store, 0);
    held_elsewhere(store.path(), &session);
    let late = NewEntry { at_ms: 7 * HOUR_MS, ..entry(&session, says("late")) };
    wait(store.append(late)).unwrap();
    let seen: i64 =
        raw(store.path()).query_row("SELECT seen_ms FROM hold", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 0);
    wait(store.result_store(session.clone()).save_result("large".into())).unwrap();
    assert_eq!(wait(store.session_facts(session.clone())).unwrap().held_by, None);
    assert_eq!(wait(store.list(1)).unwrap()[0].held_by, None);
    wait(store.delete(session)).unwrap();
}

#[test]
fn fresh_session_lock_of_another_machine_is_respected() {
    let home = tempfile::tempdir().unwrap();
    let store = at(home.path(), || HOUR_MS);
    let session = begin(&store, 0);
    held_elsewhere(store.path(), &session);
    assert!(wait(store.session_facts(session.clone())).unwrap().held_by.is_some());
    assert!(wait(store.append(entry(&session, says("late")))).is_err());
    assert!(wait(store.delete(session)).is_err());
}

#[test]
fn deleted_session_text_is_erased_from_the_database_files() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let kept = begin(&store, 0);
    let session = begin(&store, 1);
    // More than is given back at once, and too few entries for the index to clean up by itself.
    for number in 0..12 {
        append(&store, &session, says(format!("{} {number}", "qzxwalrus ".repeat(100_000))));
    }
    for number in 0..400 {
        append(&store, &kept, says(format!("kept {number}")));
    }
    assert_eq!(wait(store.search("qzxwalrus".into(), 1)).unwrap().len(), 1);
    wait(store.delete(session)).unwrap();
    let path = store.path().to_owned();
    drop(store);
    for name in names(home.path()) {
        let bytes = fs::read(home.path().join(&name)).unwrap();
        assert!(!bytes.windows(8).any(|bytes| bytes == b"zxwalrus"), "{name}");
    }
    let store = open(home.path());
    assert_eq!(wait(store.search("kept".into(), 9)).unwrap().len(), 3);
    wait(store.check_integrity()).unwrap();
    drop(store);
    assert!(fs::metadata(path).unwrap().len() < 1_000_000);
}

#[test]
fn times_of_an_import_lie_between_1970_and_now() {
    const NOW: i64 = 50_000;
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let old = imported([(-5, says("first")), (700, says("second"))]);
    let old = wait(store.import(old, NOW)).unwrap().session;
    let absurd = imported([(i64::MAX, says("late")), (i64::MIN, says("early"))]);
    let absurd = wait(store.import(absurd, NOW)).unwrap().session;
    let newest = begin(&store, NOW + 1);
    let listed: Vec<_> = wait(store.list(9)).unwrap();
    let order: Vec<_> = listed.iter().map(|facts| (&facts.id, facts.changed_ms)).collect();
    assert_eq!(order, [(&newest, NOW + 1), (&absurd, NOW), (&old, 700)]);
    let times: Vec<_> = load(&store, &absurd).entries.iter().map(|entry| entry.at_ms).collect();
    assert_eq!(times, [NOW, 0]);
    // What was just taken over is not too old to keep.
    let retention = Retention { max_age_ms: Some(10_000), ..Retention::default() };
    assert!(wait(store.prune(retention, NOW + 1)).unwrap().forgotten.is_empty());
}

#[test]
fn a_session_is_imported_once() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let import = |origin: &str| ImportedTranscript {
        origin: Some(origin.to_owned()),
        ..imported([(0, says("hello"))])
    };
    let first = wait(store.import(import("acme 1"), 1)).unwrap();
    assert!(first.is_new);
    let again = wait(store.import(import("acme 1"), 2)).unwrap();
    assert!(!again.is_new && again.session == first.session);
    assert!(wait(store.import(import("acme 2"), 3)).unwrap().is_new);
    let path = store.path().to_owned();
    drop(store);
    fs::write(beside(&path, "doubt"), "").unwrap();
    let store = try_open(home.path()).unwrap().store;
    assert!(!wait(store.import(import("acme 1"), 4)).unwrap().is_new);
    wait(store.delete(first.session)).unwrap();
    assert!(wait(store.import(import("acme 1"), 5)).unwrap().is_new);
}

#[test]
fn imported_transcript_is_matched_to_its_project() {
    let about = |project: Option<&str>| ImportedTranscript {
        project: project.map(str::to_owned),
        ..ImportedTranscript::default()
    };
    let here = Path::new("/home/me/app");
    for project in [None, Some("/home/me/app"), Some("/home/me/app/"), Some("/home/me/app/src")] {
        assert!(about(project).is_about(here), "{project:?}");
    }
    for project in ["/home/me/apple", "/home/me", "/home/me/app/../other"] {
        assert!(!about(Some(project)).is_about(here), "{project}");
    }
}

#[test]
fn secret_in_the_project_path_is_redacted_in_file_names_and_recovery() {
    const SECRET: &str = "hush7hush7";
    let home = tempfile::tempdir().unwrap();
    let project = format!("/home/me/{SECRET}");
    let options = || {
        Options::new(
            home.path(),
            project.clone(),
            Arc::new(|_, text: &str| Cow::Owned(text.replace(SECRET, "[kept back]"))),
        )
    };
    let store = Store::open(options()).unwrap().store;
    let (path, session) = (store.path().to_owned(), begin(&store, 0));
    append(&store, &session, says("kept"));
    drop(store);
    raw(&path).execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM session").unwrap();
    fs::write(beside(&path, "doubt"), "").unwrap();
    let store = Store::open(options()).unwrap().store;
    assert_eq!(wait(store.list(9)).unwrap().len(), 1);
    drop(store);
    for name in names(home.path()) {
        assert!(!name.contains(SECRET), "{name}");
        let bytes = fs::read(home.path().join(&name)).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|found| found == SECRET.as_bytes()), "{name}");
    }
}

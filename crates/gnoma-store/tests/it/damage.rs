//! Damaged, foreign and newer databases.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use gnoma_core::store::{SessionStore, StoreError, StoreErrorKind};
use gnoma_store::{Options, RecoveryCallback, Store};

use crate::{
    harm::{Dice, PAGE, place, sound},
    support::{
        ALL, append, begin, is_legal, load, log_of, open, options, says, try_open, turn, wait,
    },
};

const SESSIONS: usize = 12;
const TURNS: usize = 12;
const ROUNDS: u64 = 40;

fn damage(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match dice.below(4) {
        0 => bytes.truncate(dice.below(bytes.len()) + 1),
        1 => {
            let start = dice.below(bytes.len());
            let end = (start + dice.below(20_000)).min(bytes.len());
            bytes[start..end].fill(0);
        }
        2 => {
            let at = dice.below(200);
            bytes[at] ^= 1 << dice.below(8);
        }
        _ => {
            for _ in 0..=dice.below(40) {
                let at = dice.below(bytes.len());
                bytes[at] ^= 1 << dice.below(8);
            }
        }
    }
    bytes
}

/// Reads and writes all there is; the kind of the first error.
fn use_all(store: &Store) -> Result<usize, StoreErrorKind> {
    let mut entries = 0;
    for facts in wait(store.list(1000)).map_err(|error| error.kind)? {
        wait(store.hold_session(facts.id.clone(), 0)).map_err(|error| error.kind)?;
        let page = wait(store.load(facts.id, ALL)).map_err(|error| error.kind)?;
        entries += page.entries.len();
    }
    wait(store.search("answer".into(), 100)).map_err(|error| error.kind)?;
    Ok(entries)
}

#[test]
fn random_database_damage_is_repaired_without_panic_or_overwrite() {
    let whole = sound(SESSIONS, TURNS);
    let mut dice = Dice(0x5eed_5eed);
    for round in 0..ROUNDS {
        let bytes = damage(&whole, &mut dice);
        let home = tempfile::tempdir().unwrap();
        let path = place(home.path(), &bytes);
        let opened = match try_open(home.path()) {
            Ok(opened) => opened,
            Err(error) => {
                let refused = [StoreErrorKind::Foreign, StoreErrorKind::TooNew];
                assert!(refused.contains(&error.kind), "round {round}: {error:?}");
                assert!(fs::read(&path).unwrap() == bytes, "round {round}");
                continue;
            }
        };
        if let Some(rescued) = &opened.rescued {
            assert!(fs::read(&rescued.aside).unwrap() == bytes, "round {round}");
        }
        use_all(&opened.store).unwrap();
        let checked = wait(opened.store.check_integrity());
        drop(opened);
        let again = try_open(home.path()).unwrap();
        assert_eq!(again.rescued.is_some(), checked.is_err(), "round {round}");
        use_all(&again.store).unwrap();
        wait(again.store.check_integrity()).unwrap();
    }
}

/// What an unclean end of the machine leaves: nothing can be read of it, and a new one begins.
#[test]
fn zeroed_or_truncated_database_is_set_aside_and_reported() {
    let whole = sound(1, 1);
    for bytes in [vec![0; whole.len()], vec![0; 10], whole[..3000].to_vec(), whole[..20].to_vec()] {
        let home = tempfile::tempdir().unwrap();
        place(home.path(), &bytes);
        let opened = try_open(home.path()).unwrap_or_else(|error| panic!("{error}"));
        let rescued = opened.rescued.clone().expect("it is said");
        assert!(rescued.unknown && rescued.entries == 0, "{rescued}");
        assert!(fs::read(&rescued.aside).unwrap() == bytes, "{rescued}");
        let session = begin(&opened.store, 0);
        append(&opened.store, &session, says("on"));
        drop(opened);
        assert_eq!(try_open(home.path()).unwrap().rescued, None);
    }
}

#[test]
fn an_empty_database_is_a_new_one() {
    let home = tempfile::tempdir().unwrap();
    place(home.path(), b"");
    let opened = try_open(home.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(opened.rescued, None);
    let session = begin(&opened.store, 0);
    append(&opened.store, &session, says("on"));
    drop(opened);
    let again = try_open(home.path()).unwrap();
    assert_eq!((again.rescued.clone(), wait(again.store.list(9)).unwrap().len()), (None, 1));
    drop(again);

    // What was lost of one that was in use is said.
    fs::remove_file(log_of(&options(home.path()).path())).unwrap();
    place(home.path(), b"");
    assert!(try_open(home.path()).unwrap().rescued.is_some());
}

#[test]
fn a_replaced_database_is_no_longer_written() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    fs::rename(store.path(), home.path().join("elsewhere")).unwrap();
    let other = open(home.path());
    begin(&other, 1);
    let late = wait(store.append(crate::support::entry(&session, says("late"))));
    assert_eq!(late.unwrap_err().kind, StoreErrorKind::NotFound);
}

#[test]
fn database_damage_found_while_reading_is_repaired_in_the_same_run() {
    let mut bytes = sound(SESSIONS, TURNS);
    let middle = bytes.len() / 2 / PAGE * PAGE;
    bytes[middle..middle + PAGE].fill(0xa5);
    let home = tempfile::tempdir().unwrap();
    place(home.path(), &bytes);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let recovered: Arc<RecoveryCallback> =
        Arc::new(move |rescued| hears.lock().unwrap().push(rescued));
    let opened = Store::open(Options { recovered, ..options(home.path()) }).unwrap();
    assert_eq!(opened.rescued, None, "what is broken lies deep");
    let store = Arc::new(opened.store);
    let sibling = store.database().open_store(options(home.path())).unwrap();
    for facts in wait(store.list(100)).unwrap() {
        assert!(is_legal(&load(&store, &facts.id).entries));
        append(&store, &facts.id, says("and on"));
        wait(sibling.load(facts.id, ALL)).unwrap();
    }
    wait(store.check_integrity()).unwrap();
    let heard = heard.lock().unwrap();
    let [rescued] = heard.as_slice() else { panic!("{heard:?}") };
    let before = u64::try_from(SESSIONS * TURNS * turn(0).len()).unwrap();
    assert!(rescued.entries * 10 > before * 9 && rescued.lost > 0, "{rescued}");
    assert!(fs::read(&rescued.aside).unwrap() == bytes);
    drop((store, sibling));
    assert_eq!(try_open(home.path()).unwrap().rescued, None);
}

#[test]
fn damage_is_left_alone_while_another_process_has_the_database_open() {
    let mut bytes = sound(SESSIONS, TURNS);
    let middle = bytes.len() / 2 / PAGE * PAGE;
    bytes[middle..middle + PAGE].fill(0xa5);
    let home = tempfile::tempdir().unwrap();
    let path = place(home.path(), &bytes);
    let store = try_open(home.path()).unwrap().store;
    let users = fs::File::open(format!("{}.users", path.display())).unwrap();
    rustix::fs::flock(&users, rustix::fs::FlockOperation::LockShared).unwrap();
    let read = || -> Result<(), StoreError> {
        for facts in wait(store.list(100))? {
            wait(store.load(facts.id, ALL))?;
        }
        Ok(())
    };
    let refused = read().unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::Busy);
    assert!(refused.sentence.contains("another gnoma has it open"), "{refused}");
    drop(users);
    read().unwrap();
}

#[test]
fn interrupted_database_recovery_is_finished_or_restarted() {
    let bytes = sound(SESSIONS, TURNS);
    let home = tempfile::tempdir().unwrap();
    let path = options(home.path()).path();
    let beside = |ending: &str| PathBuf::from(format!("{}.{ending}", path.display()));
    for leftover in ["copy", "building", "building-journal", "copy-wal"] {
        fs::write(beside(leftover), "half").unwrap();
    }
    fs::write(beside("rescued"), &bytes).unwrap();
    let adopted = open(home.path());
    assert_eq!(wait(adopted.list(100)).unwrap().len(), SESSIONS);
    drop(adopted);

    fs::write(beside("rescued"), "older").unwrap();
    fs::write(beside("doubt"), "").unwrap();
    let again = try_open(home.path()).unwrap();
    assert_eq!(again.rescued.unwrap().sessions, u64::try_from(SESSIONS).unwrap());
    assert!(!beside("rescued").exists() && !beside("doubt").exists());
}

#[test]
fn orphaned_wal_is_not_applied_to_a_new_database() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    for record in turn(0) {
        append(&store, &session, record);
    }
    let path = store.path().to_owned();
    drop(store);
    let log = fs::read(log_of(&path)).unwrap();

    fs::remove_file(&path).unwrap();
    let new = open(home.path());
    assert!(wait(new.list(9)).unwrap().is_empty());
    wait(new.check_integrity()).unwrap();
    drop(new);

    fs::remove_file(&path).unwrap();
    fs::write(log_of(&path), log).unwrap();
    fs::write(PathBuf::from(format!("{}.rescued", path.display())), sound(SESSIONS, TURNS))
        .unwrap();
    let adopted = open(home.path());
    assert_eq!(wait(adopted.list(100)).unwrap().len(), SESSIONS);
    wait(adopted.check_integrity()).unwrap();
}

#[test]
fn database_with_a_broken_header_is_recovered_completely() {
    let mut bytes = sound(SESSIONS, TURNS);
    bytes[..60].fill(0xff);
    let home = tempfile::tempdir().unwrap();
    place(home.path(), &bytes);
    let opened = try_open(home.path()).unwrap();
    let rescued = opened.rescued.unwrap();
    assert_eq!(rescued.lost, 0, "{rescued}");
    assert_eq!(rescued.entries, u64::try_from(SESSIONS * TURNS * turn(0).len()).unwrap());
}

#[test]
fn foreign_and_newer_files_are_left_untouched() {
    let sqlite = tempfile::tempdir().unwrap();
    let other = sqlite.path().join("other.db");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE recipes(name TEXT); PRAGMA user_version = 3;")
        .unwrap();
    let newer = sqlite.path().join("newer.db");
    fs::write(&newer, sound(SESSIONS, TURNS)).unwrap();
    rusqlite::Connection::open(&newer)
        .unwrap()
        .execute_batch("ALTER TABLE session ADD COLUMN colour; PRAGMA user_version = 99;")
        .unwrap();
    crate::support::fold(&newer);
    let newer = fs::read(newer).unwrap();
    let cases = [
        (fs::read(other).unwrap(), StoreErrorKind::Foreign),
        (b"dear diary, this is no database".to_vec(), StoreErrorKind::Foreign),
        (newer, StoreErrorKind::TooNew),
    ];
    for (bytes, kind) in cases {
        let home = tempfile::tempdir().unwrap();
        let path = place(home.path(), &bytes);
        let Err(error) = try_open(home.path()) else { panic!("{kind:?} was opened") };
        assert_eq!(error.kind, kind);
        assert!(fs::read(path).unwrap() == bytes);
    }
}

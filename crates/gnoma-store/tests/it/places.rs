//! Places that make trouble: full, read-only, without shared memory.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use gnoma_core::store::{SessionStore, StoreErrorKind};
use gnoma_store::{Journal, Store};

use crate::support::{append, begin, entry, load, open, options, says, try_open, wait};

#[test]
fn a_rollback_journal_serves_as_well() {
    let home = tempfile::tempdir().unwrap();
    let mut slow = options(home.path());
    slow.journal = Journal::Rollback;
    let store = Store::open(slow).unwrap().store;
    let session = begin(&store, 0);
    append(&store, &session, says("kept"));
    assert!(!home.path().join("anything.db-wal").exists());
    drop(store);
    let log = open(home.path());
    assert_eq!(load(&log, &session).entries.len(), 1);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_value() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "in the way").unwrap();
    assert!(try_open(&file.join("below")).is_err());
    let folder = home.path().join("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    if rustix::process::geteuid().is_root() {
        return;
    }
    let Err(error) = try_open(&folder) else { panic!("a read-only folder was written to") };
    assert_eq!(error.kind, StoreErrorKind::ReadOnly);
}

/// A small file system that goes with the test.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).output());
    }
}

#[test]
fn a_full_disk_is_told_and_harms_nothing() {
    let Some(disk) = Small::mount() else {
        println!("skipped: mounting a small file system needs root");
        return;
    };
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![1; 300_000]).unwrap();
    let store = open(disk.0.path());
    let session = begin(&store, 0);
    let mut kept = 0;
    let error = loop {
        match wait(store.append(entry(&session, says("x".repeat(10_000))))) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1000);
    };
    assert_eq!(error.kind, StoreErrorKind::Full, "{error:?}");
    assert_eq!(load(&store, &session).entries.len(), kept);
    fs::remove_file(ballast).unwrap();
    append(&store, &session, says("room again"));
    drop(store);
    assert_eq!(load(&open(disk.0.path()), &session).entries.len(), kept + 1);
}

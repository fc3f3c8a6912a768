//! Collecting garbage loses nothing that a snapshot needs, whoever works at the same time.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gnoma_core::store::Checkpoints;
use gnoma_store::checkpoint::{
    Checkpointer, Conflict, Error, Limits, Options, SnapshotId, Vault, Workspace,
};

use crate::checkpoint_support::{Dice, Seen, difference, look, quick, vault};

/// How long the keeper may take for what it does by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nobody stops what is done here.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Changes some files; contents come from few, so that objects die and are wanted again.
fn stir(root: &Path, dice: &mut Dice) {
    for _ in 0..1 + dice.roll(4) {
        let folder = root.join(format!("f{}", dice.roll(3)));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("x{}", dice.roll(5)));
        match dice.roll(6) {
            0 => drop(fs::remove_file(path)),
            1 => fs::write(path, vec![dice.roll(3) as u8; 5 << 20]).unwrap(),
            _ => fs::write(path, dice.roll(12).to_string().repeat(50)).unwrap(),
        }
    }
}

type States = BTreeMap<(usize, SnapshotId), BTreeMap<PathBuf, Seen>>;

struct Desk {
    root: PathBuf,
    /// The same workspace as two processes see it.
    seats: [Workspace; 2],
}

fn check_all(desks: &[Desk], states: &States) {
    for ((desk, id), shall) in states {
        let desk = &desks[*desk];
        let restored = desk.seats[0].restore(id, Conflict::KeepTheirs).unwrap();
        assert_eq!(restored.left, []);
        assert_eq!(difference(&look(&desk.root), shall), [""; 0], "{id}");
    }
}

#[test]
fn garbage_collection_deletes_only_unreferenced_objects() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let vaults = [vault(&folder.path().join("vault")), vault(&folder.path().join("vault"))];
        let desks: Vec<_> = (0..2)
            .map(|number| {
                let root = folder.path().join(format!("work{number}"));
                fs::create_dir(&root).unwrap();
                let seats = [0, 1].map(|seat: usize| vaults[seat].open_workspace(&root).unwrap());
                Desk { root, seats }
            })
            .collect();
        let mut dice = Dice(seed);
        let mut states = States::new();
        for _ in 0..60 {
            let (number, seat) = (dice.roll(2) as usize, dice.roll(2) as usize);
            let desk = &desks[number];
            match dice.roll(8) {
                0..=4 => {
                    stir(&desk.root, &mut dice);
                    let id = desk.seats[seat].take_snapshot("x").unwrap().id;
                    states.insert((number, id), look(&desk.root));
                }
                5 => {
                    let pinned: HashSet<_> = states
                        .keys()
                        .filter(|_| dice.roll(4) == 0)
                        .map(|(_, id)| id.clone())
                        .collect();
                    let snapshots = 2 + dice.roll(6) as usize;
                    let limits = Limits { snapshots, ..Limits::default() };
                    vaults[seat].prune(&limits, &pinned, &NEVER).unwrap();
                    let left: HashSet<_> =
                        desks.iter().flat_map(|desk| desk.seats[0].snapshots().unwrap()).collect();
                    assert!(pinned.is_subset(&left));
                    states.retain(|(_, id), _| left.contains(id));
                }
                6 => drop(vaults[seat].collect_garbage().unwrap()),
                _ => check_all(&desks, &states),
            }
        }
        check_all(&desks, &states);
    }
}

#[test]
fn snapshots_and_collections_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("vault");
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    let stop = AtomicBool::new(false);
    let mut states = States::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let vault = vault(&place);
                let limits = Limits { snapshots: 10, ..Limits::default() };
                while !stop.load(Ordering::Relaxed) {
                    match vault.prune(&limits, &HashSet::new(), &NEVER) {
                        Ok(_) | Err(Error::Busy) => {}
                        Err(failed) => panic!("{failed}"),
                    }
                }
            });
        }
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let workspace = vault(&place).open_workspace(&root).unwrap();
            let mut dice = Dice(7);
            for _ in 0..150 {
                stir(&root, &mut dice);
                let id = workspace.take_snapshot("x").unwrap().id;
                states.insert((0, id), look(&root));
            }
        }));
        stop.store(true, Ordering::Relaxed);
        assert!(done.is_ok());
    });
    let workspace = vault(&place).open_workspace(&root).unwrap();
    let left = workspace.snapshots().unwrap();
    assert!(left.len() >= 10);
    states.retain(|(_, id), _| left.contains(id));
    let seats = [0, 1].map(|_| vault(&place).open_workspace(&root).unwrap());
    check_all(&[Desk { root, seats }], &states);
}

#[test]
fn vault_pruning_respects_the_size_limit_and_young_objects() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    let place = folder.path().join("vault");
    let mut dice = Dice(3);
    let workspace = vault(&place).open_workspace(&root).unwrap();
    for _ in 0..20 {
        let noise: Vec<u8> = (0..200_000).map(|_| dice.roll(256) as u8).collect();
        fs::write(root.join("a"), noise).unwrap();
        workspace.take_snapshot("x").unwrap();
    }
    let limits = Limits { store_bytes: 1 << 20, ..Limits::default() };
    let patient = Options { grace: Duration::from_secs(3600), ..quick() };
    let patient = Vault::open(&place, patient).unwrap();
    let kept = patient.collect_garbage().unwrap();
    assert_eq!((kept.freed_bytes, kept.kept_bytes > 4_000_000), (0, true));
    // Only as much is forgotten as will help once it is old enough to be deleted.
    let pruned = patient.prune(&limits, &HashSet::new(), &NEVER).unwrap();
    assert_eq!((pruned.collected.freed_bytes, pruned.collected.young_bytes > 3_000_000), (0, true));
    assert!((3..=5).contains(&workspace.snapshots().unwrap().len()));
    let pruned = vault(&place).prune(&limits, &HashSet::new(), &NEVER).unwrap();
    assert!(pruned.collected.kept_bytes <= 1 << 20, "{pruned:?}");
    assert!(pruned.collected.freed_bytes > 2_500_000);
    let newest = workspace.snapshots().unwrap().pop().unwrap();
    let shall = look(&root);
    fs::write(root.join("a"), "").unwrap();
    workspace.restore(&newest, Conflict::KeepTheirs).unwrap();
    assert_eq!(difference(&look(&root), &shall), [""; 0]);
}

#[test]
fn a_damaged_tree_stops_the_collection() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    let place = folder.path().join("vault");
    fs::write(root.join("a"), "1").unwrap();
    vault(&place).open_workspace(&root).unwrap().take_snapshot("x").unwrap();
    for pack in fs::read_dir(place.join("packs")).unwrap() {
        let path = pack.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        // Past the first object, which is the file's single byte.
        bytes[12] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    assert!(matches!(vault(&place).collect_garbage(), Err(Error::Damaged(_))));
    assert_eq!(fs::read_dir(place.join("packs")).unwrap().count(), 1);
}

#[tokio::test]
async fn pruning_keeps_snapshots_of_other_running_processes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    let mut options = quick();
    options.limits.snapshots = 1;
    let open = || Vault::open(&folder.path().join("vault"), options.clone()).unwrap();
    let keeper = || Checkpointer::start(Arc::new(open().open_workspace(&root).unwrap())).unwrap();
    let (mine, yours) = (keeper(), keeper());
    let mut ids = Vec::new();
    for number in 0..4 {
        fs::write(root.join("a"), number.to_string()).unwrap();
        ids.push(mine.save_checkpoint("x".to_owned()).await.unwrap().parse().unwrap());
    }
    let left = || open().open_workspace(&root).unwrap().snapshots().unwrap();
    open().prune(&options.limits, &HashSet::new(), &NEVER).unwrap();
    assert_eq!(mine.prune_to_limits(HashSet::new()).await.unwrap().snapshots, 0);
    assert_eq!(left(), ids, "both keep it");
    drop(yours);
    open().prune(&options.limits, &HashSet::new(), &NEVER).unwrap();
    assert_eq!(left(), ids, "one keeps it");
    mine.prune_to_limits([ids[1].clone()].into()).await.unwrap();
    assert_eq!(left(), [ids[1].clone(), ids[3].clone()], "who keeps it may forget");
    assert!(!mine.is_due());
    drop(mine);
    open().prune(&options.limits, &HashSet::new(), &NEVER).unwrap();
    assert_eq!(left(), [ids[3].clone()], "nobody keeps it");
}

#[tokio::test]
async fn oversized_vault_is_pruned_while_snapshots_are_taken() {
    const LIMIT_BYTES: u64 = 2 << 20;
    let folder = tempfile::tempdir().unwrap();
    let mut options = quick();
    options.limits.store_bytes = LIMIT_BYTES;
    let open = |name: &str| {
        let root = folder.path().join(name);
        fs::create_dir(&root).unwrap();
        Vault::open(&folder.path().join("vault"), options.clone())
            .unwrap()
            .open_workspace(&root)
            .unwrap()
    };
    let mut dice = Dice(5);
    let mut fill = |workspace: &Workspace| {
        let noise: Vec<u8> = (0..300_000).map(|_| dice.roll(256) as u8).collect();
        fs::write(workspace.root().join("a"), noise).unwrap();
    };
    let old = open("old");
    for _ in 0..6 {
        fill(&old);
        old.take_snapshot("x").unwrap();
    }
    let keeper = Checkpointer::start(Arc::new(open("new"))).unwrap();
    for _ in 0..4 {
        fill(keeper.workspace());
        keeper.save_checkpoint("x".to_owned()).await.unwrap();
    }
    // Room is made once nothing waits to be kept.
    let end = Instant::now() + PATIENCE;
    while old.snapshots().unwrap().len() >= 4 {
        assert!(Instant::now() < end, "no room is made");
        std::thread::sleep(Duration::from_millis(10));
    }
    // What is asked next comes after it.
    keeper.save_checkpoint("x".to_owned()).await.unwrap();
    assert_eq!(keeper.workspace().snapshots().unwrap().len(), 4);
    let bytes = bytes_in(&folder.path().join("vault/packs"));
    assert!(bytes <= LIMIT_BYTES + LIMIT_BYTES / 8, "{bytes}");
}

fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn vault_containing_a_planted_symlink_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (place, precious) = (folder.path().join("vault"), folder.path().join("precious"));
    fs::create_dir(&place).unwrap();
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("one.pack"), "mine").unwrap();
    std::os::unix::fs::symlink(&precious, place.join("packs")).unwrap();
    assert!(matches!(Vault::open(&place, quick()), Err(Error::Foreign(_))));
    assert_eq!(fs::read_dir(&precious).unwrap().count(), 1);
}

#[test]
fn planted_symlinks_in_a_vault_are_not_followed_and_mode_is_tightened() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    let (place, precious) = (folder.path().join("vault"), folder.path().join("precious"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(&precious, "mine").unwrap();
    for name in ["tidied", "format", "generation"] {
        std::os::unix::fs::symlink(&precious, place.join(name)).unwrap();
    }
    let keeper =
        Checkpointer::start(Arc::new(vault(&place).open_workspace(&root).unwrap())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(keeper.prune_to_limits(HashSet::new())).unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

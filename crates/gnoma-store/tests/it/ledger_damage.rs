//! A ledger with any of its pages damaged: reports and caps agree on what was spent, or gnoma says that some is missing;
//! no fault stays after the next opening.

use std::{fs, ops::ControlFlow, path::Path, process::Command};

use gnoma_core::{
    ModelRef,
    ledger::{
        Amount, CallOrigin, Ledger as _, Limit, PoolDraw, ReservationOutcome, ReservationRequest,
        Unit, Window,
    },
    store::{StoreError, StoreErrorKind},
};
use gnoma_store::SqliteLedger;

use crate::{
    harm::{Dice, PAGE},
    support::{fold, wait},
};

/// Noon of a day.
const NOON_MS: i64 = 1_800_014_400_000;

const DAY_MS: i64 = 86_400_000;

const CALLS: i64 = 400;

/// The pool that every call draws on.
fn all_spending() -> PoolDraw {
    let limit = Limit { unit: Unit::MicroUsd, window: Window::Ever, most: u64::MAX };
    PoolDraw { pool: "all".into(), limits: vec![limit] }
}

/// Makes the bytes of a ledger with calls on forty days, and says what they cost.
fn sound_ledger() -> (Vec<u8>, u64) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let ledger = SqliteLedger::open(&path).unwrap().ledger;
    let mut cost = 0;
    for number in 0..CALLS {
        let micro_usd = 100 + number.unsigned_abs() * 37 % 900;
        let amount = Amount { requests: 1, input: 50, output: 7, micro_usd, ..Amount::default() };
        let session = format!("session:{}", number / 5);
        let ask = ReservationRequest {
            at_ms: NOON_MS + number / 10 * DAY_MS,
            arm: ModelRef { provider: "p".into(), model: format!("m{}", number % 4) },
            amount,
            is_priced: true,
            draws: vec![all_spending(), PoolDraw { pool: session.clone(), limits: Vec::new() }],
            origin: CallOrigin { session, branch: "main".into(), ..CallOrigin::default() },
        };
        let at_ms = ask.at_ms;
        let Ok(ReservationOutcome::Held(hold)) = wait(ledger.reserve(ask)) else {
            panic!("no room")
        };
        wait(ledger.commit(hold, at_ms, amount.into())).unwrap();
        cost += micro_usd;
    }
    drop(ledger);
    fold(&path);
    (fs::read(path).unwrap(), cost)
}

/// The spending by model and by the pool of all calls, and whether some of it may be missing.
type Spending = (u64, u64, bool);

/// Reads a ledger as a report does.
fn read_spending(path: &Path) -> Result<Spending, StoreError> {
    let ledger = match SqliteLedger::open_to_read(path)? {
        Some(ledger) => ledger,
        None => SqliteLedger::open(path)?.ledger,
    };
    let skip = |_: &mut (), _| ControlFlow::Continue(());
    let totals = wait(ledger.fold_calls(i64::MIN, (), skip))?.totals;
    let by_model = totals.iter().map(|total| total.amount.micro_usd).sum();
    let levels = wait(ledger.limit_levels(vec![all_spending()], NOON_MS))?;
    Ok((by_model, levels[0].used, wait(ledger.lacks_money())?))
}

/// Reads a damaged ledger, which may fail once.
fn read_after_damage(path: &Path, what: &str) -> Spending {
    let first = read_spending(path);
    let second = match first {
        Err(error) if error.kind == StoreErrorKind::Damaged => read_spending(path),
        read => read,
    };
    second.unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn damaged_ledger_page_keeps_equal_totals_or_is_reported() {
    let (sound, cost) = sound_ledger();
    let pages = sound.len() / PAGE;
    let mut dice = Dice(38);
    let (mut exact, mut incomplete) = (0, 0);
    for page in 0..pages {
        let range = page * PAGE..(page + 1) * PAGE;
        let mut zeros = sound.clone();
        zeros[range.clone()].fill(0);
        let mut garbage = sound.clone();
        garbage[range].fill_with(|| u8::try_from(dice.below(256)).unwrap());
        let cut = sound[..page * PAGE].to_vec();
        for (harm, bytes) in [("zeros", zeros), ("garbage", garbage), ("cut", cut)] {
            let what = format!("{harm} at page {page} of {pages}");
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("ledger.db");
            fs::write(&path, bytes).unwrap();
            // An empty file is a new ledger unless one was in use.
            fs::write(home.path().join("ledger.db.lock"), "used\n").unwrap();
            let (by_model, by_pool, lacks_money) = read_after_damage(&path, &what);
            assert!(by_model == cost || lacks_money, "{what}: {by_model} of {cost}, not said");
            assert_eq!(by_model, by_pool, "{what}");
            assert!(by_model <= cost, "{what}: {by_model} of {cost}");
            exact += u32::from(by_model == cost);
            incomplete += u32::from(lacks_money);
            // What was said stays said, and a new call counts.
            assert_eq!(read_spending(&path).unwrap(), (by_model, by_pool, lacks_money), "{what}");
        }
    }
    println!("{pages} pages: {exact} with all spending, {incomplete} that say what is missing");
    assert!(exact as usize >= pages, "most of what one page holds is elsewhere as well");
}

#[test]
fn ledger_call_details_survive_recovery() {
    let (mut bytes, _) = sound_ledger();
    bytes[..100].fill(0xff);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    fs::write(&path, bytes).unwrap();
    let ledger = SqliteLedger::open(&path).unwrap().ledger;
    let read = wait(ledger.fold_calls(i64::MIN, Vec::new(), |branches, call| {
        branches.push(call.branch);
        ControlFlow::Continue(())
    }));
    let branches = read.unwrap().state;
    assert_eq!(branches.len(), usize::try_from(CALLS).unwrap());
    let names = wait(ledger.call_names(branches)).unwrap();
    assert_eq!(names.into_values().collect::<Vec<_>>(), ["main"]);
}

#[test]
fn pipe_or_folder_in_place_of_a_ledger_is_refused_at_once() {
    for ending in ["", "-wal", "-journal"] {
        for make in [&["mkfifo"][..], &["mkdir"]] {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("ledger.db");
            if !ending.is_empty() {
                drop(SqliteLedger::open(&path).unwrap());
                drop(fs::remove_file(home.path().join(format!("ledger.db{ending}"))));
            }
            let special = home.path().join(format!("ledger.db{ending}"));
            let made = Command::new(make[0]).arg(&special).status().unwrap();
            assert!(made.success());
            for outcome in
                [SqliteLedger::open_to_read(&path).map(drop), SqliteLedger::open(&path).map(drop)]
            {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind, StoreErrorKind::Foreign, "{error}");
                assert!(error.sentence.contains("move it elsewhere"), "{error}");
            }
        }
    }
}

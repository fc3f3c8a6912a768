//! Limits that several sessions in several processes share, and files that cannot be used.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use gnoma_core::{
    ModelRef,
    ledger::{
        Amount, CallOrigin, HoldId, Ledger, Limit, PoolDraw, ReservationOutcome,
        ReservationRequest, Unit, Window,
    },
    store::StoreErrorKind,
};
use gnoma_store::{OpenedLedger, SqliteLedger};

use crate::support::wait;

/// `file|name|calls|held` for a child.
const TASK: &str = "GNOMA_STORE_TEST_LEDGER";

/// Noon of a day: no call of a test falls into another.
const NOW_MS: i64 = 1_800_014_400_000;

const CAP: u64 = 200_000;

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its children")]
fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

fn open(path: &Path) -> SqliteLedger {
    let OpenedLedger { ledger, set_aside } = SqliteLedger::open(path).unwrap();
    assert_eq!(set_aside, None);
    ledger
}

fn arm() -> ModelRef {
    ModelRef { provider: "p".into(), model: "m".into() }
}

fn dollars(micro_usd: u64) -> Amount {
    Amount { requests: 1, input: 10 * micro_usd, output: 3, micro_usd, ..Amount::default() }
}

fn limits(most: u64) -> Vec<PoolDraw> {
    let day = Limit { unit: Unit::MicroUsd, window: Window::Day, most };
    vec![
        PoolDraw { pool: "day".into(), limits: vec![day] },
        PoolDraw { pool: "counted".into(), limits: Vec::new() },
    ]
}

fn ask(amount: Amount) -> ReservationRequest {
    ReservationRequest {
        at_ms: NOW_MS,
        arm: arm(),
        amount,
        is_priced: true,
        draws: limits(CAP),
        origin: CallOrigin::default(),
    }
}

fn held(reserved: ReservationOutcome) -> Option<HoldId> {
    match reserved {
        ReservationOutcome::Held(hold) => Some(hold),
        ReservationOutcome::Full(full) => {
            assert_eq!((full.pool.as_str(), full.limit.most), ("day", CAP));
            assert_eq!(full.free_at_ms.map(|free| free > NOW_MS), Some(true));
            None
        }
    }
}

/// Used and held of the day's cap.
fn stand(ledger: &SqliteLedger) -> (u64, u64) {
    let levels = wait(ledger.limit_levels(limits(CAP), NOW_MS)).unwrap();
    assert_eq!(levels.len(), 1);
    (levels[0].used, levels[0].held)
}

fn spend(ledger: &SqliteLedger, micro_usd: u64) {
    let hold = held(wait(ledger.reserve(ask(dollars(micro_usd)))).unwrap()).unwrap();
    wait(ledger.commit(hold, NOW_MS, dollars(micro_usd).into())).unwrap();
}

/// One session: calls until the cap is reached; says what was settled. Every third call is let go.
fn session(ledger: &SqliteLedger, name: &str, calls: u64) {
    for number in 0..calls {
        let amount = dollars(100 + number * 37 % 400);
        let Some(hold) = held(wait(ledger.reserve(ask(amount))).unwrap()) else {
            say(&format!("full {name}"));
            continue;
        };
        if number % 3 == 2 {
            ledger.rollback(hold);
            continue;
        }
        wait(ledger.commit(hold, NOW_MS, amount.into())).unwrap();
        say(&format!("settled {}", amount.micro_usd));
    }
}

/// A child: several sessions in one process.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    let Some(task) = task() else { return };
    let words: Vec<&str> = task.split('|').collect();
    let ledger = Arc::new(open(Path::new(words[0])));
    let sessions: usize = words[2].parse().unwrap();
    let calls: u64 = words[3].parse().unwrap();
    let threads: Vec<_> = (0..sessions)
        .map(|number| {
            let (ledger, name) = (Arc::clone(&ledger), format!("{}-{number}", words[1]));
            thread::spawn(move || session(&ledger, &name, calls))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    say("over");
}

/// A child: reserves all there is and waits.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn holding_child() {
    let Some(path) = task() else { return };
    let ledger = open(Path::new(&path));
    held(wait(ledger.reserve(ask(dollars(CAP)))).unwrap()).unwrap();
    say("holds");
    thread::sleep(Duration::from_secs(60));
}

fn start(test: &str, task: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(TASK, task)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

/// What a child settled, until it ended.
fn settled(lines: BufReader<std::process::ChildStdout>) -> (Vec<u64>, bool) {
    let (mut amounts, mut is_full) = (Vec::new(), false);
    for line in lines.lines().map_while(Result::ok) {
        is_full |= line.starts_with("full ");
        amounts.extend(line.strip_prefix("settled ").map(|amount| amount.parse::<u64>().unwrap()));
    }
    (amounts, is_full)
}

#[test]
fn ten_sessions_in_three_processes_never_pass_the_cap_while_a_fourth_is_killed() {
    const DYING: u64 = 2;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let own = open(&path);
    let task = |name: &str, sessions: u64| format!("{}|{name}|{sessions}|150", path.display());
    let children: Vec<_> = [("a", 4), ("b", 3), ("c", 3)]
        .into_iter()
        .map(|(name, sessions)| {
            let (mut child, lines) = start("ledger::child", &task(name, sessions));
            thread::spawn(move || {
                let said = settled(lines);
                assert!(child.wait().unwrap().success());
                said
            })
        })
        .collect();
    let (mut victim, lines) = start("ledger::child", &task("victim", DYING));
    let last_words = until_killed(&mut victim, lines, Duration::from_millis(20));
    while children.iter().any(|child| !child.is_finished()) {
        let (used, held) = stand(&own);
        assert!(used + held <= CAP, "{used} + {held}");
    }
    let mut amounts = settled_in(&last_words);
    let mut is_full = false;
    for child in children {
        let (settled, was_refused) = child.join().unwrap();
        amounts.extend(settled);
        is_full |= was_refused;
    }
    assert!(is_full, "the cap was never reached");
    // Each session that was killed may have settled one call that it did not come to say.
    let (sum, calls) = (amounts.iter().sum::<u64>(), u64::try_from(amounts.len()).unwrap());
    let (used, held) = stand(&own);
    assert_eq!(held, 0);
    assert!((sum..=sum + DYING * 500).contains(&used), "{used} of {sum}");
    assert!(used <= CAP && used > CAP - 600, "{used}");
    let totals = wait(own.daily_totals(0)).unwrap();
    assert_eq!(totals.len(), 1);
    assert_eq!((totals[0].amount.micro_usd, totals[0].amount.input), (used, 10 * used));
    assert!((calls..=calls + DYING).contains(&totals[0].amount.requests));
}

/// What was settled according to a child that was killed.
fn settled_in(said: &str) -> Vec<u64> {
    // The last line may be cut short by the kill.
    let whole = said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.filter_map(|line| line.strip_prefix("settled ")?.parse().ok()).collect()
}

/// What a child said that was killed `after` its first settlement.
fn until_killed(
    child: &mut Child,
    mut lines: BufReader<std::process::ChildStdout>,
    after: Duration,
) -> String {
    let mut said = String::new();
    while !said.contains("settled") {
        assert!(lines.read_line(&mut said).unwrap() > 0);
    }
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    lines.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn settled_ledger_calls_survive_a_kill_and_reservations_are_released() {
    const SESSIONS: u64 = 4;
    let home = tempfile::tempdir().unwrap();
    let mut cut_short = 0;
    for round in 0..12_u64 {
        let path = home.path().join(format!("{round}.db"));
        let (mut child, lines) =
            start("ledger::child", &format!("{}|k|{SESSIONS}|60", path.display()));
        let said = until_killed(&mut child, lines, Duration::from_micros(round * 1700));
        cut_short += u64::from(!said.contains("\nover\n"));
        let sum: u64 = settled_in(&said).iter().sum();
        let (used, held) = stand(&open(&path));
        // Each session may have settled one call that it did not come to say.
        assert!((sum..=sum + SESSIONS * 500).contains(&used), "{used} of {sum}");
        assert_eq!(held, 0);
    }
    assert!(cut_short > 0, "no child was killed in time");
}

/// Starts a child that reserves all there is, and kills it.
fn kill_while_it_holds(path: &Path, own: Option<&SqliteLedger>) {
    let (mut child, mut lines) = start("ledger::holding_child", &path.display().to_string());
    let mut line = String::new();
    while line.trim() != "holds" {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0);
    }
    if let Some(own) = own {
        assert_eq!(stand(own), (0, CAP));
        assert_eq!(held(wait(own.reserve(ask(dollars(1)))).unwrap()), None);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ledger_reservation_of_a_dead_process_counts_as_spent() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let own = open(&path);
    kill_while_it_holds(&path, Some(&own));
    assert_eq!(stand(&own), (CAP, 0));
    assert_eq!(held(wait(own.reserve(ask(dollars(1)))).unwrap()), None);
    let [sum] = wait(own.daily_totals(0)).unwrap().try_into().unwrap();
    assert_eq!((sum.arm, sum.amount), (arm(), dollars(CAP)));
}

#[test]
fn usage_report_after_a_kill_needs_a_writable_ledger_to_settle() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    kill_while_it_holds(&path, None);
    let reader = SqliteLedger::open_to_read(&path).unwrap().unwrap();
    assert!(reader.has_lost_calls());
    // In a read-only home it stays reserved.
    assert_eq!(stand(&reader), (0, CAP));
    assert_eq!(wait(open(&path).daily_totals(0)).unwrap().len(), 1);
    assert!(!SqliteLedger::open_to_read(&path).unwrap().unwrap().has_lost_calls());
}

#[test]
fn ledger_commits_even_if_the_future_is_dropped() {
    let ledger = SqliteLedger::in_memory().unwrap();
    let hold = held(wait(ledger.reserve(ask(dollars(10)))).unwrap()).unwrap();
    drop(ledger.commit(hold, NOW_MS, dollars(10).into()));
    assert_eq!(stand(&ledger), (10, 0));
    wait(ledger.commit(hold, NOW_MS, dollars(10).into())).unwrap();
    assert_eq!(stand(&ledger), (10, 0));

    let hold = held(wait(ledger.reserve(ask(dollars(20)))).unwrap()).unwrap();
    ledger.rollback(hold);
    assert_eq!(stand(&ledger), (10, 0));
    ledger.rollback(hold);
    let late = wait(ledger.commit(hold, NOW_MS, dollars(20).into())).unwrap_err();
    assert_eq!(late.kind, StoreErrorKind::NotFound);

    // A caller that gives up while it asks holds nothing afterwards.
    for _ in 0..50 {
        let mut asking = ledger.reserve(ask(dollars(30)));
        let mut context = Context::from_waker(Waker::noop());
        // Where the answer is quicker than the caller gives up, the call has begun.
        if let Poll::Ready(reserved) = asking.as_mut().poll(&mut context) {
            ledger.rollback(held(reserved.unwrap()).unwrap());
        }
    }
    // What shares a transaction with the last of them may still see it.
    stand(&ledger);
    assert!(held(wait(ledger.reserve(ask(dollars(CAP - 10)))).unwrap()).is_some());
}

#[test]
fn dropped_ledger_finishes_commits_and_releases_reservations() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let (first, second) = (open(&path), open(&path));
    let hold = held(wait(first.reserve(ask(dollars(50)))).unwrap()).unwrap();
    held(wait(first.reserve(ask(dollars(60)))).unwrap()).unwrap();
    assert_eq!(stand(&second), (0, 110));
    drop(first.commit(hold, NOW_MS, dollars(50).into()));
    drop(first);
    assert_eq!(stand(&second), (50, 0));
}

#[test]
fn ledger_file_is_readable_by_its_owner_only() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state/ledger.db");
    let ledger = open(&path);
    spend(&ledger, 5);
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o077, 0);
}

/// A closed ledger with something in it, all in its one file.
fn filled(home: &Path) -> PathBuf {
    let path = home.join("ledger.db");
    let ledger = open(&path);
    for _ in 0..40 {
        spend(&ledger, 5);
    }
    drop(ledger);
    crate::support::fold(&path);
    path
}

/// What the ledger of [`filled`] has counted.
const FILLED: u64 = 200;

/// Opens what cannot be used: it is kept aside as it was, and a new one counts on with all of it, or
/// lets nobody spend until a person says so.
fn is_set_aside(path: &Path, newer: Option<i64>, complete: bool) {
    let before = fs::read(path).unwrap();
    let OpenedLedger { ledger, set_aside } = SqliteLedger::open(path).unwrap();
    let aside = set_aside.unwrap();
    assert_eq!((aside.newer, aside.complete), (newer, complete), "{aside}");
    assert!(aside.to_string().contains(&aside.path.display().to_string()), "{aside}");
    assert_eq!(fs::read(&aside.path).unwrap(), before);
    if complete {
        assert_eq!(stand(&ledger), (FILLED, 0));
    } else {
        drop(ledger);
        let ledger = open(path);
        assert!(wait(ledger.lacks_money()).unwrap());
        let refused = wait(ledger.reserve(ask(dollars(5)))).unwrap_err();
        assert!(refused.sentence.contains("gnoma router pools --accept-loss"), "{refused}");
        assert!(aside.to_string().contains("--accept-loss"), "{aside}");
        held(wait(ledger.reserve(ask(Amount { micro_usd: 0, ..dollars(5) }))).unwrap()).unwrap();
        let tomorrow = ReservationRequest { at_ms: NOW_MS + 86_400_000, ..ask(dollars(5)) };
        held(wait(ledger.reserve(tomorrow)).unwrap()).unwrap();
        assert!(wait(ledger.accept_loss()).unwrap());
        assert!(!wait(ledger.accept_loss()).unwrap());
        spend(&ledger, 5);
    }
    let counted = if complete { FILLED } else { 5 };
    assert_eq!(stand(&open(path)).0, counted);
}

#[test]
fn damaged_ledger_recovers_its_sum_or_blocks_spending() {
    type Harm = fn(&Path);
    fn fill(path: &Path, range: impl std::slice::SliceIndex<[u8], Output = [u8]>, byte: u8) {
        let mut bytes = fs::read(path).unwrap();
        bytes[range].fill(byte);
        fs::write(path, bytes).unwrap();
    }
    let garbage: Harm = |path| fs::write(path, "no database at all\n".repeat(900)).unwrap();
    let header: Harm = |path| fill(path, ..100, 0xff);
    let schema: Harm = |path| fill(path, 100..4096, 0xa5);
    let tables: Harm = |path| fill(path, 4096.., 0x5a);
    let short: Harm = |path| fs::write(path, &fs::read(path).unwrap()[..8192]).unwrap();
    let doubted: Harm = |path| fs::write(format!("{}.doubt", path.display()), "").unwrap();
    let zeros: Harm = |path| fill(path, .., 0);
    let first_page: Harm = |path| fs::write(path, &fs::read(path).unwrap()[..2000]).unwrap();
    let nothing: Harm = |path| fs::write(path, "").unwrap();
    let cases = [
        (zeros, false),
        (first_page, false),
        (nothing, false),
        (garbage, false),
        (header, true),
        (schema, true),
        (tables, false),
        (short, false),
        (doubted, true),
    ];
    for (harm, complete) in cases {
        let home = tempfile::tempdir().unwrap();
        let path = filled(home.path());
        harm(&path);
        is_set_aside(&path, None, complete);
    }
}

#[test]
fn killed_ledger_recovery_does_not_reset_the_spending_cap() {
    let home = tempfile::tempdir().unwrap();
    let path = filled(home.path());
    fs::remove_file(&path).unwrap();
    fs::write(format!("{}.doubt", path.display()), "").unwrap();
    let OpenedLedger { ledger, set_aside } = SqliteLedger::open(&path).unwrap();
    assert!(!set_aside.unwrap().complete);
    wait(ledger.reserve(ask(dollars(5)))).unwrap_err();
    drop(ledger);
    fs::write(format!("{}.doubt", path.display()), "").unwrap();
    let OpenedLedger { ledger, set_aside } = SqliteLedger::open(&path).unwrap();
    assert!(!set_aside.unwrap().complete);
    wait(ledger.reserve(ask(dollars(5)))).unwrap_err();
}

/// One byte in each page at a time, the indexes' and the header's included: none makes caps start at
/// nothing.
#[test]
fn flipped_ledger_byte_never_resets_the_spending_cap() {
    let home = tempfile::tempdir().unwrap();
    let sound = fs::read(filled(home.path())).unwrap();
    let (mut exact, mut shut) = (0, 0);
    // In each page: its form, its lengths and the last of its cells.
    let places = [0, 3, 4, 5, 7, 8, 9, 60, 71, 4090];
    let flips: Vec<_> =
        (0..sound.len() / 4096).flat_map(|page| places.map(|place| page * 4096 + place)).collect();
    for at in &flips {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.db");
        let mut bytes = sound.clone();
        bytes[*at] ^= 0x04;
        fs::write(&path, bytes).unwrap();
        let opened = SqliteLedger::open(&path).unwrap_or_else(|error| panic!("at {at}: {error}"));
        let outcome = wait(opened.ledger.reserve(ask(dollars(5))));
        let OpenedLedger { ledger, .. } = match outcome {
            Err(error) if error.kind == StoreErrorKind::Damaged => {
                drop(opened);
                SqliteLedger::open(&path).unwrap()
            }
            _ => opened,
        };
        match wait(ledger.reserve(ask(dollars(5)))) {
            Ok(_) => {
                let used = stand(&ledger).0;
                assert!(used >= FILLED / 2, "at {at}: {used}");
                exact += u32::from(used == FILLED);
            }
            Err(error) => {
                assert!(error.sentence.contains("--accept-loss"), "at {at}: {error}");
                shut += 1;
            }
        }
    }
    println!("{} flips: {exact} with the exact sum, {shut} with the caps shut", flips.len());
    assert!(exact * 10 >= u32::try_from(flips.len()).unwrap() * 8);
}

#[test]
fn empty_ledger_file_is_new_unless_it_has_a_wal() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    fs::write(&path, "").unwrap();
    let ledger = open(&path);
    spend(&ledger, 7);
    assert_eq!(stand(&ledger).0, 7);
    drop(ledger);
    assert_eq!(stand(&open(&path)).0, 7);

    // The log beside it says that there was something.
    fs::write(&path, "").unwrap();
    let OpenedLedger { set_aside, .. } = SqliteLedger::open(&path).unwrap();
    assert!(set_aside.is_some());
}

#[test]
fn newer_ledger_version_is_set_aside_unless_in_use() {
    let home = tempfile::tempdir().unwrap();
    let path = filled(home.path());
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 77).unwrap();
    drop(newer);
    crate::support::fold(&path);
    is_set_aside(&path, Some(77), true);

    let open_elsewhere = open(&path);
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 78).unwrap();
    let Err(refused) = SqliteLedger::open(&path) else { panic!("it was opened") };
    assert_eq!(refused.kind, StoreErrorKind::Busy);
    assert!(refused.sentence.contains("close the other gnoma"), "{refused}");
    assert_eq!(stand(&open_elsewhere), (FILLED, 0));
}

#[test]
fn foreign_file_in_place_of_the_ledger_is_left_untouched() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let theirs = rusqlite::Connection::open(&path).unwrap();
    theirs
        .execute_batch("CREATE TABLE letters(text); INSERT INTO letters VALUES ('dear')")
        .unwrap();
    drop(theirs);
    let before = fs::read(&path).unwrap();
    let Err(refused) = SqliteLedger::open(&path) else { panic!("it was opened") };
    assert_eq!(refused.kind, StoreErrorKind::Foreign);
    assert_eq!(fs::read(&path).unwrap(), before);

    let folder = home.path().join("folder.db");
    fs::create_dir(&folder).unwrap();
    let Err(refused) = SqliteLedger::open(&folder) else { panic!("it was opened") };
    assert_eq!(refused.kind, StoreErrorKind::Foreign);
}

#[test]
fn replaced_ledger_file_is_no_longer_written() {
    let home = tempfile::tempdir().unwrap();
    let path = filled(home.path());
    let ledger = open(&path);
    let hold = held(wait(ledger.reserve(ask(dollars(9)))).unwrap()).unwrap();
    fs::rename(&path, home.path().join("moved.db")).unwrap();
    let error = wait(ledger.commit(hold, NOW_MS, dollars(9).into())).unwrap_err();
    assert!(error.sentence.contains("start gnoma again"), "{error}");
}

#[test]
fn ledger_totals_are_per_model_and_day() {
    const DAY_MS: i64 = 86_400_000;
    let ledger = SqliteLedger::in_memory().unwrap();
    let mut expected: BTreeMap<(i32, String), u64> = BTreeMap::new();
    for number in 0..40_u64 {
        let at_ms = NOW_MS + i64::try_from(number % 4).unwrap() * DAY_MS;
        let model = format!("m{}", number % 3);
        let mut ask = ask(dollars(number));
        (ask.at_ms, ask.arm.model) = (at_ms, model.clone());
        let hold = held(wait(ledger.reserve(ask)).unwrap()).unwrap();
        wait(ledger.commit(hold, at_ms, dollars(number).into())).unwrap();
        *expected.entry((i32::try_from(at_ms / DAY_MS).unwrap(), model)).or_default() += number;
    }
    let first = expected.keys().next().unwrap().0;
    for from in [first, first + 2, first + 9] {
        let totals = wait(ledger.daily_totals(from)).unwrap();
        let counted: Vec<_> = totals
            .into_iter()
            .map(|total| ((total.day, total.arm.model), total.amount.micro_usd))
            .collect();
        let wanted: Vec<_> =
            expected.clone().into_iter().filter(|((day, _), _)| *day >= from).collect();
        assert_eq!(counted, wanted);
    }
}

#[test]
fn concurrent_ledger_note_changes_are_serialized() {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            let ledger = open(&path);
            scope.spawn(move || {
                for _ in 0..EACH {
                    let longer =
                        |text: Option<&str>| Some(format!("{}x", text.unwrap_or_default()));
                    wait(ledger.change_note("arms", longer)).unwrap();
                }
            });
        }
    });
    let ledger = open(&path);
    let (tell, told) = std::sync::mpsc::channel();
    let look = move |text: Option<&str>| {
        tell.send(text.map(str::len)).unwrap();
        None
    };
    wait(ledger.change_note("arms", look)).unwrap();
    assert_eq!(told.recv().unwrap(), Some(WRITERS * EACH));
}

//! Runs the project's test programs, and accounts for every test: passed, failed, or skipped with a reason.
//!
//! libtest alone does not do: it counts a test that returned early as passed, runs one program after another, and waits for ever
//! for a test that hangs. Here every program is asked for its tests first, so that one without a result is a failure;
//! tests that need a real terminal, a kill or a quiet machine ([`serial`]) run one at a time after all others.
//! Nothing is run twice but a serial test that failed, once, and that is printed and counted.

#![expect(clippy::print_stdout, reason = "a command for developers")]

mod artifacts;
mod error;
mod libtest;
mod report;
mod result;
mod serial;
mod skips;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

pub use artifacts::{TestProgram, test_programs};
pub use error::TestRunError;
use libtest::{ProgramRun, Selection};
use report::Report;
use result::{TestOutcome, TestResult};
use serial::SerialTest;

/// Programs that run at the same time. Many tests wait for a program that they started, so that one program alone
/// leaves a processor idle.
const PROGRAMS_AT_ONCE: usize = 2;

/// The options of a run.
#[derive(Debug, Default)]
pub struct RunOptions {
    /// `true` if a skipped test fails the run when this machine has what the test says is missing.
    pub must_not_skip: bool,
    /// Only tests whose full name (`package program test`) contains this; all if empty.
    pub filter: String,
}

/// Runs all tests of `programs`, writes what each printed below `folder`, and prints the closing lines.
/// Gives whether everything that can run here passed.
///
/// # Errors
/// If a program cannot be started, or the list of serial tests names one that does not exist.
pub fn run_tests(
    programs: &[TestProgram],
    folder: &Path,
    options: &RunOptions,
) -> Result<bool, TestRunError> {
    let of_folder = |cause| TestRunError::File { path: folder.to_owned(), cause };
    let began = Instant::now();
    let _absent_at_first = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(of_folder)?;
    // Test programs run in the folders of their crates.
    let folder = &fs::canonicalize(folder).map_err(of_folder)?;
    let before = report::temp_folder_names();
    let serial = serial::read_list()?;
    let plan = make_plan(programs, &serial, options)?;

    let mut report = Report::new(run_side_by_side(&plan, folder)?);
    report.note_phase("side by side", began.elapsed());
    let began_serial = Instant::now();
    for test in &plan.serial {
        report.add_results(run_serial_test(test, folder)?);
    }
    report.note_phase("one at a time", began_serial.elapsed());
    report.note_leftovers(&before);
    report.skips = skips::read_all(folder)?;
    print!("{}", report.render(options.must_not_skip));
    Ok(report.is_success(options.must_not_skip))
}

/// Prints the names of all tests, `package program test` a line, and those of the serial step with ` (serial)`.
///
/// # Errors
/// As [`run_tests`].
pub fn list_tests(programs: &[TestProgram]) -> Result<String, TestRunError> {
    let serial = serial::read_list()?;
    let mut lines = Vec::new();
    for program in programs {
        for test in libtest::list_tests(program)? {
            let is_serial = serial.iter().any(|entry| entry.matches_test(program, &test));
            lines.push(format!(
                "{} {test}{}\n",
                program.label(),
                if is_serial { " (serial)" } else { "" }
            ));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// The plan of a run: programs with the tests that they skip, and serial tests with their programs.
struct Plan<'a> {
    parallel: Vec<(&'a TestProgram, Selection)>,
    serial: Vec<(&'a TestProgram, &'a SerialTest)>,
}

fn make_plan<'a>(
    programs: &'a [TestProgram],
    serial: &'a [SerialTest],
    options: &RunOptions,
) -> Result<Plan<'a>, TestRunError> {
    let mut plan = Plan { parallel: Vec::new(), serial: Vec::new() };
    let mut unknown: BTreeSet<&str> = serial.iter().map(|entry| entry.test.as_str()).collect();
    for program in programs {
        let (mut chosen, mut apart) = (Vec::new(), Vec::new());
        for test in libtest::list_tests(program)? {
            let entry = serial.iter().find(|entry| entry.matches_test(program, &test));
            if let Some(entry) = entry {
                unknown.remove(entry.test.as_str());
            }
            let is_wanted = format!("{} {test}", program.label()).contains(&options.filter);
            match entry {
                Some(entry) => {
                    apart.push(test);
                    if is_wanted {
                        plan.serial.push((program, entry));
                    }
                }
                None if is_wanted => chosen.push(test),
                None => apart.push(test),
            }
        }
        if !chosen.is_empty() {
            plan.parallel.push((program, Selection { tests: chosen, without: apart }));
        }
    }
    match unknown.first() {
        Some(test) => Err(TestRunError::UnknownSerialTest((*test).to_owned())),
        None => Ok(plan),
    }
}

/// Runs the programs, [`PROGRAMS_AT_ONCE`] at a time, the ones with the most tests first.
fn run_side_by_side(plan: &Plan<'_>, folder: &Path) -> Result<Vec<TestResult>, TestRunError> {
    let mut programs: Vec<_> = plan.parallel.iter().collect();
    programs.sort_by_key(|(_, selection)| std::cmp::Reverse(selection.tests.len()));
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || -> Result<(), TestRunError> {
        while let Some((program, selection)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let done = libtest::run_program(program, selection, folder)?;
            let failed = done.results.iter().filter(|result| result.outcome == TestOutcome::Failed);
            let failed: Vec<_> = failed
                .map(|result| format!("FAILED {} {}\n", program.label(), result.test))
                .collect();
            println!(
                "{:>6.1} s  {:>4} tests  {}",
                began.elapsed().as_secs_f64(),
                done.results.len(),
                program.label()
            );
            if !failed.is_empty() {
                println!("{}{}", failed.concat(), done.describe_failures());
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).extend(done.results);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let runners: Vec<_> = (0..PROGRAMS_AT_ONCE).map(|_| scope.spawn(run)).collect();
        runners
            .into_iter()
            .try_for_each(|runner| runner.join().unwrap_or(Err(TestRunError::Panicked)))
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs one test by itself, and once more if it failed.
fn run_serial_test(
    (program, entry): &(&TestProgram, &SerialTest),
    folder: &Path,
) -> Result<Vec<TestResult>, TestRunError> {
    let began = Instant::now();
    let before = report::temp_folder_names();
    let run = |attempt| libtest::run_alone(program, &entry.test, entry.timeout, attempt, folder);
    let is_failed =
        |done: &ProgramRun| done.results.iter().any(|result| result.outcome == TestOutcome::Failed);
    let mut done = run(1)?;
    let is_retried = is_failed(&done);
    if is_retried {
        println!(
            "FAILED {} {}, and runs once more:\n{}",
            program.label(),
            entry.test,
            done.describe_failures()
        );
        done = run(2)?;
    }
    let word = if is_failed(&done) { "FAILED" } else { "ok" };
    println!(
        "{:>6.1} s  {word}  {} {}",
        began.elapsed().as_secs_f64(),
        program.label(),
        entry.test
    );
    if is_failed(&done) {
        println!("{}", done.describe_failures());
    }
    for name in report::temp_folder_names().difference(&before) {
        println!("it left behind: {}", name.to_string_lossy());
    }
    let results = done.results.into_iter().map(|result| TestResult { is_retried, ..result });
    Ok(results.collect())
}

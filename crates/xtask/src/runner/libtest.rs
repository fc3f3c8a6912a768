//! Starts test programs and reads their output.
//!
//! The lines are libtest's (`--list --format terse`, and `test NAME ... ok|FAILED|ignored`).

use std::{
    collections::BTreeMap,
    fs,
    fs::File,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    TestProgram,
    error::TestRunError,
    result::{TestOutcome, TestResult},
};

/// A program that ends no test for this long hangs, and is ended.
const STALL_TIMEOUT: Duration = Duration::from_secs(180);
/// Tests of one program that run at the same time, for each processor: most wait for a program that they started.
const TESTS_PER_PROCESSOR: usize = 2;
/// The interval at which a running program is looked at.
const POLL: Duration = Duration::from_millis(5);
/// Lines of a failed program's output that are shown.
const MAX_SHOWN_LINES: usize = 120;

/// The tests of a program that run, and those that do not.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) tests: Vec<String>,
    pub(super) without: Vec<String>,
}

/// Asks a program for its tests.
///
/// # Errors
/// If it cannot be started or fails.
pub(super) fn list_tests(program: &TestProgram) -> Result<Vec<String>, TestRunError> {
    let output = Command::new(&program.executable)
        .args(["--list", "--format", "terse"])
        .current_dir(&program.folder)
        .output()
        .map_err(|cause| TestRunError::Program { program: program.label(), cause })?;
    if !output.status.success() {
        return Err(TestRunError::NoList { program: program.label(), status: output.status });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// The run of a program: the results of the tests that were chosen, and all that it printed.
#[derive(Debug)]
pub(super) struct ProgramRun {
    pub(super) results: Vec<TestResult>,
    output: ProgramOutput,
}

/// The output of a program. libtest's lines stand alone on standard output: text that tests write past it to
/// standard error would otherwise end up in the middle of them.
#[derive(Debug)]
struct ProgramOutput {
    stdout: String,
    stderr: String,
}

impl ProgramRun {
    /// Returns libtest's part about failures, or the last lines of a program that died before it.
    pub(super) fn describe_failures(&self) -> String {
        let ProgramOutput { stdout, stderr } = &self.output;
        let failures = stdout.find("\nfailures:\n").and_then(|from| stdout.get(from..));
        let lines: Vec<_> = match failures {
            Some(failures) => failures.lines().collect(),
            None => stdout.lines().chain(stderr.lines()).collect(),
        };
        let is_whole = failures.is_some();
        let skipped = if is_whole { 0 } else { lines.len().saturating_sub(MAX_SHOWN_LINES) };
        let shown = lines.iter().skip(skipped).take(MAX_SHOWN_LINES);
        shown.map(|line| format!("    {line}\n")).collect()
    }
}

/// Runs a program's tests side by side.
///
/// # Errors
/// If it cannot be started.
pub(super) fn run_program(
    program: &TestProgram,
    selection: &Selection,
    folder: &Path,
) -> Result<ProgramRun, TestRunError> {
    let threads = thread::available_parallelism().map_or(1, usize::from) * TESTS_PER_PROCESSOR;
    let mut arguments = vec!["--exact".to_owned(), format!("--test-threads={threads}")];
    for test in &selection.without {
        arguments.extend(["--skip".to_owned(), test.clone()]);
    }
    let output = capture_output(program, &arguments, STALL_TIMEOUT, &program.file_stem(), folder)?;
    let results =
        selection.tests.iter().map(|test| result_of(program, test, &output.stdout)).collect();
    Ok(ProgramRun { results, output })
}

/// Runs one test of a program, the `attempt`th time.
///
/// # Errors
/// If the program cannot be started.
pub(super) fn run_alone(
    program: &TestProgram,
    test: &str,
    timeout: Duration,
    attempt: u32,
    folder: &Path,
) -> Result<ProgramRun, TestRunError> {
    // With one thread libtest would run it on the main thread, whose name says nothing (`gnoma_testkit::skip`).
    let arguments = ["--exact", test, "--test-threads=2"].map(str::to_owned);
    let log = format!("{}.{}.{attempt}", program.file_stem(), test.replace("::", "."));
    let output = capture_output(program, &arguments, timeout, &log, folder)?;
    Ok(ProgramRun { results: vec![result_of(program, test, &output.stdout)], output })
}

/// Runs a program to its end, or until it has written nothing for `timeout`, and returns what it printed, which is also
/// in the files `log` with `.log` and `.stderr.log` appended in `folder`.
fn capture_output(
    program: &TestProgram,
    arguments: &[String],
    timeout: Duration,
    log: &str,
    folder: &Path,
) -> Result<ProgramOutput, TestRunError> {
    let of_program = |cause| TestRunError::Program { program: program.label(), cause };
    let paths = ["log", "stderr.log"].map(|ending| folder.join(format!("{log}.{ending}")));
    let [stdout, stderr] = paths.each_ref().map(File::create);
    let (stdout, stderr) = (stdout.map_err(of_program)?, stderr.map_err(of_program)?);
    let mut child = Command::new(&program.executable)
        .args(arguments)
        .current_dir(&program.folder)
        // As cargo sets them.
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("CARGO_PKG_NAME", &program.package)
        .env("GNOMA_SKIPS", folder.join(format!("{}.skips", program.file_stem())))
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().map_err(of_program)?)
        .stderr(stderr.try_clone().map_err(of_program)?)
        .spawn()
        .map_err(of_program)?;
    wait_for_end(&mut child, [&stdout, &stderr], timeout).map_err(of_program)?;
    let [stdout, stderr] = paths.map(|path| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(of_program)
    });
    Ok(ProgramOutput { stdout: stdout?, stderr: stderr? })
}

/// Waits for the end of a program, and ends it once it has written nothing for `timeout`.
fn wait_for_end(
    child: &mut Child,
    [stdout, stderr]: [&File; 2],
    timeout: Duration,
) -> std::io::Result<()> {
    let (mut written, mut since) = (0, Instant::now());
    while child.try_wait()?.is_none() {
        let now_written = stdout.metadata()?.len() + stderr.metadata()?.len();
        if now_written != written {
            (written, since) = (now_written, Instant::now());
        }
        if since.elapsed() > timeout {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Finds a test's result; one without a result has failed, since its program died or was ended.
fn result_of(program: &TestProgram, test: &str, output: &str) -> TestResult {
    let outcomes = parse_outcomes(output);
    let outcome = outcomes.get(test).copied().unwrap_or(TestOutcome::Failed);
    TestResult { program: program.label(), test: test.to_owned(), outcome, is_retried: false }
}

fn parse_outcomes(output: &str) -> BTreeMap<&str, TestOutcome> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    let outcomes = lines.filter_map(|(test, outcome)| {
        // `name - should panic` is shown for those that have to.
        let test = test.strip_suffix(" - should panic").unwrap_or(test);
        let outcome = match outcome.split([',', ' ']).next()? {
            "ok" => TestOutcome::Passed,
            "ignored" => TestOutcome::Ignored,
            "FAILED" => TestOutcome::Failed,
            _ => return None,
        };
        Some((test, outcome))
    });
    outcomes.collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn libtest_output_without_a_result_counts_as_failed() {
        let program = TestProgram {
            package: "p".to_owned(),
            target: "it".to_owned(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
        };
        let output = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, run by `e`\n";
        let outcome = |test| result_of(&program, test, output).outcome;
        assert_eq!(
            [outcome("a::b"), outcome("c"), outcome("d"), outcome("hangs")],
            [TestOutcome::Passed, TestOutcome::Failed, TestOutcome::Ignored, TestOutcome::Failed]
        );
    }
}

//! Chores for developers: `cargo xtask catalogue` makes the list of models and prices anew and says
//! where its sources disagree; `cargo xtask schema` writes the protocol's; `cargo xtask structure` measures how the crates are built inside.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for developers")]

use std::{path::Path, process::ExitCode};

use xtask::{catalogue, runner, structure};

const USAGE: &str = "usage: cargo xtask catalogue
       cargo xtask schema                writes the JSON Schema of the session protocol
       cargo xtask test MESSAGES [--must-not-skip] [--list] [FILTER]
                                        runs the tests of a build whose JSON messages are in the file MESSAGES (see .ci/test)
       cargo xtask structure [CRATE…]   measures all crates; shows cycles and what is too large in CRATE";
/// The one file that `catalogue` writes.
const OUTPUT: &str = "../gnoma-llm/src/catalogue/models.tsv";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let report = match arguments.split_first() {
        Some((first, [])) if first == "catalogue" => catalogue::write_catalogue(&here.join(OUTPUT))
            .map_err(|error| format!("no catalogue was written: {error}")),
        Some((first, [])) if first == "schema" => {
            std::fs::write(here.join(xtask::SCHEMA), gnoma_core::protocol::protocol_schema())
                .map(|()| format!("{} is written", xtask::SCHEMA))
                .map_err(|error| format!("no schema was written: {error}"))
        }
        Some((first, [messages, rest @ ..])) if first == "test" => {
            return run_tests(Path::new(messages), rest);
        }
        Some((first, crates)) if first == "structure" => structure::measure_all(&here.join(".."))
            .map(|all| structure::render_report(&all, crates))
            .map_err(|error| format!("nothing was measured: {error}")),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match report {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs or lists the tests of a build, and gives how the program ends.
fn run_tests(messages: &Path, rest: &[String]) -> ExitCode {
    let must_not_skip = rest.iter().any(|word| word == "--must-not-skip");
    let filter = rest.iter().find(|word| !word.starts_with("--")).cloned().unwrap_or_default();
    let programs = std::fs::read_to_string(messages).map_err(runner::TestRunError::Messages);
    let programs = programs.and_then(|text| runner::test_programs(&text));
    let folder = messages.with_file_name("test-output");
    let outcome = programs.and_then(|programs| {
        if rest.iter().any(|word| word == "--list") {
            print!("{}", runner::list_tests(&programs)?);
            return Ok(true);
        }
        runner::run_tests(&programs, &folder, &runner::RunOptions { must_not_skip, filter })
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the tests were not run: {error}");
            ExitCode::FAILURE
        }
    }
}

//! `cargo xtask catalogue` makes the list of models and prices anew and says where its sources
//! disagree. Nothing else is done here.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for developers")]

use std::{path::Path, process::ExitCode};

use xtask::catalogue;

const USAGE: &str = "usage: cargo xtask catalogue";
/// The one file it writes.
const OUTPUT: &str = "../gnoma-llm/src/catalogue/models.tsv";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["catalogue"] {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let output = Path::new(env!("CARGO_MANIFEST_DIR")).join(OUTPUT);
    match catalogue::make(&output) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("no catalogue was written: {error}");
            ExitCode::FAILURE
        }
    }
}

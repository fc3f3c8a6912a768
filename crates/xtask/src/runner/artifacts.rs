//! The test programs that a build made, from cargo's messages.
//!
//! Source: <https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages>

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::TestRunError;

/// One program with tests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TestProgram {
    /// The crate that it belongs to.
    pub package: String,
    /// `lib`, `bin NAME`, or the name of an integration test.
    pub target: String,
    /// The path of the program.
    pub executable: PathBuf,
    /// The folder of the crate, in which its tests run.
    pub folder: PathBuf,
}

impl TestProgram {
    /// Returns the words that name it in output, such as `gnoma-store it`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// Returns the start of the names of its files below the folder of a run.
    pub(super) fn file_stem(&self) -> String {
        self.label().replace(' ', "_")
    }
}

/// Reads the messages of `cargo test --no-run --message-format=json` and returns the programs with tests.
///
/// # Errors
/// If a message about a test program lacks what names it.
pub fn test_programs(messages: &str) -> Result<Vec<TestProgram>, TestRunError> {
    let mut programs = Vec::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let is_test =
            message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        if let (true, Some(executable)) = (is_test, message["executable"].as_str()) {
            let program = read_artifact(&message, executable);
            programs.push(program.ok_or_else(|| TestRunError::Artifact(message.to_string()))?);
        }
    }
    programs.sort_by_key(TestProgram::label);
    Ok(programs)
}

fn read_artifact(message: &Value, executable: &str) -> Option<TestProgram> {
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let name = message["target"]["name"].as_str()?;
    let target = match message["target"]["kind"].get(0)?.as_str()? {
        "lib" | "proc-macro" => "lib".to_owned(),
        "bin" => format!("bin {name}"),
        _ => name.to_owned(),
    };
    let package = folder.file_name()?.to_str()?.to_owned();
    Some(TestProgram { package, target, executable: executable.into(), folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_artifacts_with_tests_are_test_programs() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/p/a/Cargo.toml","target":{"kind":["lib"],"name":"a"},"profile":{"test":true},"executable":"/t/a-1"}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/p/a/Cargo.toml","target":{"kind":["bin"],"name":"a"},"profile":{"test":false},"executable":"/t/a"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/p/a/Cargo.toml","target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/t/it-1"}"#,
        );
        let labels: Vec<_> =
            test_programs(messages).unwrap().iter().map(TestProgram::label).collect();
        assert_eq!(labels, ["a it", "a lib"]);
    }
}

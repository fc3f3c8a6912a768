//! The same texts given to bash, which may only be asked whether it would read them (`-n`).
//!
//! Skipped where there is no bash of the version whose rules are followed.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use gnoma_shell::syntax::parse;
use proptest::prelude::*;

use crate::sketch::sketch;
use crate::snippets::{damaged, list, soup};

/// Versions whose grammar of `$( )` is a real one.
static BASH_IS_RECENT: LazyLock<bool> = LazyLock::new(|| {
    let version = Command::new("bash").args(["-c", "echo ${BASH_VERSION%.*}"]).output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    version.is_some_and(|version| matches!(version.trim(), "5.2" | "5.3"))
});

fn bash_reads(text: &str) -> bool {
    let mut bash = Command::new("bash");
    if sketch(text).contains('«') {
        bash.args(["-O", "extglob"]);
    }
    bash.args(["-n", "-c", "--", text]).env_clear().env("LC_ALL", "C.UTF-8");
    let output = bash.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.success() && !said.contains("error") && !said.contains("unexpected")
}

fn pretty_printed(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, text).unwrap();
    let mut bash = Command::new("bash");
    bash.arg("--pretty-print").arg(path).env_clear().env("LC_ALL", "C.UTF-8");
    let output = bash.stdin(Stdio::null()).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn bash_accepts_every_script_that_the_parser_accepts(text in prop_oneof![list(), damaged(), soup()]) {
        if *BASH_IS_RECENT && parse(&text).is_ok() {
            prop_assert!(bash_reads(&text), "{text:?} is {}", sketch(&text));
        }
    }

    #[test]
    fn bash_pretty_print_parses_to_the_same_tree(text in list()) {
        // What it prints in a form of its own: empty tests, quotes of C, here-documents in lists.
        let is_own = ["<<E", "$'", "<&-", "! "].iter().any(|own| text.contains(own));
        if *BASH_IS_RECENT && !is_own && let Some(printed) = pretty_printed(&text) {
            // It drops parentheses that text within parentheses would need.
            if parse(&printed).is_ok() {
                prop_assert_eq!(sketch(&printed), sketch(&text));
            }
        }
    }
}

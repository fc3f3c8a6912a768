//! `deny.toml`, checked against what is really in the build: licences, forbidden crates, sources.
//!
//! `cargo deny check` reads the same file and also knows advisories; it takes five minutes to install, so that it is not part of the tests.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_dependency_keeps_to_deny_toml() {
    let rules: toml::Table =
        std::fs::read_to_string(Path::new(ROOT).join("deny.toml")).unwrap().parse().unwrap();
    let targets = strings(&rules["graph"]["targets"]);
    let allowed: BTreeSet<&str> = strings(&rules["licenses"]["allow"]).into_iter().collect();
    let banned: Vec<&str> = rules["bans"]["deny"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ban| ban["crate"].as_str().unwrap())
        .collect();

    let mut faults = BTreeSet::new();
    for target in targets {
        let Some(metadata) = cargo_metadata(target) else {
            return gnoma_testkit::skip_test(
                "crates.io is out of reach, and cargo needs crates of other platforms",
            );
        };
        let used: BTreeSet<&str> = metadata["resolve"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| node["id"].as_str().unwrap())
            .collect();
        for package in metadata["packages"].as_array().unwrap() {
            let (id, name) = (package["id"].as_str().unwrap(), package["name"].as_str().unwrap());
            if !used.contains(id) {
                continue;
            }
            let license = package["license"].as_str().unwrap_or("no license");
            if !is_license_allowed(license, &allowed) {
                faults.insert(format!("{name}: the licence `{license}` is not on the list"));
            }
            if banned.contains(&name) {
                faults.insert(format!("{name} is forbidden"));
            }
            if package["source"].as_str().is_some_and(|source| source != CRATES_IO) {
                faults.insert(format!("{name} is not from crates.io: {}", package["source"]));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

fn strings(list: &toml::Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry.as_str().unwrap()).collect()
}

/// Returns what cargo knows of the build for one target; `None` if crates are missing and cannot be fetched.
fn cargo_metadata(target: &str) -> Option<Value> {
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(ROOT).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        assert!(errors.contains("download") || errors.contains("network"), "{errors}");
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Evaluates an SPDX expression (`OR`, `AND`, `WITH`, parentheses; `/` is an old form of `OR`).
///
/// Source: <https://spdx.github.io/spdx-spec/v3.0.1/annexes/spdx-license-expressions/>
fn is_license_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rest = words.as_slice();
    let is_allowed = parse_any(&mut rest, allowed);
    assert!(rest.is_empty(), "cannot read the licence `{expression}`");
    is_allowed
}

fn parse_any(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut is_allowed = parse_all(words, allowed);
    while let Some((&"OR", rest)) = words.split_first() {
        *words = rest;
        is_allowed |= parse_all(words, allowed);
    }
    is_allowed
}

fn parse_all(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut is_allowed = parse_one(words, allowed);
    while let Some((&"AND", rest)) = words.split_first() {
        *words = rest;
        is_allowed &= parse_one(words, allowed);
    }
    is_allowed
}

fn parse_one(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let (first, rest) = words.split_first().unwrap();
    *words = rest;
    if *first == "(" {
        let is_allowed = parse_any(words, allowed);
        let (close, rest) = words.split_first().unwrap();
        assert_eq!(*close, ")");
        *words = rest;
        return is_allowed;
    }
    if let [with, exception, rest @ ..] = *words
        && *with == "WITH"
    {
        *words = rest;
        return allowed.contains(format!("{first} WITH {exception}").as_str());
    }
    allowed.contains(first)
}

#[test]
fn a_license_expression_is_evaluated() {
    let allowed = BTreeSet::from(["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]);
    for expression in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/GPL-3.0",
        "Apache-2.0 WITH LLVM-exception",
        "(GPL-3.0 OR MIT) AND Unicode-3.0",
    ] {
        assert!(is_license_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT OR GPL-3.0) AND GPL-3.0"] {
        assert!(!is_license_allowed(expression, &allowed), "{expression}");
    }
}

//! Reads the rule files and writes them as the tables of [`super::builtin`].
//!
//! Only tests need the files: a table that differs from them is written anew, and the test fails so that
//! it is looked at.

use std::{fs, path::PathBuf};

use serde::Deserialize;

use super::{
    SecretRule,
    builtin::{self, AT_KEYWORD, AT_NAME, AT_WORD, FIELD, FIRST_OFFSET, WORD},
    plan::{SearchPlace, SearchPlan},
};
use crate::keywords::Keyword;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<SecretRule>,
}

fn crate_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// All rules, in the order of the names of their files.
pub(super) fn read_sources() -> Vec<SecretRule> {
    let mut paths: Vec<_> =
        fs::read_dir(crate_path("rules")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut rules = Vec::new();
    for path in paths {
        let file: RuleFile = toml::from_str(&fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let family = path.file_stem().unwrap().to_string_lossy().into_owned();
        rules.extend(file.rule.into_iter().map(|mut rule| {
            if rule.family.is_empty() {
                rule.family.clone_from(&family);
            }
            rule
        }));
    }
    rules
}

fn encode_rule(rule: &SecretRule, plan: &SearchPlan) -> String {
    let place = match plan.place {
        SearchPlace::AtKeyword => AT_KEYWORD.to_owned(),
        SearchPlace::AtWord => AT_WORD.to_owned(),
        SearchPlace::AtName => AT_NAME.to_owned(),
        SearchPlace::Around(distance) => distance.to_string(),
    };
    let mut fields = vec![
        rule.id.clone(),
        rule.family.clone(),
        place,
        plan.longest.to_string(),
        plan.run.length.to_string(),
        plan.run.alphabets.to_string(),
        rule.min_entropy.map_or_else(String::new, |bits| bits.to_string()),
        rule.reach.to_string(),
        rule.near.join(&WORD.to_string()),
        rule.pattern.clone(),
    ];
    fields.extend(rule.allow.iter().cloned());
    for field in &fields {
        assert!(!field.contains([FIELD, '\n', '\r']), "`{}` holds a tab or a line break", rule.id);
    }
    assert!(!rule.near.concat().contains(WORD), "`{}` has `{WORD}` in `near`", rule.id);
    fields.join(&FIELD.to_string()) + "\n"
}

fn rules_table(rules: &[SecretRule]) -> String {
    rules.iter().map(|rule| encode_rule(rule, &SearchPlan::new(rule))).collect()
}

fn keywords_table(rules: &[SecretRule]) -> String {
    let mut lines = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        for word in &rule.keywords {
            let word = word.to_ascii_lowercase();
            let keyword = Keyword::new(&word, number).unwrap();
            let offset = char::from(FIRST_OFFSET + u8::try_from(keyword.rarest).unwrap());
            let text = format!("{offset}{word}{FIELD}{number}\n");
            lines.push((keyword.group(), word, number, text));
        }
    }
    lines.sort();
    lines.into_iter().map(|(.., text)| text).collect()
}

#[test]
fn packed_rule_tables_match_the_rule_files() {
    let rules = read_sources();
    let tables = [
        ("data/rules.table", rules_table(&rules)),
        ("data/keywords.table", keywords_table(&rules)),
    ];
    let mut changed = Vec::new();
    for (name, table) in tables {
        if fs::read_to_string(crate_path(name)).ok().as_ref() != Some(&table) {
            fs::write(crate_path(name), table).unwrap();
            changed.push(name);
        }
    }
    assert!(changed.is_empty(), "the rule files changed, so {changed:?} were written: test again");
}

#[test]
fn packed_rule_lines_round_trip() {
    assert_eq!(builtin::rule_lines().count(), read_sources().len());
    for written in builtin::rule_lines() {
        let (rule, plan) = builtin::parse_rule(written).unwrap();
        assert_eq!(encode_rule(&rule, &plan).trim_end_matches('\n'), written);
        assert_eq!(builtin::rule_names(written), (rule.id.as_str(), rule.family.as_str()));
    }
    let mut read: Vec<_> = builtin::all_keywords().map(|word| (word.value, word.word)).collect();
    read.sort_unstable();
    let mut expected = Vec::new();
    let sources = read_sources();
    for (number, rule) in sources.iter().enumerate() {
        expected.extend(rule.keywords.iter().map(|word| (number, word.to_ascii_lowercase())));
    }
    expected.sort_unstable();
    assert!(read.into_iter().eq(expected.iter().map(|(number, word)| (*number, word.as_str()))));
    let is_rarest = |word: Keyword| Keyword::new(word.word, 0).unwrap().rarest == word.rarest;
    assert!(builtin::all_keywords().all(is_rarest));
}

#[test]
fn a_rule_file_with_an_unknown_field_is_an_error_that_names_it() {
    let error = toml::from_str::<RuleFile>("[[rule]]\nid = 'a'\npatern = 'b'").err().unwrap();
    assert!(error.to_string().contains("patern"), "{error}");
}

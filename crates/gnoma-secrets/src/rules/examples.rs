//! Every rule file is tested by its own examples.

use std::collections::BTreeSet;

use super::pack::read_sources;
use crate::{Scanner, ScannerOptions, keywords::MIN_WORD_BYTES, scanner::RuleProbe};

/// Writes out `{alphabet:length}` parts from a fixed pseudo-random sequence.
fn expand_example(example: &str) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut out = String::new();
    let mut rest = example;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let drawn = from.find('}').and_then(|close| {
            let text = draw_part(&from[1..close], &mut next)?;
            Some((text, &from[close + 1..]))
        });
        match drawn {
            Some((text, after)) => {
                out.push_str(&text);
                rest = after;
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn draw_part(part: &str, next: &mut impl FnMut() -> usize) -> Option<String> {
    const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const DIGIT: &str = "0123456789";
    let mut take = |alphabet: &str, length: usize| -> String {
        (0..length).map(|_| char::from(alphabet.as_bytes()[next() % alphabet.len()])).collect()
    };
    if part == "uuid" {
        let hex = "0123456789abcdef";
        return Some([8, 4, 4, 4, 12].map(|length| take(hex, length)).join("-"));
    }
    let (name, length) = part.split_once(':')?;
    let alphabet = match name {
        "hex" => format!("{DIGIT}abcdef"),
        "HEX" => format!("{DIGIT}ABCDEF"),
        "digit" => DIGIT.to_owned(),
        "lower" => LOWER.to_owned(),
        "upper" => UPPER.to_owned(),
        "alnum" => format!("{LOWER}{UPPER}{DIGIT}"),
        "lowalnum" => format!("{LOWER}{DIGIT}"),
        "upalnum" => format!("{UPPER}{DIGIT}"),
        "b64" => format!("{LOWER}{UPPER}{DIGIT}+/"),
        "b64url" => format!("{LOWER}{UPPER}{DIGIT}-_"),
        "base32" => format!("{UPPER}234567"),
        _ => return None,
    };
    Some(take(&alphabet, length.parse().ok()?))
}

#[test]
fn all_rules_are_well_formed() {
    Scanner::new(ScannerOptions::default()).unwrap().check_rules().unwrap();
    let mut ids = BTreeSet::new();
    for rule in read_sources() {
        assert!(ids.insert(rule.id.clone()), "the id `{}` is taken twice", rule.id);
        assert!(!rule.keywords.is_empty(), "`{}` has no keyword", rule.id);
        let is_short = |word: &String| word.len() < MIN_WORD_BYTES;
        assert!(
            !rule.keywords.iter().any(is_short),
            "`{}` has a keyword that is too short",
            rule.id
        );
        assert!(!rule.about.is_empty(), "`{}` does not say what it is about", rule.id);
        assert!(!rule.matches.is_empty(), "`{}` has no example that matches", rule.id);
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(rule.id.chars().all(kebab), "the id `{}` is not kebab-case", rule.id);
    }
}

#[test]
fn each_rule_finds_its_examples_and_only_them() {
    let mut wrong = Vec::new();
    for rule in read_sources() {
        let id = rule.id.clone();
        let (matches, no_match) = (rule.matches.clone(), rule.no_match.clone());
        let alone = match RuleProbe::new(rule) {
            Ok(alone) => alone,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        for example in matches {
            if alone.find(expand_example(&example).as_bytes()).is_empty() {
                wrong.push(format!("`{id}` does not find {example}"));
            }
        }
        for example in no_match {
            if !alone.find(expand_example(&example).as_bytes()).is_empty() {
                wrong.push(format!("`{id}` finds {example}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

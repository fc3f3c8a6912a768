//! What the guard reads: text that may hold secrets or hide something, commands, rules, placeholders.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use gnoma_core::RawJson;
use gnoma_guard::{
    permission::{Origin, Rule, RuleAction},
    secrets::{Finding, Scanner, ScannerOptions, StreamScanner},
    shell::{Analysis, StartContext, analyse_command},
    unicode::{Cleaner, RetainedControls, clean_text},
    vault::Vault,
};
use serde_json::{Map, Value};

/// Longest piece that an input is cut into.
const MAX_PIECE_BYTES: usize = 64;
/// Where one window of the scanner ends and the next begins.
const BORDER: usize = 256 << 10;
/// Of so many inputs one is laid across such a border: that takes a thousand times as long.
const RARELY: usize = 64;
/// Where the numbers of placeholders start; seeds name them.
const FIRST_PLACEHOLDER: u64 = 7;
/// What the placeholder of the seeds stands for, with what JSON must escape.
const VALUE: &str = "s3cr\"et\\\n\u{E9}";

/// Spans are in order and inside; a stream is judged the same wherever it is cut, also where the
/// scanner itself cuts.
pub fn secrets(input: &[u8]) {
    static SCANNER: LazyLock<Arc<Scanner>> =
        LazyLock::new(|| match Scanner::new(ScannerOptions::default()) {
            Ok(scanner) => Arc::new(scanner),
            Err(error) => panic!("{error}"),
        });
    assert_cuts_do_not_matter(&SCANNER, input);
    if input.len() % RARELY == 1 {
        let mut long = b"some words\n".repeat(BORDER / 11);
        long.truncate(BORDER - input.len() / 2);
        long.extend_from_slice(input);
        assert_cuts_do_not_matter(&SCANNER, &long);
    }
}

fn assert_cuts_do_not_matter(scanner: &Arc<Scanner>, text: &[u8]) {
    let whole = scanner.scan(text);
    let is_inside = |finding: &Finding| finding.start < finding.end && finding.end <= text.len();
    assert!(whole.iter().all(is_inside), "{whole:?}");
    let in_order = whole.windows(2).all(|pair| matches!(pair, [a, b] if a.end <= b.start));
    assert!(in_order, "{whole:?}");
    let mut stream = StreamScanner::new(Arc::clone(scanner));
    let mut found: Vec<Finding> = pieces(text).flat_map(|piece| stream.push(piece)).collect();
    found.extend(stream.finish());
    assert_eq!(found, whole, "cut into pieces");
}

/// Cuts `input` where it says itself: the first byte of a piece tells how long the piece is.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let first = usize::from(*rest.first()?);
        let (piece, after) = rest.split_at((1 + first % MAX_PIECE_BYTES).min(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// What is left of a text is a part of it in the same order; cleaning it again changes nothing; it is
/// the same wherever the text was cut.
pub fn unicode(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for keep in [RetainedControls::Text, RetainedControls::Colour] {
        let cleaned = clean_text(&text, keep);
        let mut rest = text.chars();
        let is_part = cleaned.text.chars().all(|c| rest.any(|other| other == c));
        assert!(is_part, "rewritten: {:?}", cleaned.text);
        assert_eq!(clean_text(&cleaned.text, keep).text, cleaned.text, "cleaned twice");
        let mut cleaner = Cleaner::new(keep);
        let mut shown = String::new();
        for piece in characters(&text) {
            shown.push_str(&cleaner.push(piece));
        }
        let end = cleaner.finish();
        shown.push_str(&end.text);
        assert_eq!(shown, cleaned.text, "cut into pieces");
        assert_eq!(end.flags, cleaned.flags, "cut into pieces");
    }
}

/// Cuts a text between characters.
fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|c: char| u32::from(c) % 3 == 0)
}

/// Any text is analysed; a subshell around a command, or another command beside it, does not make it
/// harmless.
pub fn shell(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let analysis = analysed(&text);
    assert!(analysis.unparsed.is_none() || !analysis.is_read_only());
    if analysis.unparsed.is_some() || analysis.is_read_only() {
        return;
    }
    for wrapped in [format!("({text}\n)"), format!("{{ {text}\n}}"), format!("ls\n{text}")] {
        let outer = analysed(&wrapped);
        assert!(!outer.is_read_only(), "read-only as `{wrapped}`: {outer:?}");
    }
}

fn analysed(text: &str) -> Analysis {
    analyse_command(
        text,
        &StartContext { cwd: PathBuf::from("/work/project"), home: Some("/home/me".into()) },
    )
}

/// A rule that was read is written so that it reads the same again.
pub fn rule(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for action in [RuleAction::Allow, RuleAction::Ask, RuleAction::Deny] {
        if let Ok(rule) = Rule::parse(action, &text, Origin::User) {
            let written = rule.to_string();
            assert_eq!(
                Rule::parse(action, &written, Origin::User),
                Ok(rule),
                "written `{written}`"
            );
        }
        if let Some((tool, pattern)) = text.split_once('\n') {
            let _refused = Rule::from_config(action, tool, pattern, Origin::User).is_err();
        }
    }
}

/// Secrets come back in the strings of a JSON value as they would in each string alone; without a
/// placeholder not a byte changes.
pub fn restore(input: &[u8]) {
    let vault = Vault::new(FIRST_PLACEHOLDER);
    let placeholder = vault.conceal("own", VALUE);
    let text = String::from_utf8_lossy(input);
    let plain = vault.restore(&text);
    assert_eq!(plain.used.is_empty(), plain.text == text, "what is replaced is told");
    let Ok(json) = RawJson::parse(text.as_ref()) else { return };
    let restored = vault.restore_json(&json);
    if restored.used.is_empty() {
        assert_eq!(restored.text, json, "nothing was to be replaced");
    }
    assert!(restored.used.iter().all(|used| *used == placeholder), "{restored:?}");
    let (Ok(before), Ok(after)) = (json.read::<Value>(), restored.text.read::<Value>()) else {
        assert!(json.read::<Value>().is_err(), "it was JSON");
        return;
    };
    let mut unknown = BTreeSet::new();
    assert_eq!(after, filled(before, &vault, &mut unknown));
    // Of names that are there twice only the last is read here.
    let missed = unknown.iter().find(|unknown| !restored.unknown.contains(unknown));
    assert_eq!(missed, None, "not told of");
}

fn filled(value: Value, vault: &Vault, unknown: &mut BTreeSet<String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill(&text, vault, unknown)),
        Value::Array(items) => items.into_iter().map(|item| filled(item, vault, unknown)).collect(),
        Value::Object(fields) => {
            let mut whole = Map::new();
            for (name, item) in fields {
                let name = fill(&name, vault, unknown);
                whole.insert(name, filled(item, vault, unknown));
            }
            Value::Object(whole)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn fill(text: &str, vault: &Vault, unknown: &mut BTreeSet<String>) -> String {
    let restored = vault.restore(text);
    unknown.extend(restored.unknown);
    restored.text.into_owned()
}

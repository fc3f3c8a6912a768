//! The rules that come with gnoma, as the program holds them.
//!
//! `data/rules.table` and `data/keywords.table` are written from the files under `rules/` by a test, which
//! fails when they differ. They hold what scanning needs and nothing that would have to be worked out:
//! one-shot runs of the program scan a few kilobytes and must not wait for it. Both are compressed: the
//! keywords as a whole, the rules in parts, of which one is unpacked when a keyword of it is first met.
//!
//! A line of the first is a rule: id, family, where to search, longest match, length and alphabets of
//! the run it holds, least entropy, reach, words near it, pattern, and any number of expressions that
//! are passed. A line of the second is a keyword: the offset of its rarest letters as a letter (`a` is
//! 0), right behind it the word, and the number of a rule. Tabs separate fields.

use std::sync::{LazyLock, OnceLock};

use gnoma_packed::{packed, unpack};

use super::{
    SecretRule,
    plan::{SearchPlace, SearchPlan},
    shape::Run,
};
use crate::keywords::Keyword;

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// The unpacked parts of the table of rules.
static PARTS: [OnceLock<String>; PACKED_PARTS.len()] =
    [const { OnceLock::new() }; PACKED_PARTS.len()];
static KEYWORDS: LazyLock<String> = LazyLock::new(|| unpack(packed!("keywords.table")));

/// The separator of fields in the tables.
pub(super) const FIELD: char = '\t';
/// Stands for 0 where an offset is one letter.
pub(super) const FIRST_OFFSET: u8 = b'a';
/// Separates words within a field.
pub(super) const WORD: char = '|';
/// Places of a search that are not a distance.
pub(super) const AT_KEYWORD: &str = "keyword";
pub(super) const AT_WORD: &str = "word";
pub(super) const AT_NAME: &str = "name";

/// Returns the line of a rule in the table, or an empty one for a number that no rule has.
pub(crate) fn rule_line(number: usize) -> &'static str {
    let part = number / RULES_PER_PART;
    let (Some(text), Some(packed)) = (PARTS.get(part), PACKED_PARTS.get(part)) else {
        return "";
    };
    let text = text.get_or_init(|| unpack(packed));
    text.lines().nth(number % RULES_PER_PART).unwrap_or_default()
}

/// Returns a line for each rule, in the order of their numbers.
pub(crate) fn rule_lines() -> impl Iterator<Item = &'static str> {
    (0..RULE_COUNT).map(rule_line)
}

/// Id and family of the rule on a line.
pub(crate) fn rule_names(line: &str) -> (&str, &str) {
    let mut fields = line.split(FIELD);
    (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
}

/// All keywords, each with the number of its rule as its value.
pub(crate) fn all_keywords() -> impl Iterator<Item = Keyword<'static>> {
    KEYWORDS.lines().filter_map(parse_keyword)
}

/// Reads from both ends: every start of the program reads thousands of these lines.
fn parse_keyword(line: &'static str) -> Option<Keyword<'static>> {
    let (&offset, _) = line.as_bytes().split_first()?;
    let digits = line.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (word, number) = line.split_at_checked(line.len() - digits)?;
    let value = number.bytes().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    let word = word.get(1..word.len().checked_sub(1)?)?;
    Some(Keyword { word, value, rarest: usize::from(offset.checked_sub(FIRST_OFFSET)?) })
}

/// The rule on a line, without its keywords and examples, and how to search for it.
pub(crate) fn parse_rule(line: &str) -> Option<(SecretRule, SearchPlan)> {
    let mut fields = line.split(FIELD);
    let id = fields.next()?;
    let family = fields.next()?.to_owned();
    let place = match fields.next()? {
        AT_KEYWORD => SearchPlace::AtKeyword,
        AT_WORD => SearchPlace::AtWord,
        AT_NAME => SearchPlace::AtName,
        distance => SearchPlace::Around(distance.parse().ok()?),
    };
    let longest = fields.next()?.parse().ok()?;
    let length = fields.next()?.parse().ok()?;
    let run = Run { length, alphabets: fields.next()?.parse().ok()? };
    let min_entropy = match fields.next()? {
        "" => None,
        bits => Some(bits.parse().ok()?),
    };
    let reach = fields.next()?.parse().ok()?;
    let near = fields.next()?.split(WORD).filter(|word| !word.is_empty());
    let near = near.map(str::to_owned).collect();
    let pattern = fields.next()?;
    let allow = fields.map(str::to_owned).collect();
    let rule = SecretRule {
        family,
        min_entropy,
        reach,
        near,
        allow,
        ..SecretRule::from_pattern(id, pattern)
    };
    Some((rule, SearchPlan { place, longest, run }))
}

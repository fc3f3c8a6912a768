//! What runs over one window: the keywords first, then only what they call for.
//!
//! The text is looked at as it stands and through its decoded views ([`crate::decode`]).

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::Scanner;
#[cfg(test)]
use crate::rules::{Rule, RuleError};
use crate::{
    context::{self, Place},
    decode::{self, View},
    generic,
    keywords::{self, Keywords},
    rules::{
        builtin,
        compiled::{CompiledRule, SearchPlace},
    },
};

/// Views of views are followed this deep: a value in JSON in JSON in base64.
const MAX_DEPTH: usize = 3;
/// The family that findings by name and look belong to.
const GENERIC_FAMILY: &str = "generic";

/// Who found something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// A known value, by index.
    Known(usize),
    /// A rule, by index.
    Rule(usize),
    /// A place where secrets stand.
    Place(&'static str),
    /// A name or the look of the value.
    Generic(&'static str),
}

impl Label {
    /// The lower, the more it says about the secret.
    pub(crate) fn strength(&self) -> u8 {
        match self {
            Self::Known(_) => 0,
            Self::Rule(_) => 1,
            Self::Place(_) => 2,
            Self::Generic(_) => 3,
        }
    }
}

/// A finding before its name is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    /// Where it stands.
    pub(crate) span: Range<usize>,
    /// Who found it.
    pub(crate) label: Label,
}

/// What a keyword calls for.
#[derive(Clone, Copy, Debug)]
enum Action {
    Rule(usize),
    Place(usize),
}

/// A part of the text that a rule has to search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    rule: usize,
    start: usize,
    end: usize,
}

/// Everything that is built once.
#[derive(Debug)]
pub(crate) struct Engine {
    keywords: Keywords,
    /// What each keyword calls for, by its index.
    actions: Vec<Vec<Action>>,
    rules: Vec<Arc<CompiledRule>>,
    /// Rules without keyword, by index.
    unconditional: Vec<usize>,
}

impl Engine {
    /// Collects the rules and the table of their keywords.
    pub(crate) fn build(scanner: &Scanner) -> Self {
        // The files are right or `Scanner::check` (and the tests) say so.
        let builtin = builtin::load().unwrap_or_default();
        let mut rules: Vec<_> =
            builtin.into_iter().map(|rule| Arc::new(CompiledRule::lazy(rule))).collect();
        rules.extend(scanner.extra.iter().cloned());
        rules.retain(|compiled| {
            let rule = compiled.rule();
            !scanner.disabled.contains(&rule.id)
                && !scanner.disabled_families.contains(&rule.family)
        });
        let places = if scanner.disabled_families.contains(context::FAMILY) {
            &[][..]
        } else {
            context::PLACES
        };
        Self::of_rules(rules, places)
    }

    fn of_rules(rules: Vec<Arc<CompiledRule>>, places: &[Place]) -> Self {
        let mut table = KeywordTable::default();
        let mut unconditional = Vec::new();
        for (index, compiled) in rules.iter().enumerate() {
            let is_short = |word: &String| word.len() < keywords::MIN_WORD_BYTES;
            if compiled.rule().keywords.iter().all(is_short) {
                unconditional.push(index);
            }
            for keyword in &compiled.rule().keywords {
                table.add(keyword, Action::Rule(index));
            }
        }
        for (index, place) in places.iter().enumerate() {
            for keyword in place.keywords {
                table.add(keyword, Action::Place(index));
            }
        }
        let (keywords, actions) = table.build();
        Self { keywords, actions, rules, unconditional }
    }

    /// Adds all that is found in `text`, also overlapping.
    pub(crate) fn scan(&self, scanner: &Scanner, text: &[u8], raw: &mut Vec<Raw>) {
        match decode::without_colours(text) {
            Some(plain) => {
                let mut found = Vec::new();
                self.scan_layers(scanner, plain.text(), MAX_DEPTH, &mut found);
                add_from_view(&plain, found, raw);
            }
            None => self.scan_layers(scanner, text, MAX_DEPTH, raw),
        }
    }

    /// Looks at the text and at its decoded views.
    fn scan_layers(&self, scanner: &Scanner, text: &[u8], depth: usize, raw: &mut Vec<Raw>) {
        self.look(scanner, text, raw);
        if depth == 0 {
            return;
        }
        for decode in decode::DECODERS {
            let Some(view) = decode(text) else { continue };
            let mut found = Vec::new();
            self.scan_layers(scanner, view.text(), depth - 1, &mut found);
            add_from_view(&view, found, raw);
        }
    }

    /// Looks at the text as it stands.
    fn look(&self, scanner: &Scanner, text: &[u8], raw: &mut Vec<Raw>) {
        let first = raw.len();
        scanner.known.find(text, raw);
        self.look_for_keywords(text, raw);
        for &rule in &self.unconditional {
            self.search(Work { rule, start: 0, end: text.len() }, text, raw);
        }
        if !scanner.disabled_families.contains(GENERIC_FAMILY) {
            look_for_names(text, raw);
        }
        if !scanner.disabled.is_empty() {
            self.drop_disabled(scanner, raw, first);
        }
    }

    /// Rules are left out when the engine is built; the rest is known by its name only.
    fn drop_disabled(&self, scanner: &Scanner, raw: &mut Vec<Raw>, first: usize) {
        let mut index = 0;
        raw.retain(|found| {
            index += 1;
            index <= first || !scanner.disabled.contains(&*self.name(scanner, &found.label))
        });
    }

    fn look_for_keywords(&self, text: &[u8], raw: &mut Vec<Raw>) {
        let mut work = Vec::new();
        self.keywords.each(text, &mut |keyword, hit| {
            for &action in self.actions.get(keyword).map_or(&[][..], Vec::as_slice) {
                match action {
                    Action::Rule(rule) => self.begin_rule(rule, &hit, text, &mut work, raw),
                    Action::Place(place) => look_at_place(place, text, hit.clone(), raw),
                }
            }
        });
        work.sort_unstable();
        work.dedup_by(|next, kept| {
            let joined = next.rule == kept.rule && next.start <= kept.end;
            if joined {
                kept.end = kept.end.max(next.end);
            }
            joined
        });
        for work in work {
            self.search(work, text, raw);
        }
    }

    /// Searches at the keyword, or notes what has to be searched around it.
    fn begin_rule(
        &self,
        index: usize,
        hit: &Range<usize>,
        text: &[u8],
        work: &mut Vec<Work>,
        raw: &mut Vec<Raw>,
    ) {
        let Some(rule) = self.rules.get(index) else { return };
        let found = |span| raw.push(Raw { span, label: Label::Rule(index) });
        match rule.place() {
            SearchPlace::AtKeyword | SearchPlace::AtWord => rule.search_at(text, hit.start, found),
            SearchPlace::Around(window) => work.push(Work {
                rule: index,
                start: hit.start.saturating_sub(window),
                end: text.len().min(hit.end + window),
            }),
        }
    }

    fn search(&self, work: Work, text: &[u8], raw: &mut Vec<Raw>) {
        let Some(rule) = self.rules.get(work.rule) else { return };
        rule.search(text, work.start..work.end, |span| {
            raw.push(Raw { span, label: Label::Rule(work.rule) });
        });
    }

    /// The id that people see.
    pub(crate) fn name(&self, scanner: &Scanner, label: &Label) -> Arc<str> {
        match label {
            Label::Known(index) => scanner.known.name(*index).into(),
            Label::Rule(index) => {
                self.rules.get(*index).map_or("", |rule| rule.rule().id.as_str()).into()
            }
            Label::Place(name) | Label::Generic(name) => (*name).into(),
        }
    }
}

/// Keywords in lower case, each once, with what they call for.
#[derive(Default)]
struct KeywordTable(BTreeMap<String, Vec<Action>>);

impl KeywordTable {
    fn add(&mut self, keyword: &str, action: Action) {
        let actions = self.0.entry(keyword.to_ascii_lowercase()).or_default();
        actions.push(action);
    }

    fn build(self) -> (Keywords, Vec<Vec<Action>>) {
        let keywords = Keywords::new(self.0.keys().map(String::as_str));
        (keywords, self.0.into_values().collect())
    }
}

fn add_from_view(view: &View, found: Vec<Raw>, raw: &mut Vec<Raw>) {
    raw.extend(found.into_iter().map(|found| Raw { span: view.origin(found.span), ..found }));
}

fn look_for_names(text: &[u8], raw: &mut Vec<Raw>) {
    let mut found = Vec::new();
    generic::find(text, &mut found);
    raw.extend(found.into_iter().map(|candidate| Raw {
        span: candidate.start..candidate.end,
        label: Label::Generic(candidate.rule),
    }));
}

fn look_at_place(place: usize, text: &[u8], hit: Range<usize>, raw: &mut Vec<Raw>) {
    let Some(place) = context::PLACES.get(place) else { return };
    (place.find)(text, hit, &mut |span| {
        raw.push(Raw { span, label: Label::Place(place.id) });
    });
}

/// One rule by itself, for the tests of rule files.
#[cfg(test)]
pub(crate) struct RuleProbe(Engine);

#[cfg(test)]
impl RuleProbe {
    /// Builds the rule.
    pub(crate) fn new(rule: Rule) -> Result<Self, RuleError> {
        Ok(Self(Engine::of_rules(vec![Arc::new(CompiledRule::eager(rule)?)], &[])))
    }

    /// What it finds.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut raw = Vec::new();
        self.0.look_for_keywords(text, &mut raw);
        raw.into_iter().map(|raw| raw.span).collect()
    }
}

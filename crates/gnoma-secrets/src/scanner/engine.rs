//! What runs over one window: the keywords first, then only what they call for.
//!
//! The text is looked at as it stands and through its decoded views ([`crate::decode`]).

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use zeroize::Zeroizing;

use super::raw_finding::{Label, RawFinding};
use super::selection::Selection;
use super::spans;
#[cfg(test)]
use crate::rules::{RuleError, SecretRule};
use crate::{
    context::{self, SecretContext},
    decode::{self, View},
    generic,
    keywords::{self, Keyword, Keywords},
    rules::{builtin, compiled::CompiledRule, plan::SearchPlace},
};

/// Views of views are followed this deep: a value in JSON in JSON in base64.
const MAX_DEPTH: usize = 3;
/// The family that findings by name and look belong to.
const GENERIC_FAMILY: &str = "generic";

/// The search that a keyword starts. The value of a keyword numbers rules, places and the rest, in this order.
#[derive(Clone, Copy, Debug)]
enum KeywordAction {
    Rule(usize),
    Place(usize),
    Name,
}

/// The hits of one pass over a text that are examined later.
struct PassHits {
    /// Parts of names of secrets.
    names: Vec<Range<usize>>,
    /// The offsets at which long runs of token characters begin.
    runs: Vec<usize>,
}

/// A part of the text that a rule has to search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SearchWork {
    rule: usize,
    start: usize,
    end: usize,
}

/// The rules by number: those of the table first, each read when its keyword is first met.
#[derive(Debug, Default)]
struct Rules {
    builtin: Vec<OnceLock<Option<Box<CompiledRule>>>>,
    extra: Vec<Arc<CompiledRule>>,
}

impl Rules {
    fn len(&self) -> usize {
        self.builtin.len() + self.extra.len()
    }

    fn get(&self, number: usize) -> Option<&CompiledRule> {
        let Some(rule) = self.builtin.get(number) else {
            return self.extra.get(number - self.builtin.len()).map(|rule| &**rule);
        };
        let read = || {
            let (rule, plan) = builtin::parse_rule(builtin::rule_line(number))?;
            Some(CompiledRule::new_lazy(rule, plan).into())
        };
        rule.get_or_init(read).as_deref()
    }

    fn id(&self, number: usize) -> &str {
        self.get(number).map_or("", |compiled| &compiled.rule().id)
    }
}

/// Everything that is built once.
#[derive(Debug)]
pub(crate) struct Engine {
    keywords: Keywords,
    rules: Rules,
    places: &'static [SecretContext],
    /// Rules without keyword, by number.
    unconditional: Vec<usize>,
}

impl Engine {
    /// Collects the rules and the table of their keywords.
    pub(crate) fn build(selection: &Selection) -> Self {
        let mut rules = Rules {
            builtin: (0..builtin::RULE_COUNT).map(|_| OnceLock::new()).collect(),
            extra: selection.extra.clone(),
        };
        rules.extra.retain(|rule| !selection.is_off(&rule.rule().id, &rule.rule().family));
        let has_places = !selection.disabled_families.contains(context::FAMILY);
        let places = if has_places { context::PLACES } else { &[] };
        let has_names = !selection.disabled_families.contains(GENERIC_FAMILY);
        let names = if has_names { generic::STEMS } else { &[] };
        let is_on = |keyword: &Keyword| {
            let (id, family) = builtin::rule_names(builtin::rule_line(keyword.value));
            !selection.is_off(id, family)
        };
        let words =
            builtin::all_keywords().filter(|word| selection.has_all() || is_on(word)).collect();
        Self::from_rules(rules, places, words, names)
    }

    /// `words` are those of the built-in rules that are on, `names` are parts of names of secrets.
    fn from_rules(
        rules: Rules,
        places: &'static [SecretContext],
        mut words: Vec<Keyword<'static>>,
        names: &[&'static str],
    ) -> Self {
        let first = rules.builtin.len();
        let is_short = |word: &String| word.len() < keywords::MIN_WORD_BYTES;
        let has_no_keyword =
            |(_, rule): &(usize, &Arc<CompiledRule>)| rule.rule().keywords.iter().all(is_short);
        let extra = || (first..).zip(&rules.extra);
        let unconditional = extra().filter(has_no_keyword).map(|(number, _)| number).collect();
        for (number, place) in (rules.len()..).zip(places) {
            words.extend(place.keywords.iter().filter_map(|word| Keyword::new(word, number)));
        }
        let name = rules.len() + context::PLACES.len();
        words.extend(names.iter().filter_map(|word| Keyword::new(word, name)));
        let of_extra = extra().flat_map(|(number, rule)| {
            let words = rule.rule().keywords.iter();
            words.filter_map(move |word| Keyword::new(word, number))
        });
        let keywords = Keywords::new(words.into_iter().chain(of_extra));
        Self { keywords, rules, places, unconditional }
    }

    fn keyword_action(&self, value: usize) -> KeywordAction {
        match value.checked_sub(self.rules.len()) {
            None => KeywordAction::Rule(value),
            Some(place) if place < context::PLACES.len() => KeywordAction::Place(place),
            Some(_) => KeywordAction::Name,
        }
    }

    /// Adds all that is found in `text`, also overlapping.
    pub(crate) fn scan(&self, selection: &Selection, text: &[u8], raw: &mut Vec<RawFinding>) {
        match decode::without_colours(text) {
            Some(plain) => {
                let mut found = Vec::new();
                self.scan_layers(selection, plain.text(), MAX_DEPTH, &mut found);
                add_from_view(&plain, found, raw);
            }
            None => self.scan_layers(selection, text, MAX_DEPTH, raw),
        }
    }

    /// Looks at the text and at its decoded views.
    fn scan_layers(
        &self,
        selection: &Selection,
        text: &[u8],
        depth: usize,
        raw: &mut Vec<RawFinding>,
    ) {
        let runs = self.scan_plain_text(selection, text, raw);
        if depth == 0 {
            return;
        }
        let views = decode::DECODERS.iter().map(|decode| decode(text));
        for view in views.chain([decode::blob(text, &runs)]).flatten() {
            let mut found = Vec::new();
            self.scan_layers(selection, view.text(), depth - 1, &mut found);
            add_from_view(&view, found, raw);
        }
    }

    /// Adds the secrets that are found only when `text` is decoded.
    pub(crate) fn find_decoded_secrets(
        &self,
        selection: &Selection,
        text: &[u8],
        secrets: &mut Vec<Zeroizing<String>>,
    ) {
        let mut runs = Vec::new();
        self.keywords.for_each_hit(text, &mut runs, &mut |_, _| ());
        let views = decode::DECODERS.iter().map(|decode| decode(text));
        for view in views.chain([decode::blob(text, &runs)]).flatten() {
            let mut found = Vec::new();
            self.scan_layers(selection, view.text(), MAX_DEPTH - 1, &mut found);
            spans::merge_overlaps(&mut found);
            let shown = found.iter().filter_map(|raw| view.text().get(raw.span.clone()));
            secrets.extend(shown.map(|secret| String::from_utf8_lossy(secret).into_owned().into()));
        }
    }

    /// Looks at the text as it stands; returns where long runs of token characters begin.
    fn scan_plain_text(
        &self,
        selection: &Selection,
        text: &[u8],
        raw: &mut Vec<RawFinding>,
    ) -> Vec<usize> {
        let first = raw.len();
        selection.known.find(text, raw);
        let sights = self.look_for_keywords(text, raw);
        for &rule in &self.unconditional {
            self.search_rule(SearchWork { rule, start: 0, end: text.len() }, text, raw);
        }
        if !selection.disabled_families.contains(GENERIC_FAMILY) {
            look_for_names(text, &sights, raw);
        }
        if !selection.disabled.is_empty() {
            self.drop_disabled(selection, raw, first);
        }
        sights.runs
    }

    /// Rules are left out when the engine is built; the rest is known by its name only.
    fn drop_disabled(&self, selection: &Selection, raw: &mut Vec<RawFinding>, first: usize) {
        let mut index = 0;
        raw.retain(|found| {
            index += 1;
            index <= first
                || !selection.disabled.contains(&*self.label_name(selection, &found.label))
        });
    }

    /// Does what keywords call for.
    fn look_for_keywords(&self, text: &[u8], raw: &mut Vec<RawFinding>) -> PassHits {
        let mut work = Vec::new();
        let mut names = Vec::new();
        let mut runs = Vec::new();
        self.keywords.for_each_hit(text, &mut runs, &mut |value, hit| match self
            .keyword_action(value)
        {
            KeywordAction::Rule(rule) => self.begin_rule(rule, &hit, text, &mut work, raw),
            KeywordAction::Place(place) => self.look_at_place(place, text, hit, raw),
            KeywordAction::Name => names.push(hit),
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
            self.search_rule(work, text, raw);
        }
        PassHits { names, runs }
    }

    /// Searches at the keyword, or notes what has to be searched around it.
    fn begin_rule(
        &self,
        index: usize,
        hit: &Range<usize>,
        text: &[u8],
        work: &mut Vec<SearchWork>,
        raw: &mut Vec<RawFinding>,
    ) {
        let Some(rule) = self.rules.get(index) else { return };
        let found = |span| raw.push(RawFinding { span, label: Label::Rule(index) });
        match rule.place() {
            SearchPlace::AtKeyword | SearchPlace::AtWord => rule.search_at(text, hit.start, found),
            // Nothing but a place: duplicates are joined, neighbours are not.
            SearchPlace::AtName => {
                work.push(SearchWork { rule: index, start: hit.start, end: hit.start });
            }
            SearchPlace::Around(window) => work.push(SearchWork {
                rule: index,
                start: hit.start.saturating_sub(window),
                end: text.len().min(hit.end + window),
            }),
        }
    }

    fn look_at_place(
        &self,
        place: usize,
        text: &[u8],
        hit: Range<usize>,
        raw: &mut Vec<RawFinding>,
    ) {
        let Some(place) = self.places.get(place) else { return };
        (place.find)(text, hit, &mut |span| {
            raw.push(RawFinding { span, label: Label::Place(place.id) });
        });
    }

    fn search_rule(&self, work: SearchWork, text: &[u8], raw: &mut Vec<RawFinding>) {
        let Some(rule) = self.rules.get(work.rule) else { return };
        let mut found = |span| raw.push(RawFinding { span, label: Label::Rule(work.rule) });
        if rule.place() == SearchPlace::AtName {
            rule.search_at(text, work.start, found);
        } else {
            rule.search(text, work.start..work.end, &mut found);
        }
    }

    /// The id that people see.
    pub(crate) fn label_name(&self, selection: &Selection, label: &Label) -> Arc<str> {
        match label {
            Label::Known(index) => selection.known.name(*index),
            Label::Rule(number) => self.rules.id(*number).into(),
            Label::Place(name) | Label::Generic(name) => (*name).into(),
        }
    }
}

fn add_from_view(view: &View, found: Vec<RawFinding>, raw: &mut Vec<RawFinding>) {
    raw.extend(
        found.into_iter().map(|found| RawFinding { span: view.origin(found.span), ..found }),
    );
}

fn look_for_names(text: &[u8], sights: &PassHits, raw: &mut Vec<RawFinding>) {
    let mut found = Vec::new();
    generic::find_candidates(text, &sights.names, &sights.runs, &mut found);
    raw.extend(found.into_iter().map(|candidate| RawFinding {
        span: candidate.start..candidate.end,
        label: Label::Generic(candidate.rule),
    }));
}

/// One rule by itself, for the tests of rule files.
#[cfg(test)]
pub(crate) struct RuleProbe(Engine);

#[cfg(test)]
impl RuleProbe {
    /// Builds the engine for one rule.
    pub(crate) fn new(rule: SecretRule) -> Result<Self, RuleError> {
        let extra = vec![Arc::new(CompiledRule::new_eager(rule)?)];
        Ok(Self(Engine::from_rules(Rules { extra, ..Rules::default() }, &[], Vec::new(), &[])))
    }

    /// Returns the ranges that the rule finds.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut raw = Vec::new();
        self.0.look_for_keywords(text, &mut raw);
        raw.into_iter().map(|raw| raw.span).collect()
    }
}

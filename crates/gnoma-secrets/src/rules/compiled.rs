//! A rule made ready to run: its expressions are built when its keyword is first met.
//!
//! Judges single matches only; which part of a text is searched is the scanner's business.

use std::{ops::Range, sync::OnceLock};

use regex_automata::{Anchored, Input, meta::Regex, util::syntax};

use regex_syntax::hir::{Hir, Look, literal::Extractor};

use super::{
    MAX_REACH, Rule, RuleError,
    shape::{has_run, least_run},
};

/// Largest automaton a pattern may need. A pattern that counts to thousands does not fit.
const MAX_NFA_BYTES: usize = 4 << 20;
/// Memory that one search may use for states it builds as it goes.
const LAZY_DFA_BYTES: usize = 1 << 20;
/// Deepest nesting of groups in a pattern.
const MAX_NESTING: u32 = 64;
/// What is searched around a keyword when a pattern has no longest match, and at most.
const MAX_WINDOW: usize = 512;
/// Beginnings of a pattern that are compared with its keywords.
const MAX_BEGINNINGS: usize = 512;
/// A match that fills its window makes the window grow to at most this.
const MAX_GROWN_WINDOW: usize = 16 << 10;

/// A rule and its lazily built expressions.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    rule: Rule,
    plan: OnceLock<Plan>,
    built: OnceLock<Option<Built>>,
}

/// What is known of a pattern without building it, which costs a hundred times as much.
#[derive(Clone, Copy, Debug)]
struct Plan {
    place: SearchPlace,
    /// The match ends at most this far behind its start.
    longest: usize,
    /// Token characters in a row that every secret holds.
    least_run: usize,
}

#[derive(Debug)]
struct Built {
    pattern: Regex,
    allow: Vec<Regex>,
}

/// Where a rule is searched when one of its keywords stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchPlace {
    /// Every match begins with a keyword: nowhere else.
    AtKeyword,
    /// The same, and the keyword begins a word.
    AtWord,
    /// That many bytes on each side of it.
    Around(usize),
}

impl CompiledRule {
    /// Takes a rule without building it.
    pub(crate) fn lazy(rule: Rule) -> Self {
        Self { rule, plan: OnceLock::new(), built: OnceLock::new() }
    }

    /// Takes a rule and builds it at once, to say what is wrong with it.
    pub(crate) fn eager(rule: Rule) -> Result<Self, RuleError> {
        check_fields(&rule)?;
        let plan = Plan::new(&rule);
        let built = Built::new(&rule, plan.place)?;
        Ok(Self { rule, plan: OnceLock::from(plan), built: OnceLock::from(Some(built)) })
    }

    /// The rule as it was written.
    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Where to search.
    pub(crate) fn place(&self) -> SearchPlace {
        self.plan().place
    }

    fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| Plan::new(&self.rule))
    }

    /// A built-in rule that cannot be built finds nothing; `Scanner::check` says so.
    fn built(&self) -> Option<&Built> {
        self.built.get_or_init(|| Built::new(&self.rule, self.plan().place).ok()).as_ref()
    }

    /// Calls `found` with the span of the secret whose match begins at `start`.
    pub(crate) fn search_at(&self, text: &[u8], start: usize, found: impl FnOnce(Range<usize>)) {
        let plan = self.plan();
        let is_inside_word =
            || start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(is_word);
        if plan.place == SearchPlace::AtWord && is_inside_word() {
            return;
        }
        let end = text.len().min(start + plan.longest);
        if !has_run(text.get(start..end).unwrap_or_default(), plan.least_run) {
            return;
        }
        let Some(built) = self.built() else { return };
        let input = Input::new(text).range(start..end).anchored(Anchored::Yes);
        let Some(hit) = built.pattern.search(&input) else { return };
        let secret = secret_of(&built.pattern, text, hit.range());
        if self.accepts(built, text, hit.range(), secret.clone()) {
            found(secret);
        }
    }

    /// Calls `found` with the span of each secret in `window` of `text`.
    pub(crate) fn search(
        &self,
        text: &[u8],
        window: Range<usize>,
        mut found: impl FnMut(Range<usize>),
    ) {
        if !has_run(text.get(window.clone()).unwrap_or_default(), self.plan().least_run) {
            return;
        }
        let Some(built) = self.built() else { return };
        let mut from = window.start;
        while from < window.end {
            let input = Input::new(text).range(from..window.end);
            let Some(hit) = built.pattern.search(&input) else { return };
            let span = grown(&built.pattern, text, hit.range(), window.end);
            let secret = secret_of(&built.pattern, text, span.clone());
            if self.accepts(built, text, span.clone(), secret.clone()) {
                found(secret);
            }
            from = span.end.max(hit.start() + 1);
        }
    }

    fn accepts(
        &self,
        built: &Built,
        text: &[u8],
        span: Range<usize>,
        secret: Range<usize>,
    ) -> bool {
        let Some(value) = text.get(secret) else { return false };
        !value.is_empty()
            && self.rule.min_entropy.is_none_or(|least| entropy(value) >= least)
            && !built.allow.iter().any(|allow| allow.is_match(value))
            && self.has_near_word(text, span)
    }

    fn has_near_word(&self, text: &[u8], span: Range<usize>) -> bool {
        if self.rule.near.is_empty() {
            return true;
        }
        let from = span.start.saturating_sub(self.rule.reach);
        let to = text.len().min(span.end + self.rule.reach);
        let around = text.get(from..to).unwrap_or_default();
        self.rule.near.iter().any(|word| contains_ignoring_case(around, word.as_bytes()))
    }
}

impl Plan {
    /// A pattern that cannot be read is searched nowhere; building it says why.
    fn new(rule: &Rule) -> Self {
        let Ok(pattern) = syntax::parse_with(&rule.pattern, &bytes_syntax()) else {
            return Self { place: SearchPlace::AtKeyword, longest: 0, least_run: 0 };
        };
        let longest = pattern.properties().maximum_len().unwrap_or(MAX_GROWN_WINDOW);
        Self {
            place: search_place(rule, &pattern),
            longest: longest.min(MAX_GROWN_WINDOW),
            least_run: least_run(&pattern),
        }
    }
}

impl Built {
    fn new(rule: &Rule, place: SearchPlace) -> Result<Self, RuleError> {
        let failed = |reason| RuleError::Pattern { rule: rule.id.clone(), reason };
        let pattern = build(&rule.pattern, place).map_err(failed)?;
        let allow = rule
            .allow
            .iter()
            .map(|allow| build(allow, SearchPlace::AtKeyword))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        Ok(Self { pattern, allow })
    }
}

/// Says what no pattern compiler would.
fn check_fields(rule: &Rule) -> Result<(), RuleError> {
    let wrong = |reason: String| Err(RuleError::Rule { rule: rule.id.clone(), reason });
    if rule.id.is_empty() {
        return wrong("it has no id; give it a kebab-case name".to_owned());
    }
    if rule.reach > MAX_REACH {
        return wrong(format!("`reach` is {}, the most is {MAX_REACH}", rule.reach));
    }
    if rule.keywords.iter().chain(&rule.near).any(String::is_empty) {
        return wrong("`keywords` and `near` must not hold empty words".to_owned());
    }
    if rule.at_keyword && rule.keywords.is_empty() {
        return wrong("`at_keyword` needs `keywords`".to_owned());
    }
    Ok(())
}

fn build(pattern: &str, place: SearchPlace) -> Result<Regex, String> {
    Regex::builder()
        .configure(
            Regex::config()
                .utf8_empty(false)
                // Where the keyword is the prefilter, another one is only work.
                .auto_prefilter(matches!(place, SearchPlace::Around(_)))
                .onepass(false)
                .nfa_size_limit(Some(MAX_NFA_BYTES))
                .hybrid_cache_capacity(LAZY_DFA_BYTES),
        )
        .syntax(bytes_syntax())
        .build(pattern)
        .map_err(|error| match error.syntax_error() {
            Some(syntax) => syntax.to_string(),
            None => match error.size_limit() {
                Some(limit) => format!("it needs more than {limit} bytes; count less or split it"),
                None => error.to_string(),
            },
        })
}

fn bytes_syntax() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).nest_limit(MAX_NESTING)
}

/// Where matches of the rule can stand.
fn search_place(rule: &Rule, pattern: &Hir) -> SearchPlace {
    let properties = pattern.properties();
    if rule.at_keyword || begins_with_keyword(rule) {
        let at_word = properties.look_set_prefix().contains(Look::WordAscii);
        let is_word_like = |word: &String| word.as_bytes().first().is_some_and(is_word);
        return if at_word && rule.keywords.iter().all(is_word_like) {
            SearchPlace::AtWord
        } else {
            SearchPlace::AtKeyword
        };
    }
    let longest = properties.maximum_len().unwrap_or(MAX_WINDOW);
    SearchPlace::Around(longest.min(MAX_WINDOW).max(rule.reach.min(MAX_REACH)))
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Whether every match of the pattern begins with one of the rule's keywords.
fn begins_with_keyword(rule: &Rule) -> bool {
    // Keywords are compared without letter case anyway, and one spelling is enough to compare.
    let pattern = rule.pattern.strip_prefix("(?i)").unwrap_or(&rule.pattern);
    let Ok(hir) = syntax::parse_with(pattern, &bytes_syntax()) else { return false };
    let mut extractor = Extractor::new();
    extractor.limit_total(MAX_BEGINNINGS);
    let beginnings = extractor.extract(&hir);
    beginnings.literals().is_some_and(|beginnings| {
        beginnings.iter().all(|beginning| {
            let beginning = beginning.as_bytes().to_ascii_lowercase();
            let begins_with =
                |word: &String| beginning.starts_with(word.to_ascii_lowercase().as_bytes());
            rule.keywords.iter().any(begins_with)
        })
    })
}

/// The match at `hit`, searched again with more text when it filled the window.
fn grown(pattern: &Regex, text: &[u8], hit: Range<usize>, window_end: usize) -> Range<usize> {
    if hit.end < window_end || window_end == text.len() {
        return hit;
    }
    let end = text.len().min(hit.start + MAX_GROWN_WINDOW);
    let input = Input::new(text).range(hit.start..end).anchored(Anchored::Yes);
    pattern.search(&input).map_or(hit, |longer| longer.range())
}

/// The first group that took part in the match, else the whole of it.
fn secret_of(pattern: &Regex, text: &[u8], span: Range<usize>) -> Range<usize> {
    if pattern.captures_len() == 1 {
        return span;
    }
    let mut captures = pattern.create_captures();
    pattern.search_captures(
        &Input::new(text).range(span.clone()).anchored(Anchored::Yes),
        &mut captures,
    );
    (1..captures.group_len())
        .find_map(|group| captures.get_group(group))
        .map_or(span, |group| group.range())
}

/// Shannon entropy of the bytes, in bits per byte.
pub(crate) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let length = value.len() as f64;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = f64::from(count) / length;
            -share * share.log2()
        })
        .sum()
}

/// Whether `word` stands in `text`, letters of either case being equal.
pub(crate) fn contains_ignoring_case(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

//! A rule made ready to run: its expressions are built when its keyword is first met.
//!
//! Judges single matches only; which part of a text is searched is the scanner's business.

use std::{ops::Range, sync::OnceLock};

use regex_automata::{
    Anchored, Input,
    meta::{Config, Regex},
};

use super::{
    MAX_REACH, RuleError, RuleFieldError, RulePatternError, SecretRule,
    plan::{MAX_GROWN_WINDOW, SearchPlace, SearchPlan, bytes_syntax, is_word},
};

/// Largest automaton a pattern may need. A pattern that counts to thousands does not fit.
const MAX_NFA_BYTES: usize = 4 << 20;
/// Memory that one search may use for states it builds as it goes.
const LAZY_DFA_BYTES: usize = 1 << 20;
/// Matches up to this length are searched for by backtracking: it needs half of the automata, which
/// cost more to build than most rules are ever searched.
const MAX_BACKTRACKED_BYTES: usize = 1024;

/// A rule and its lazily built expressions.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    rule: SecretRule,
    plan: SearchPlan,
    pattern: OnceLock<Option<Regex>>,
    /// Expressions of secrets that are passed: built when something was found.
    allow: OnceLock<Vec<Regex>>,
}

impl CompiledRule {
    /// Takes a rule without building it.
    pub(crate) fn new_lazy(rule: SecretRule, plan: SearchPlan) -> Self {
        Self { rule, plan, pattern: OnceLock::new(), allow: OnceLock::new() }
    }

    /// Takes a rule and builds it at once, to say what is wrong with it.
    pub(crate) fn new_eager(rule: SecretRule) -> Result<Self, RuleError> {
        check_fields(&rule)?;
        let failed = |reason| RuleError::Pattern { rule: rule.id.clone(), reason };
        let plan = SearchPlan::new(&rule);
        let pattern = build_pattern(&rule, &plan, rule.keywords.is_empty()).map_err(failed)?;
        let allow = rule.allow.iter().map(|allow| build_allow(allow));
        let allow = allow.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        Ok(Self {
            rule,
            plan,
            pattern: OnceLock::from(Some(pattern)),
            allow: OnceLock::from(allow),
        })
    }

    /// The rule as it was written.
    pub(crate) fn rule(&self) -> &SecretRule {
        &self.rule
    }

    /// Returns the place to search for the rule.
    pub(crate) fn place(&self) -> SearchPlace {
        self.plan.place
    }

    /// A test builds all built-in rules, and those of users were built to be checked.
    fn pattern(&self) -> Option<&Regex> {
        self.pattern.get_or_init(|| build_pattern(&self.rule, &self.plan, false).ok()).as_ref()
    }

    fn allow_patterns(&self) -> &[Regex] {
        let build = || self.rule.allow.iter().filter_map(|allow| build_allow(allow).ok()).collect();
        self.allow.get_or_init(build)
    }

    /// Calls `found` with the span of the secret whose match begins at `start`.
    pub(crate) fn search_at(&self, text: &[u8], start: usize, found: impl FnOnce(Range<usize>)) {
        let is_inside_word =
            || start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(is_word);
        if self.plan.place == SearchPlace::AtWord && is_inside_word() {
            return;
        }
        let end = text.len().min(start + self.plan.longest);
        if !self.plan.run.is_in(text.get(start..end).unwrap_or_default()) {
            return;
        }
        let Some(pattern) = self.pattern() else { return };
        let input = Input::new(text).range(start..end).anchored(Anchored::Yes);
        let Some(hit) = pattern.search(&input) else { return };
        let secret = secret_of(pattern, text, hit.range());
        if self.accepts_match(text, hit.range(), secret.clone()) {
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
        if !self.plan.run.is_in(text.get(window.clone()).unwrap_or_default()) {
            return;
        }
        let Some(pattern) = self.pattern() else { return };
        let mut from = window.start;
        while from < window.end {
            let input = Input::new(text).range(from..window.end);
            let Some(hit) = pattern.search(&input) else { return };
            let span = extend_match(pattern, text, hit.range(), window.end);
            let secret = secret_of(pattern, text, span.clone());
            if self.accepts_match(text, span.clone(), secret.clone()) {
                found(secret);
            }
            from = span.end.max(hit.start() + 1);
        }
    }

    fn accepts_match(&self, text: &[u8], span: Range<usize>, secret: Range<usize>) -> bool {
        let Some(value) = text.get(secret) else { return false };
        !value.is_empty()
            && self.rule.min_entropy.is_none_or(|least| shannon_entropy(value) >= least)
            && !self.allow_patterns().iter().any(|allow| allow.is_match(value))
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

/// Says what no pattern compiler would.
fn check_fields(rule: &SecretRule) -> Result<(), RuleError> {
    let wrong = |reason| Err(RuleError::Rule { rule: rule.id.clone(), reason });
    if rule.id.is_empty() {
        return wrong(RuleFieldError::NoId);
    }
    if rule.reach > MAX_REACH {
        return wrong(RuleFieldError::Reach(rule.reach));
    }
    if rule.keywords.iter().chain(&rule.near).any(String::is_empty) {
        return wrong(RuleFieldError::EmptyWord);
    }
    if rule.at_keyword && rule.keywords.is_empty() {
        return wrong(RuleFieldError::NoKeywords);
    }
    Ok(())
}

/// Compiles the rule's pattern. If a keyword is the prefilter already, another prefilter is only extra work.
fn build_pattern(
    rule: &SecretRule,
    plan: &SearchPlan,
    prefilter: bool,
) -> Result<Regex, RulePatternError> {
    let is_searched_for = matches!(plan.place, SearchPlace::Around(_));
    let needs_states = is_searched_for || plan.longest > MAX_BACKTRACKED_BYTES;
    build_regex(&rule.pattern, Regex::config().auto_prefilter(prefilter).hybrid(needs_states))
}

fn build_allow(pattern: &str) -> Result<Regex, RulePatternError> {
    build_regex(pattern, Regex::config().auto_prefilter(false))
}

fn build_regex(pattern: &str, config: Config) -> Result<Regex, RulePatternError> {
    Regex::builder()
        .configure(
            config
                .utf8_empty(false)
                .nfa_size_limit(Some(MAX_NFA_BYTES))
                .hybrid_cache_capacity(LAZY_DFA_BYTES),
        )
        .syntax(bytes_syntax())
        .build(pattern)
        .map_err(|error| RulePatternError(Box::new(error)))
}

/// The match at `hit`, searched again with more text when it filled the window.
fn extend_match(
    pattern: &Regex,
    text: &[u8],
    hit: Range<usize>,
    window_end: usize,
) -> Range<usize> {
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
pub(crate) fn shannon_entropy(value: &[u8]) -> f64 {
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

/// True if `word` occurs in `text`, with letters of either case being equal.
pub(crate) fn contains_ignoring_case(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

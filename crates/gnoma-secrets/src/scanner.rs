//! Texts in, spans of secrets out.
//!
//! Long texts are judged in windows whose places depend on offsets alone, so that a stream that was
//! cut anywhere is judged like the whole text. Nothing here decides what happens to a finding.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use gnoma_core::secret::Secret;

use crate::rules::{RuleError, SecretRule, builtin, compiled::CompiledRule};

mod engine;
mod known;
mod raw_finding;
mod selection;
mod spans;

use engine::Engine;
#[cfg(test)]
pub(crate) use engine::RuleProbe;
use known::KnownSecrets;
pub use known::MIN_KNOWN_BYTES;
pub(crate) use raw_finding::RawFinding;
use selection::Selection;
pub(crate) use spans::merge_overlaps;

/// Bytes of a text that one window is responsible for.
pub(crate) const WINDOW_BYTES: usize = 256 << 10;
/// The number of bytes that a window sees before and after its own bytes. A longer secret may be found in part.
pub(crate) const OVERLAP_BYTES: usize = 16 << 10;

/// The options of a scanner: what it looks for in addition to the built-in rules, and what it leaves out.
#[derive(Debug, Default)]
pub struct ScannerOptions {
    /// Rules of the user.
    pub extra: Vec<SecretRule>,
    /// Rule id and exact value of secrets that are known, such as the user's own API keys.
    /// Values shorter than [`MIN_KNOWN_BYTES`] are left out: they would blank ordinary words.
    pub known: Vec<(String, Secret<String>)>,
    /// Ids of rules that are switched off, built-in and others.
    pub disabled: Vec<String>,
    /// Families of rules that are switched off. `context` and `generic` are families too.
    pub disabled_families: Vec<String>,
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
    /// Id of the rule that found it, or of the strongest where several did.
    pub rule: Arc<str>,
}

/// Finds secrets. Cheap to make: automata are built when the first text is scanned.
#[derive(Debug)]
pub struct Scanner {
    selection: Selection,
    engine: OnceLock<Engine>,
}

impl Scanner {
    /// A scanner with the built-in rules and those of `options`.
    ///
    /// # Errors
    /// An extra rule that cannot be used, by name.
    pub fn new(options: ScannerOptions) -> Result<Self, RuleError> {
        let extra = options
            .extra
            .into_iter()
            .map(|rule| CompiledRule::new_eager(rule).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let selection = Selection {
            extra,
            known: KnownSecrets::new(options.known),
            disabled: options.disabled.into_iter().collect(),
            disabled_families: options.disabled_families.into_iter().collect(),
        };
        Ok(Self { selection, engine: OnceLock::new() })
    }

    /// Knows a secret from now on, wherever it stands and however it is written, under the id of
    /// the rule that found it. Where something encoded was found, what was in it is learnt.
    pub fn learn_secret(&self, rule: &Arc<str>, value: &str) {
        let mut inner = Vec::new();
        self.engine().find_decoded_secrets(&self.selection, value.as_bytes(), &mut inner);
        if inner.is_empty() {
            self.selection.known.learn(rule, value);
        }
        for secret in inner {
            self.selection.known.learn(rule, &secret);
        }
    }

    /// Returns the number of known secrets. If it has grown, a text in which no secret was found may hold some.
    pub fn known_count(&self) -> usize {
        self.selection.known.count()
    }

    /// Builds everything that is else built on demand and says what is wrong with it. For
    /// diagnosis and tests; scanning does not need it.
    ///
    /// # Errors
    /// A rule that cannot be used, by name.
    pub fn check_rules(&self) -> Result<(), RuleError> {
        for (rule, _) in builtin::rule_lines().filter_map(builtin::parse_rule) {
            CompiledRule::new_eager(rule)?;
        }
        Ok(())
    }

    /// The secrets in `text`, by offset, not overlapping.
    pub fn scan(&self, text: &[u8]) -> Vec<Finding> {
        let mut raw = Vec::new();
        let mut core = 0..WINDOW_BYTES;
        while core.start < text.len() || core.start == 0 {
            let seen = seen_by(&core, text.len());
            let window = text.get(seen.clone()).unwrap_or_default();
            self.scan_window(window, seen.start, &core, &mut raw);
            core = core.end..core.end + WINDOW_BYTES;
        }
        spans::merge_overlaps(&mut raw);
        raw.iter().map(|raw| self.make_finding(raw)).collect()
    }

    /// Adds what is found in `window`, which starts at `offset` of the text, and touches `core`.
    pub(crate) fn scan_window(
        &self,
        window: &[u8],
        offset: usize,
        core: &Range<usize>,
        raw: &mut Vec<RawFinding>,
    ) {
        let first = raw.len();
        self.engine().scan(&self.selection, window, raw);
        for found in raw.iter_mut().skip(first) {
            found.span = found.span.start + offset..found.span.end + offset;
        }
        let mut index = 0;
        raw.retain(|found| {
            index += 1;
            index <= first || (found.span.start < core.end && found.span.end > core.start)
        });
    }

    pub(crate) fn make_finding(&self, raw: &RawFinding) -> Finding {
        Finding {
            start: raw.span.start,
            end: raw.span.end,
            rule: self.engine().label_name(&self.selection, &raw.label),
        }
    }

    fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| Engine::build(&self.selection))
    }
}

/// The part of a text of `length` bytes that the window for `core` sees.
pub(crate) fn seen_by(core: &Range<usize>, length: usize) -> Range<usize> {
    core.start.saturating_sub(OVERLAP_BYTES)..length.min(core.end + OVERLAP_BYTES)
}

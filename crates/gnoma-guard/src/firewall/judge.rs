//! Redacts a text: separates secrets from what may leave the machine.
//!
//! It does not decide who may see what: a judged text is rendered again for each reader. Each text is cleaned and
//! scanned once per session; after that, its hash identifies the findings.

use std::{collections::HashMap, ops::Range, sync::Arc};

use gnoma_core::sync::Mutex;
use gnoma_secrets::Scanner;
use sha2::{Digest as _, Sha256};

use super::policy::{AllowedHash, FirewallAction};
use crate::{
    strings,
    unicode::{self, Flag, RetainedControls},
    vault::Vault,
};

/// Texts whose verdict is remembered; then remembering starts over.
const MAX_REMEMBERED: usize = 65_536;
/// Bytes of texts taken apart that are remembered; then remembering starts over.
const MAX_REMEMBERED_BYTES: usize = 64 << 20;
/// Times a text is scanned: what is found may show what it hid.
const MAX_ROUNDS: usize = 4;
/// The length, in bytes, from which the rest of a finding beside a placeholder counts as a secret.
const MIN_REST_BYTES: usize = 8;
/// Shortest value found by its place in a JSON text that is searched for in its strings, in bytes.
const MIN_PLACED_BYTES: usize = 4;

/// A part of a judged text.
#[derive(Clone, Debug)]
enum TextPart {
    Text(String),
    Secret(Secret),
}

/// A secret by its placeholder.
#[derive(Clone, Debug)]
pub(super) struct Secret {
    pub placeholder: Arc<str>,
    pub rule: Arc<str>,
}

/// A text in which something was found.
#[derive(Debug)]
pub(super) struct JudgedText {
    pieces: Vec<TextPart>,
    is_json: bool,
    /// The flags raised while the text was cleaned.
    pub flags: Vec<Flag>,
}

impl JudgedText {
    /// The secrets, in order.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.pieces.iter().filter_map(|piece| match piece {
            TextPart::Text(_) => None,
            TextPart::Secret(secret) => Some(secret),
        })
    }

    /// The text for a reader.
    pub(super) fn render(
        &self,
        vault: &Vault,
        action: impl Fn(&Secret) -> FirewallAction,
    ) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                TextPart::Text(plain) => text.push_str(plain),
                TextPart::Secret(secret) => {
                    let is_shown =
                        matches!(action(secret), FirewallAction::Allow | FirewallAction::Warn);
                    let write = |value: &str| {
                        text.push_str(&if self.is_json {
                            strings::encode_literal(value)
                        } else {
                            value.to_owned()
                        });
                    };
                    if !is_shown || vault.with_value(&secret.placeholder, write).is_none() {
                        text.push_str(&secret.placeholder);
                    }
                }
            }
        }
        text
    }
}

/// A secret's place in a text.
struct SecretSpan {
    range: Range<usize>,
    rule: Arc<str>,
}

/// A secret that its place in a JSON text gave away.
struct PlacedSecret {
    value: zeroize::Zeroizing<String>,
    rule: Arc<str>,
}

/// Finds, hides and remembers.
pub(super) struct Judge {
    pub vault: Vault,
    scanner: Scanner,
    allowed: Vec<AllowedHash>,
    remembered: Mutex<TextVerdictCache>,
}

/// Verdicts by the hash of what was judged; most are that there is nothing to find.
#[derive(Default)]
struct TextVerdictCache {
    verdicts: HashMap<[u8; 32], Option<Arc<JudgedText>>>,
    bytes: usize,
}

impl TextVerdictCache {
    fn insert(&mut self, key: [u8; 32], verdict: Option<Arc<JudgedText>>) {
        let bytes = |judged: &Arc<JudgedText>| {
            judged.pieces.iter().map(|piece| piece.visible_text().len()).sum()
        };
        self.bytes += verdict.as_ref().map_or(0, bytes);
        if self.verdicts.len() >= MAX_REMEMBERED || self.bytes > MAX_REMEMBERED_BYTES {
            *self = Self::default();
        }
        self.verdicts.insert(key, verdict);
    }
}

impl Judge {
    pub(super) fn new(scanner: Scanner, allowed: Vec<AllowedHash>, vault: Vault) -> Self {
        Self { vault, scanner, allowed, remembered: Mutex::default() }
    }

    /// Texts whose verdict is remembered now.
    pub(super) fn remembered_count(&self) -> usize {
        self.remembered.lock().verdicts.len()
    }

    /// Judges a text; `None` when there is nothing to find.
    pub(super) fn judge_text(&self, text: &str) -> Option<Arc<JudgedText>> {
        self.remember_verdict(b"text", text, || {
            let (pieces, flags) = self.text_pieces(text, &[]);
            JudgedText { pieces: pieces?, is_json: false, flags }.into()
        })
    }

    /// Judges the strings of a JSON text; `None` when there is nothing to find.
    pub(super) fn judge_json(&self, json: &str) -> Option<Arc<JudgedText>> {
        self.remember_verdict(b"json", json, || self.json_pieces(json))
    }

    fn remember_verdict(
        &self,
        kind: &[u8],
        text: &str,
        judge: impl FnOnce() -> Option<JudgedText>,
    ) -> Option<Arc<JudgedText>> {
        let known = self.known_count().to_le_bytes();
        let hash = Sha256::new().chain_update(kind).chain_update(known).chain_update(text);
        let key: [u8; 32] = hash.finalize().into();
        let known = self.remembered.lock().verdicts.get(&key).cloned();
        known.unwrap_or_else(|| {
            let judged = judge().map(Arc::new);
            self.remembered.lock().insert(key, judged.clone());
            judged
        })
    }

    fn json_pieces(&self, json: &str) -> Option<JudgedText> {
        let placed = self.find_contextual_secrets(json);
        let mut judged = JudgedText { pieces: Vec::new(), is_json: true, flags: Vec::new() };
        let mut copied = 0;
        for range in strings::string_literals(json) {
            let Some(text) = json.get(range.clone()).and_then(strings::decode_literal) else {
                continue;
            };
            let (pieces, flags) = self.text_pieces(&text, &placed);
            let Some(pieces) = pieces else { continue };
            judged.flags.extend(flags);
            let before = json.get(copied..range.start).unwrap_or_default();
            judged.pieces.push(TextPart::Text(before.to_owned()));
            judged.pieces.extend(pieces.into_iter().map(|piece| match piece {
                TextPart::Text(plain) => TextPart::Text(strings::encode_literal(&plain)),
                TextPart::Secret(_) => piece,
            }));
            copied = range.end;
        }
        if judged.pieces.is_empty() {
            return None;
        }
        judged.pieces.push(TextPart::Text(json.get(copied..).unwrap_or_default().to_owned()));
        Some(judged)
    }

    /// The secrets that only the whole gives away, such as the value of a key `password`.
    fn find_contextual_secrets(&self, json: &str) -> Vec<PlacedSecret> {
        let spans = self.secret_spans(json, &[]);
        let mut placed = Vec::new();
        if spans.is_empty() {
            return placed;
        }
        for literal in strings::string_literals(json) {
            for span in &spans {
                let inside = span.range.start.max(literal.start)..span.range.end.min(literal.end);
                let part = json.get(inside).filter(|part| part.len() >= MIN_PLACED_BYTES);
                let Some(part) = part else { continue };
                // A part that begins or ends inside an escape says nothing; its string does.
                let whole = || json.get(literal.clone()).and_then(strings::decode_literal);
                if let Some(value) = strings::decode_literal(part).or_else(whole) {
                    placed.push(PlacedSecret { value: value.into(), rule: Arc::clone(&span.rule) });
                }
            }
        }
        placed
    }

    /// The parts of a text, `None` when it stays as it is; and what cleaning found.
    fn text_pieces(
        &self,
        text: &str,
        placed: &[PlacedSecret],
    ) -> (Option<Vec<TextPart>>, Vec<Flag>) {
        let unicode::CleanedText { text: cleaned, flags } =
            unicode::clean_text(text, RetainedControls::Text);
        let is_cleaned = cleaned.len() != text.len();
        let mut pieces = vec![TextPart::Text(cleaned.into_owned())];
        for _ in 0..MAX_ROUNDS {
            let shown: String = pieces.iter().map(TextPart::visible_text).collect();
            let spans = self.secret_spans(&shown, placed);
            if spans.is_empty() {
                break;
            }
            pieces = self.replace_spans(pieces, &spans);
        }
        let has_secret = pieces.iter().any(|piece| matches!(piece, TextPart::Secret(_)));
        let says_something = flags.iter().any(|flag| flag.kind.is_suspicious());
        ((is_cleaned || has_secret || says_something).then_some(pieces), flags)
    }

    /// Puts placeholders where the spans are in the text that `pieces` show.
    fn replace_spans(&self, pieces: Vec<TextPart>, spans: &[SecretSpan]) -> Vec<TextPart> {
        let mut hidden = Vec::new();
        let mut start = 0;
        for piece in pieces {
            let end = start + piece.visible_text().len();
            match piece {
                TextPart::Secret(_) => hidden.push(piece),
                TextPart::Text(text) => {
                    let mut copied = 0;
                    let inside =
                        |span: &&SecretSpan| span.range.start >= start && span.range.end <= end;
                    for span in spans.iter().filter(inside) {
                        let range = span.range.start - start..span.range.end - start;
                        let Some(value) = text.get(range.clone()) else { continue };
                        if let Some(before) =
                            text.get(copied..range.start).filter(|t| !t.is_empty())
                        {
                            hidden.push(TextPart::Text(before.to_owned()));
                        }
                        hidden.push(TextPart::Secret(Secret {
                            placeholder: self.conceal_value(&span.rule, value),
                            rule: Arc::clone(&span.rule),
                        }));
                        copied = range.end;
                    }
                    if let Some(rest) = text.get(copied..).filter(|rest| !rest.is_empty()) {
                        hidden.push(TextPart::Text(rest.to_owned()));
                    }
                }
            }
            start = end;
        }
        hidden
    }

    /// The placeholder of a value, which from now on is found however it is written.
    fn conceal_value(&self, rule: &Arc<str>, value: &str) -> Arc<str> {
        if !self.vault.has_value(value) {
            self.scanner.learn_secret(rule, value);
        }
        self.vault.conceal(rule, value)
    }

    /// Returns the number of known values. Once it has grown, a text that held none of them may hold some.
    pub(super) fn known_count(&self) -> usize {
        self.scanner.known_count()
    }

    /// The secrets of a text in order, on character boundaries, outside of placeholders.
    fn secret_spans(&self, text: &str, placed: &[PlacedSecret]) -> Vec<SecretSpan> {
        let found = self.scanner.scan(text.as_bytes()).into_iter().map(|finding| SecretSpan {
            range: text.floor_char_boundary(finding.start)..text.ceil_char_boundary(finding.end),
            rule: finding.rule,
        });
        let repeated = placed.iter().flat_map(|placed| {
            text.match_indices(placed.value.as_str()).map(|(at, value)| SecretSpan {
                range: at..at + value.len(),
                rule: Arc::clone(&placed.rule),
            })
        });
        let is_secret = |span: &SecretSpan| {
            let value = text.get(span.range.clone()).unwrap_or_default();
            !value.is_empty() && !AllowedHash::contains_value(&self.allowed, value)
        };
        let found: Vec<SecretSpan> = found.chain(repeated).filter(is_secret).collect();
        if found.is_empty() {
            return found;
        }
        let opaque = self.opaque_placeholders(text);
        let mut spans: Vec<SecretSpan> =
            found.into_iter().flat_map(|span| subtract_placeholders(span, &opaque)).collect();
        gnoma_core::sort::by_key(&mut spans, |span| {
            (span.range.start, std::cmp::Reverse(span.range.end))
        });
        let mut free_from = 0;
        spans.retain(|span| {
            let is_free = span.range.start >= free_from;
            if is_free {
                free_from = span.range.end;
            }
            is_free
        });
        spans
    }

    /// The placeholders of a text that hide nothing themselves: a rule's name is no place to put a
    /// secret in.
    fn opaque_placeholders(&self, text: &str) -> Vec<Range<usize>> {
        let mut placeholders = Vault::find_placeholders(text);
        placeholders.retain(|range| {
            let written = text.get(range.clone()).unwrap_or_default();
            let covers = |start: usize, end: usize| start == 0 && end == written.len();
            self.vault.with_value(written, |_| ()).is_some()
                || self
                    .scanner
                    .scan(written.as_bytes())
                    .iter()
                    .all(|finding| covers(finding.start, finding.end))
        });
        placeholders
    }
}

impl TextPart {
    fn visible_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Secret(secret) => &secret.placeholder,
        }
    }
}

/// Returns the parts of a span outside of placeholders that are long enough to be secret.
fn subtract_placeholders(span: SecretSpan, opaque: &[Range<usize>]) -> Vec<SecretSpan> {
    let meets =
        |range: &&Range<usize>| range.start < span.range.end && span.range.start < range.end;
    let mut meeting = opaque.iter().filter(meets).peekable();
    if meeting.peek().is_none() {
        return vec![span];
    }
    let mut parts = Vec::new();
    let mut from = span.range.start;
    for range in meeting {
        parts.push(from..range.start.max(from));
        from = range.end;
    }
    parts.push(from..span.range.end.max(from));
    parts.retain(|part| part.len() >= MIN_REST_BYTES);
    parts.into_iter().map(|range| SecretSpan { range, rule: Arc::clone(&span.rule) }).collect()
}

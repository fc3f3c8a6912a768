//! Secrets whose values are known: the keys this program was given, and what was found before.
//!
//! A value is found as it is and in other clothes: cut, spaced, backwards, in base64 or the digits
//! of a dump, spread over lines. Whoever compresses or encrypts it, or puts letters of their own
//! between its letters, gets past. A piece counts that says something: eight letters at random or so.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

use gnoma_core::secret::Secret;
use memchr::memmem;

use super::raw_finding::{Label, RawFinding};
use crate::{decode::View, language};

mod forms;
mod frames;
mod index;
mod letters;
mod lines;
mod styled;

use forms::FormScript;
use index::{FormIndex, FormPiece, SURE_LETTERS};
use letters::Letters;

/// Shortest known value that is searched for.
pub const MIN_KNOWN_BYTES: usize = 8;
/// Values that are learnt.
const MAX_VALUES: usize = 4096;
/// Letters of all forms of all values.
const MAX_FORM_LETTERS: usize = 4 << 20;
/// Of a longer value the beginning is known.
const MAX_VALUE_BYTES: usize = 16 << 10;
/// The most bits that a letter costs in language.
const LANGUAGE_BITS: f32 = 3.0;
/// A piece with so many bits beyond those of language is no accident.
const TELLING_BITS: f32 = 14.0;
/// The share of a language-like value, in percent, and the number of letters that a text must have for the value to
/// be recognised.
const WHOLE_PERCENT: usize = 80;
const MIN_WORDY_LETTERS: usize = 16;
/// Letters of a value that says something.
const MIN_LETTERS: usize = 8;
/// The approximate length of the common beginning of all OpenSSH keys in base64, and the first characters of that
/// beginning.
const MAX_HEAD_BYTES: usize = 72;
const OPENSSH_HEAD: &[u8] = b"b3BlbnNzaC1rZXktdjEA";
/// The end of what private RSA keys have in common with public ones.
const RSA_HEAD: &[u8] = b"BAQEFAAS";
/// The greatest distance from its digits at which a dump shows their text, and the number of bytes of a value that
/// must be seen in it.
const MAX_DUMP_TEXT_BYTES: usize = 64;
const MIN_DUMP_TEXT_BYTES: usize = 3;
/// Digits at the edges of a form that hold bits of its neighbours as well.
const MAX_EDGE_BYTES: usize = 4;

/// Rule ids and values. They grow while texts are read.
pub(crate) struct KnownSecrets(RwLock<KnownValues>);

#[derive(Default)]
struct KnownValues {
    values: Vec<KnownValue>,
    index: FormIndex,
}

struct KnownValue {
    name: Arc<str>,
    value: Secret<String>,
    /// True if the value was given to the scanner, not found in a text: then it counts wherever it stands.
    is_given: bool,
    /// Searched one by one, because its letters alone are too few or say too little.
    is_exact: bool,
}

impl KnownSecrets {
    /// Keeps the values that are long enough.
    pub(crate) fn new(given: Vec<(String, Secret<String>)>) -> Self {
        let mut known = KnownValues::default();
        for (name, value) in given {
            known.add(name.into(), value, true);
        }
        Self(RwLock::new(known))
    }

    /// The rule id of the value with that index.
    pub(crate) fn name(&self, index: usize) -> Arc<str> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values.get(index).map_or_else(|| "known".into(), |known| Arc::clone(&known.name))
    }

    /// Returns the number of known secrets. A text is judged anew when this number has grown.
    pub(crate) fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values.len()
    }

    /// Knows the value from now on, unless it is or holds one that is known.
    pub(crate) fn learn(&self, name: &Arc<str>, value: &str) {
        let mut found = Vec::new();
        self.find(value.as_bytes(), &mut found);
        if found.is_empty() {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            known.add(Arc::clone(name), Secret::new(value.to_owned()), false);
        }
    }

    /// Adds every place of `text` where a value stands.
    pub(crate) fn find(&self, text: &[u8], found: &mut Vec<RawFinding>) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.values.is_empty() {
            return;
        }
        known.find_in_text(text, found);
        find_through(
            styled::decode_styled(text),
            |text, inside| known.find_in_text(text, inside),
            found,
        );
    }
}

/// Adds what `find` finds in a view.
fn find_through(
    view: Option<View>,
    find: impl Fn(&[u8], &mut Vec<RawFinding>),
    found: &mut Vec<RawFinding>,
) {
    let Some(view) = view else { return };
    let mut inside = Vec::new();
    find(view.text(), &mut inside);
    found.extend(inside.into_iter().map(|raw| RawFinding { span: view.origin(raw.span), ..raw }));
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets").field("values", &self.count()).finish_non_exhaustive()
    }
}

impl KnownValues {
    fn add(&mut self, name: Arc<str>, value: Secret<String>, is_given: bool) {
        let bytes = value.expose().as_bytes();
        if bytes.len() < MIN_KNOWN_BYTES || self.values.len() >= MAX_VALUES {
            return;
        }
        let telling = telling_part(bytes);
        let letters = telling.iter().filter(|byte| letters::is_letter(**byte)).count();
        let says_something = excess_bits(telling) >= TELLING_BITS || letters >= MIN_WORDY_LETTERS;
        let has_forms = letters >= MIN_LETTERS && says_something;
        if !is_given && !has_forms && language::measure_value(bytes).is_plain_words() {
            return;
        }
        let number = self.values.len();
        if has_forms && self.index.len() < MAX_FORM_LETTERS {
            let index = &mut self.index;
            forms::for_each_form(telling, &mut |script, form| {
                index.add_form(number, script, &form);
            });
        }
        let is_exact = is_given || !has_forms || letters < SURE_LETTERS;
        self.values.push(KnownValue { name, value, is_given, is_exact });
    }

    fn find_exact(&self, text: &[u8], found: &mut Vec<RawFinding>) {
        for (number, known) in self.values.iter().enumerate().filter(|(_, known)| known.is_exact) {
            let value = known.value.expose().as_bytes();
            for start in memmem::find_iter(text, value) {
                let span = start..start + value.len();
                if known.is_given || stands_alone(text, &span) {
                    found.push(RawFinding { span, label: Label::Known(number) });
                }
            }
        }
    }

    /// Looks at a text, and at what of it a diff marks.
    fn find_in_text(&self, text: &[u8], found: &mut Vec<RawFinding>) {
        self.find_exact(text, found);
        self.find_in_lines(text, found);
        for (mark, other) in [(b'+', b'-'), (b'-', b'+')] {
            let find = |text: &[u8], inside: &mut Vec<RawFinding>| self.find_in_lines(text, inside);
            find_through(lines::diff_lines(text, mark, other), find, found);
        }
    }

    /// Looks at a text as it stands and at the ends of its lines.
    fn find_in_lines(&self, text: &[u8], found: &mut Vec<RawFinding>) {
        self.find_forms(text, found);
        let rows = lines::line_stretches(text);
        for view in [lines::last_fields(text, &rows), lines::without_numbers(text, &rows)] {
            find_through(view, |text, inside| self.find_forms(text, inside), found);
        }
        for view in lines::numbered_columns(text) {
            find_through(view, |text, inside| self.find_forms(text, inside), found);
        }
        let counted = frames::without_counters(text);
        find_through(counted, |text, inside| self.find_forms(text, inside), found);
        if let Some(view) = frames::down_columns(text) {
            let mut inside = Vec::new();
            self.find_forms(view.text(), &mut inside);
            // The columns of a line do not follow each other.
            found.extend(inside.into_iter().flat_map(|raw| {
                let label = raw.label;
                view.origin_runs(raw.span)
                    .filter(|span| !span.is_empty())
                    .map(move |span| RawFinding { span, label: label.clone() })
            }));
        }
    }

    fn find_forms(&self, text: &[u8], found: &mut Vec<RawFinding>) {
        let letters = Letters::from_text(text);
        self.index.for_each_piece(letters.get(), &mut |piece| {
            let counts = self.is_conclusive(piece);
            if counts {
                let span = letters.origin(text, piece.place.clone());
                let span = self.widen_place(text, span, piece);
                found.push(RawFinding { span, label: Label::Known(piece.form.value) });
            }
            counts
        });
    }

    /// True if a piece carries enough information to be no accident.
    fn is_conclusive(&self, piece: &FormPiece) -> bool {
        let form = self.index.letters(&piece.form);
        if piece.count * 100 >= form.len() * WHOLE_PERCENT {
            return true;
        }
        let covered = form.get(piece.covered.clone()).unwrap_or_default();
        let Some(known) = self.values.get(piece.form.value) else { return false };
        let value = telling_part(known.value.expose().as_bytes());
        match piece.form.script {
            FormScript::Plain | FormScript::Letters => excess_bits(covered) >= TELLING_BITS,
            FormScript::Digits | FormScript::DigitsBackwards => {
                let scaled = |at: usize| at * value.len() / form.len().max(1);
                let (mut from, mut to) = (scaled(piece.covered.start), scaled(piece.covered.end));
                if piece.form.script == FormScript::DigitsBackwards {
                    (from, to) = (value.len() - to, value.len() - from);
                }
                let said = value.get(from..to).unwrap_or_default();
                // Parts that lie apart do not say what lies between them.
                let share = piece.count as f32 / covered.len().max(1) as f32;
                excess_bits(said) * share >= TELLING_BITS
            }
        }
    }

    /// The place of a dump with the text that some tools write at the end of each of its lines.
    fn with_its_text(&self, text: &[u8], span: Range<usize>, value: usize) -> Range<usize> {
        let value = self.values.get(value).map_or("", |known| known.value.expose()).as_bytes();
        let rest = text.get(span.end..).unwrap_or_default();
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.get(..MAX_DUMP_TEXT_BYTES).unwrap_or(line);
        let stands = |piece: &[u8]| memmem::find(value, piece).is_some();
        let last = line.windows(MIN_DUMP_TEXT_BYTES).rposition(stands);
        span.start..span.end + last.map_or(0, |at| at + MIN_DUMP_TEXT_BYTES)
    }

    /// The place with what belongs to the value besides its letters.
    fn widen_place(&self, text: &[u8], span: Range<usize>, piece: &FormPiece) -> Range<usize> {
        match piece.form.script {
            FormScript::Plain => {}
            FormScript::Letters => return span,
            FormScript::Digits | FormScript::DigitsBackwards => {
                let span = self.with_its_text(text, span, piece.form.value);
                return with_edges(text, span);
            }
        }
        let value = self.values.get(piece.form.value).map_or("", |known| known.value.expose());
        let bytes = value.as_bytes();
        let lead = bytes.iter().take_while(|byte| !letters::is_letter(**byte)).count();
        let Some(start) = span.start.checked_sub(lead) else { return span };
        let whole = start..start + bytes.len();
        if text.get(whole.clone()) == Some(bytes) && whole.end >= span.end { whole } else { span }
    }
}

/// The part of a value that is nobody else's: without the frame and the format of a key, and
/// without what all web tokens begin with.
fn telling_part(value: &[u8]) -> &[u8] {
    let mut value = value.get(..MAX_VALUE_BYTES).unwrap_or(value);
    if let Some(open) = memmem::find(value, b"-BEGIN ") {
        value = text_between(value.get(open..).unwrap_or_default(), b"-----", b"-----END");
        let head = value.get(..MAX_HEAD_BYTES).unwrap_or(value);
        let format = if memmem::find(head, OPENSSH_HEAD).is_some() {
            MAX_HEAD_BYTES
        } else {
            memmem::find(head, RSA_HEAD).map_or(0, |at| at + RSA_HEAD.len())
        };
        value = value.get(format..).unwrap_or_default();
    } else if value.starts_with(b"eyJ") {
        value = text_between(value, b".", b"\0");
    }
    value
}

/// Returns the text behind `open`, up to `close`; the whole text if they are missing.
fn text_between<'t>(text: &'t [u8], open: &[u8], close: &[u8]) -> &'t [u8] {
    let start = memmem::find(text, open).map_or(0, |at| at + open.len());
    let rest = text.get(start..).unwrap_or_default();
    rest.get(..memmem::find(rest, close).unwrap_or(rest.len())).unwrap_or_default()
}

/// Bits of `piece` beyond what language would need.
fn excess_bits(piece: &[u8]) -> f32 {
    let reading = language::measure_value(piece);
    reading.bits - LANGUAGE_BITS * reading.bytes as f32
}

/// The place with the digits at its edges that hold bits of neighbours as well.
fn with_edges(text: &[u8], span: Range<usize>) -> Range<usize> {
    let is_digit =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_');
    let after = text.get(span.end..).unwrap_or_default().iter();
    let before = text.get(..span.start).unwrap_or_default().iter().rev();
    let after = after.take(MAX_EDGE_BYTES).take_while(is_digit).count();
    let before = before.take(MAX_EDGE_BYTES).take_while(is_digit).count();
    span.start - before..span.end + after
}

fn stands_alone(text: &[u8], span: &Range<usize>) -> bool {
    let before = span.start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(span.end);
    ![before, after].into_iter().flatten().any(u8::is_ascii_alphanumeric)
}

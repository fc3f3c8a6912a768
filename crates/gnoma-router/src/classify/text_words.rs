//! A text taken apart into words: which are the person's own, which are quoted, code or pasted logs, and where
//! commands begin. What the words mean is told elsewhere.

use std::{borrow::Cow, collections::BTreeSet};

use super::table::{Grammar, PhraseTable};

/// Bytes of a text that are looked at: of a longer one, its beginning and its end.
pub const MOST_TEXT_BYTES: usize = 16 * 1024;
/// Of these, the share of the end: where there is a long paste, the request stands before or after it.
const TAIL_BYTES: usize = 4 * 1024;
/// Names of files and the like that are kept.
pub(super) const MOST_MENTIONED: usize = 64;
/// Letters of a word; longer ones are cut.
const MOST_WORD_CHARS: usize = 40;
/// Pairs of marks that quote. Single quotes are left out: they are apostrophes more often.
const QUOTES: [(char, char); 5] = [('`', '`'), ('"', '"'), ('“', '”'), ('«', '»'), ('„', '“')];
/// Short words that French writes before an apostrophe.
const ELIDED: [&str; 10] = ["l", "d", "j", "qu", "n", "s", "c", "m", "t", "jusqu"];

/// Whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    Plain,
    Quoted,
    Code,
    Log,
}

/// The break between a word and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordBreak {
    None,
    Comma,
    Sentence,
    Question,
}

impl WordBreak {
    fn ends_sentence(self) -> bool {
        matches!(self, Self::Sentence | Self::Question)
    }
}

/// One word of a text.
#[derive(Clone, Debug)]
pub(super) struct TextWord {
    /// In lower case; empty for a name, which no phrase fits.
    pub(super) text: String,
    pub(super) region: Region,
    /// True if a command may begin here.
    pub(super) head: bool,
    /// The number of its part of the text, counted from 0: commands and sentences part the text.
    pub(super) clause: usize,
    /// True if the word is part of a question.
    pub(super) asked: bool,
    /// True if the word turns off what follows.
    pub(super) negates: bool,
    after: WordBreak,
}

/// A text taken apart.
#[derive(Debug, Default)]
pub(super) struct ParsedText {
    pub(super) words: Vec<TextWord>,
    /// Files, identifiers and the like, as they were written.
    pub(super) names: BTreeSet<String>,
    pub(super) has_log: bool,
    pub(super) has_code: bool,
    /// True if something is asked.
    pub(super) asks: bool,
    /// The number of items in lists.
    pub(super) items: usize,
}

impl ParsedText {
    pub(super) fn from_text(text: &str, table: &PhraseTable) -> Self {
        let mut reading = Self::default();
        let mut fenced = false;
        for line in shorten_text(text).lines() {
            let trimmed = line.trim_start();
            if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
                fenced = !fenced;
                reading.has_code = true;
                continue;
            }
            let is_log = table.logs.matches_line(&line.to_lowercase());
            reading.has_log |= is_log;
            reading.items += usize::from(!fenced && is_item(trimmed));
            let region = match (fenced, is_log) {
                (true, _) => Region::Code,
                (false, true) => Region::Log,
                (false, false) if trimmed.starts_with('>') => Region::Quoted,
                (false, false) => Region::Plain,
            };
            reading.read_line(line, region);
        }
        reading.find_commands(table);
        reading.find_questions();
        reading
    }

    /// Words that are the person's own.
    pub(super) fn plain_words(&self) -> usize {
        self.words.iter().filter(|word| word.region == Region::Plain).count()
    }

    fn read_line(&mut self, line: &str, region: Region) {
        if region == Region::Plain {
            for (piece, quoted) in split_quotes(line) {
                self.read_piece(piece, if quoted { Region::Quoted } else { region });
            }
        } else {
            self.read_piece(line, region);
        }
        self.set_last_break(WordBreak::Sentence);
    }

    fn read_piece(&mut self, piece: &str, region: Region) {
        for chunk in piece.split_whitespace() {
            self.read_chunk(chunk, region);
            let after = break_after(chunk);
            if after != WordBreak::None {
                self.set_last_break(after);
            }
        }
    }

    fn set_last_break(&mut self, after: WordBreak) {
        // The end of a line says less than a mark before it.
        if let Some(last) = self.words.last_mut().filter(|last| !last.after.ends_sentence()) {
            last.after = after;
        }
    }

    fn read_chunk(&mut self, chunk: &str, region: Region) {
        let core = trim_marks(chunk);
        if is_name(core) {
            if self.names.len() < MOST_MENTIONED && matches!(region, Region::Plain | Region::Quoted)
            {
                self.names.insert(core.to_owned());
            }
            self.push(String::new(), region);
            return;
        }
        for part in core.split(|char: char| !char.is_alphanumeric() && !is_apostrophe(char)) {
            let word = normalise_word(part);
            if !word.is_empty() {
                self.push(word, region);
            }
        }
    }

    fn push(&mut self, text: String, region: Region) {
        let (head, asked, negates) = (false, false, false);
        let (clause, after) = (0, WordBreak::None);
        self.words.push(TextWord { text, region, head, clause, asked, negates, after });
    }

    /// Marks where commands begin: after a break or a joining word, and after words that may lead up to one.
    fn find_commands(&mut self, table: &PhraseTable) {
        let grammar: Vec<Option<(Grammar, usize)>> =
            (0..self.words.len()).map(|place| self.grammar_at(place, table)).collect();
        let (mut fresh, mut clause, mut leading) = (true, 0, 0_usize);
        for (word, grammar) in self.words.iter_mut().zip(grammar) {
            match grammar {
                Some((Grammar::Join, _)) if !fresh => {
                    clause += 1;
                    fresh = true;
                    leading = 1;
                }
                Some((Grammar::Lead | Grammar::Join, words)) if fresh => {
                    leading = leading.max(words);
                }
                Some((Grammar::Not, _)) => word.negates = true,
                Some((Grammar::Lead | Grammar::Join, _)) | None => {}
            }
            word.clause = clause;
            word.head = fresh && word.region == Region::Plain;
            fresh &= leading > 0;
            leading = leading.saturating_sub(1);
            if word.after != WordBreak::None {
                clause += 1;
                fresh = true;
                leading = 0;
            }
        }
    }

    /// A question reaches back to the last comma or joining word.
    fn find_questions(&mut self) {
        let mut asked = None;
        for word in self.words.iter_mut().rev() {
            match word.after {
                WordBreak::Question if word.region == Region::Plain => asked = Some(word.clause),
                WordBreak::Question | WordBreak::Sentence | WordBreak::Comma => asked = None,
                WordBreak::None => {}
            }
            word.asked = asked == Some(word.clause);
            self.asks |= word.asked;
        }
    }

    fn grammar_at(&self, place: usize, table: &PhraseTable) -> Option<(Grammar, usize)> {
        let found = {
            let word = |at| self.word_in_sentence(place, at);
            table.grammar.find_phrase(place, word, |_| Some(0))?
        };
        Some((*found.meaning, found.places.len()))
    }

    /// The word at a place, for a phrase that begins at `start`: phrases do not cross the end of a sentence, nor from
    /// own words into others'.
    pub(super) fn word_in_sentence(&self, start: usize, place: usize) -> Option<&str> {
        let (first, word) = (self.words.get(start)?, self.words.get(place)?);
        let before = place.checked_sub(1).filter(|before| *before >= start);
        let crosses = before
            .and_then(|before| self.words.get(before))
            .is_some_and(|before| before.after.ends_sentence());
        (!crosses && first.region == word.region).then_some(word.text.as_str())
    }

    /// Reports whether a new thought begins after this place.
    pub(super) fn breaks_after(&self, place: usize) -> bool {
        self.words.get(place).is_some_and(|word| word.after != WordBreak::None)
    }
}

/// The part of the text that is looked at.
fn shorten_text(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_TEXT_BYTES {
        return text.into();
    }
    let head = text.floor_char_boundary(MOST_TEXT_BYTES - TAIL_BYTES);
    let tail = text.floor_char_boundary(text.len() - TAIL_BYTES);
    let parts = (text.get(..head), text.get(tail..));
    format!("{}\n{}", parts.0.unwrap_or_default(), parts.1.unwrap_or_default()).into()
}

/// Splits a line into what is said and what is quoted. A quote that does not end on its line is none.
fn split_quotes(line: &str) -> Vec<(&str, bool)> {
    let last = QUOTES.map(|(_, close)| line.rfind(close));
    let mut pieces = Vec::new();
    let (mut begin, mut open): (usize, Option<char>) = (0, None);
    for (at, char) in line.char_indices() {
        let next = match open {
            Some(close) if char == close => None,
            Some(_) => continue,
            None => {
                let opens = QUOTES
                    .iter()
                    .zip(last)
                    .find(|((open, _), last)| char == *open && last.is_some_and(|last| last > at));
                let Some(((_, close), _)) = opens else { continue };
                Some(*close)
            }
        };
        pieces.push((line.get(begin..at).unwrap_or_default(), open.is_some()));
        begin = at + char.len_utf8();
        open = next;
    }
    pieces.push((line.get(begin..).unwrap_or_default(), false));
    pieces
}

fn is_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let after_number =
        numbered.len() < line.len() && (numbered.starts_with(". ") || numbered.starts_with(") "));
    line.starts_with("- ") || line.starts_with("* ") || after_number
}

fn is_closer(char: char) -> bool {
    matches!(char, ')' | ']' | '}' | '"' | '\'' | '*' | '_')
}

fn break_after(chunk: &str) -> WordBreak {
    match chunk.trim_end_matches(is_closer).chars().next_back() {
        Some('?') => WordBreak::Question,
        Some('.' | '!' | ';' | ':' | '…') => WordBreak::Sentence,
        Some(',' | '–' | '—') => WordBreak::Comma,
        _ => WordBreak::None,
    }
}

fn is_apostrophe(char: char) -> bool {
    matches!(char, '\'' | '’')
}

/// Without the marks around it; those a path begins with stay.
fn trim_marks(chunk: &str) -> &str {
    let begins_path = |char: char| matches!(char, '.' | '/' | '~' | '@' | '_');
    chunk
        .trim_start_matches(|char: char| !char.is_alphanumeric() && !begins_path(char))
        .trim_end_matches(|char: char| !char.is_alphanumeric() && !matches!(char, '/' | '_' | ')'))
}

/// Reports whether a word is a name of a file, an identifier or an address, of which the parts are not words of the
/// sentence.
fn is_name(core: &str) -> bool {
    let inner = core.trim_end_matches(')').trim_end_matches('(');
    let call = inner.len() < core.len() && core.ends_with("()");
    let marked = inner.contains(['/', '\\', '_', '@', '=', '(', '<']) || inner.contains("::");
    // A file such as `.gitignore` is called by a word.
    let bare = inner.strip_prefix('.').unwrap_or(inner);
    let dotted = bare.split('.').skip(1).any(|part| part.starts_with(char::is_alphanumeric));
    let humped = inner
        .chars()
        .zip(inner.chars().skip(1))
        .any(|(left, right)| left.is_lowercase() && right.is_uppercase());
    call || marked || dotted || humped
}

/// One word in lower case, without its apostrophes at either end and without what French elides before it.
fn normalise_word(part: &str) -> String {
    let part = part.trim_matches(is_apostrophe);
    let lower: String = part
        .chars()
        .take(MOST_WORD_CHARS)
        .map(|char| if is_apostrophe(char) { '\'' } else { char })
        .flat_map(char::to_lowercase)
        .collect();
    match lower.split_once('\'') {
        Some((before, rest)) if ELIDED.contains(&before) && rest.len() > 1 => rest.to_owned(),
        _ => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(text: &str) -> Vec<String> {
        let words = ParsedText::from_text(text, PhraseTable::built_in()).words;
        words.into_iter().filter(|word| word.head).map(|word| word.text).collect()
    }

    #[test]
    fn command_verb_is_found_after_polite_words_and_sentence_breaks() {
        assert!(heads("Could you please fix the login").contains(&"fix".to_owned()));
        assert!(!heads("Could you please fix the login").contains(&"login".to_owned()));
        assert!(heads("Fix it, then write tests").contains(&"write".to_owned()));
        assert_eq!(heads("Fix it. Review it."), ["fix", "review"]);
    }

    #[test]
    fn quoted_text_is_split_off_unless_the_quote_is_unclosed() {
        assert_eq!(
            split_quotes("say \"a b\" now"),
            [("say ", false), ("a b", true), (" now", false)]
        );
        assert_eq!(split_quotes("5\" wide"), [("5\" wide", false)]);
    }

    #[test]
    fn word_normalization_strips_french_elision_and_quotes() {
        assert_eq!(normalise_word("L’erreur"), "erreur");
        assert_eq!(normalise_word("don’t"), "don't");
        assert_eq!(normalise_word("'quoted'"), "quoted");
    }
}

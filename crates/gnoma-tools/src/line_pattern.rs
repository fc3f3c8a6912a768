//! Regular expressions for lines: a match never reaches over a line end.

use std::ops::Range;

use memchr::{memchr, memrchr};
use regex_automata::{
    Input,
    meta::{BuildError, Regex},
};
use regex_syntax::{
    Error, ParserBuilder,
    hir::{
        Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, ErrorKind, Hir,
        HirKind, Look,
    },
};

/// Memory for the states of a pattern that one thread makes while it searches.
const MAX_STATES_BYTES: usize = 10 << 20;
/// Shortest text that is worth finding before a line is looked at, and most such texts.
const MIN_REQUIRED_BYTES: usize = 3;
const MAX_REQUIRED: usize = 64;
const ESCAPE: &str = "put `\\` before a character that is meant literally";

/// A compiled pattern. `^` and `$` are the ends of a line without its line end, `\n` or `\r\n`.
pub(crate) struct LinePattern {
    line: Regex,
    /// Matches in each line that `line` matches, and in a few others. It finds lines quickly in a long text: it is
    /// what a match must contain, or at least has no word boundaries, which are slow in texts beyond ASCII.
    candidate: Regex,
}

impl LinePattern {
    /// Compiles `pattern` into at most `max_bytes`.
    ///
    /// # Errors
    /// The pattern cannot be read, is too large, or needs a line end.
    pub(crate) fn compile(pattern: &str, max_bytes: usize) -> Result<Self, LinePatternError> {
        Self::try_compile(pattern, max_bytes)
            .map_err(|fault| LinePatternError { pattern: pattern.to_owned(), fault })
    }

    fn try_compile(pattern: &str, max_bytes: usize) -> Result<Self, LinePatternFault> {
        let hir = ParserBuilder::new().utf8(false).crlf(true).build().parse(pattern);
        let hir = hir.map_err(|error| LinePatternFault::Syntax(Box::new(error)))?;
        let hir = within_line(hir, Hir::look)?;
        let line = compile_hir(&hir, max_bytes)?;
        let candidate = if let Some(texts) = required_texts(&hir) {
            let texts = texts.into_iter().map(Hir::literal).collect();
            compile_hir(&Hir::alternation(texts), max_bytes)?
        } else if hir.properties().look_set().is_empty() {
            line.clone()
        } else {
            compile_hir(&within_line(hir, candidate_look)?, max_bytes)?
        };
        Ok(Self { line, candidate })
    }

    /// Returns the offset at which the first match in `line` begins.
    pub(crate) fn find(&self, line: &[u8]) -> Option<usize> {
        self.line.find(line).map(|found| found.start())
    }

    /// Reports whether `line`, without its line end, matches.
    pub(crate) fn is_match(&self, line: &[u8]) -> bool {
        self.line.is_match(line)
    }

    /// The first line of `text` that matches, with its line end.
    pub(crate) fn find_line(&self, text: &[u8]) -> Option<Range<usize>> {
        let mut from = 0;
        loop {
            let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
            let hit = self.candidate.search_half(&Input::new(rest).earliest(true))?.offset();
            let (before, after) = rest.split_at(hit);
            let start = memrchr(b'\n', before).map_or(0, |end| end + 1);
            let end = memchr(b'\n', after).map_or(rest.len(), |end| hit + end + 1);
            let line = rest.get(start..end).filter(|line| !line.is_empty())?;
            if self.is_match(without_line_end(line)) {
                return Some(from + start..from + end);
            }
            from += end;
        }
    }
}

/// The reason why a pattern cannot be used and what to write instead, for the model.
#[derive(thiserror::Error)]
#[error("`{pattern}` is not a valid regular expression: {fault}")]
pub(crate) struct LinePatternError {
    pattern: String,
    #[source]
    fault: LinePatternFault,
}

#[derive(thiserror::Error)]
enum LinePatternFault {
    #[error("{0}\n{remedy}", remedy = describe_remedy(.0))]
    Syntax(#[source] Box<Error>),
    #[error("compiled regex exceeds size limit of {0}\n{ESCAPE}")]
    TooLarge(usize),
    #[error("{0}\n{ESCAPE}")]
    Build(#[source] Box<BuildError>),
    /// The pattern needs a line end, for which nothing else can stand.
    #[error("the literal {:?} is not allowed in a regex\n{ESCAPE}", .0.to_string())]
    LineEnd(char),
}

gnoma_core::debug_as_display!(LinePatternError, LinePatternFault);

fn compile_hir(hir: &Hir, max_bytes: usize) -> Result<Regex, LinePatternFault> {
    let config = Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(max_bytes))
        .hybrid_cache_capacity(MAX_STATES_BYTES);
    Regex::builder().configure(config).build_from_hir(hir).map_err(|error| {
        let limit = error.size_limit();
        limit.map_or_else(|| LinePatternFault::Build(Box::new(error)), LinePatternFault::TooLarge)
    })
}

/// Returns advice on what to write instead of a pattern that cannot be read.
fn describe_remedy(error: &Error) -> &'static str {
    use ErrorKind::{UnicodePropertyNotFound, UnicodePropertyValueNotFound};
    match error {
        Error::Translate(cause)
            if matches!(cause.kind(), UnicodePropertyNotFound | UnicodePropertyValueNotFound) =>
        {
            "of the classes of Unicode only general categories such as `\\p{Lu}` are supported; write a range such as `[α-ω]`"
        }
        _ => ESCAPE,
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// `hir` without groups and without line ends in its classes, and with its assertions as `look` has them.
///
/// # Errors
/// A line end that nothing else can stand for.
fn within_line(hir: Hir, look: fn(Look) -> Hir) -> Result<Hir, LinePatternFault> {
    let all = |parts: Vec<Hir>| -> Result<Vec<Hir>, LinePatternFault> {
        parts.into_iter().map(|part| within_line(part, look)).collect()
    };
    Ok(match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(assertion) => look(assertion),
        HirKind::Literal(literal) => match literal.0.iter().find(|byte| b"\r\n".contains(byte)) {
            Some(byte) => return Err(LinePatternFault::LineEnd(char::from(*byte))),
            None => Hir::literal(literal.0),
        },
        HirKind::Class(class) => Hir::class(without_line_ends(class)?),
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = within_line(*repetition.sub, look)?;
            Hir::repetition(repetition)
        }
        HirKind::Capture(group) => within_line(*group.sub, look)?,
        HirKind::Concat(parts) => Hir::concat(all(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
    })
}

fn without_line_ends(mut class: Class) -> Result<Class, LinePatternFault> {
    let was_empty = class.is_empty();
    match &mut class {
        Class::Unicode(set) => {
            let ends = ['\r', '\n'].map(|end| ClassUnicodeRange::new(end, end));
            set.difference(&ClassUnicode::new(ends));
        }
        Class::Bytes(set) => {
            let ends = [b'\r', b'\n'].map(|end| ClassBytesRange::new(end, end));
            set.difference(&ClassBytes::new(ends));
        }
    }
    if class.is_empty() && !was_empty { Err(LinePatternFault::LineEnd('\n')) } else { Ok(class) }
}

/// Texts one of which is in every match of `hir`, if they are long enough to tell lines apart.
fn required_texts(hir: &Hir) -> Option<Vec<Box<[u8]>>> {
    match hir.kind() {
        HirKind::Literal(literal) if literal.0.len() >= MIN_REQUIRED_BYTES => {
            Some(vec![literal.0.clone()])
        }
        HirKind::Repetition(repetition) if repetition.min > 0 => required_texts(&repetition.sub),
        HirKind::Concat(parts) => {
            let shortest = |texts: &Vec<Box<[u8]>>| texts.iter().map(|text| text.len()).min();
            parts.iter().filter_map(required_texts).max_by_key(shortest)
        }
        HirKind::Alternation(parts) => {
            let texts: Option<Vec<_>> = parts.iter().map(required_texts).collect();
            texts.map(|texts| texts.concat()).filter(|texts| texts.len() <= MAX_REQUIRED)
        }
        _ => None,
    }
}

/// An assertion that holds in the middle of a text wherever `look` holds in a line by itself.
fn candidate_look(look: Look) -> Hir {
    match look {
        Look::Start | Look::StartLF => Hir::look(Look::StartLF),
        Look::End | Look::EndLF => Hir::look(Look::EndCRLF),
        Look::StartCRLF | Look::EndCRLF => Hir::look(look),
        // The other assertions are about words.
        _ => Hir::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BYTES: usize = 1 << 20;

    #[test]
    fn line_pattern_finds_lines_by_the_literals_of_a_regex() {
        let text = b"one\nErr twoError x\r\nthree\xc3\xa9 Errors\n";
        for (pattern, line) in [
            (r"\w+Error\b", Some(4..20)),
            (r"^three.*(?:Error|Warning)", Some(20..35)),
            (r"(?:Err|one)+$", Some(0..4)),
            (r"\bError\b", None),
            (r"x$", Some(4..20)),
            (r"\Bs\z", Some(20..35)),
            (r"\p{Lu}rrors", Some(20..35)),
            ("", Some(0..4)),
        ] {
            let pattern = LinePattern::compile(pattern, MAX_BYTES).unwrap();
            assert_eq!(pattern.find_line(text), line);
        }
    }

    #[test]
    fn unsupported_patterns_are_explained() {
        for (pattern, why) in [
            (r"\p{Klingon}+", "only general categories such as `\\p{Lu}` are supported"),
            ("(a", "unclosed group\nput `\\` before"),
            (r"[\r\n]", r#"the literal "\n" is not allowed"#),
            (r"(?:\w{100}){100}", "exceeds size limit of 1048576"),
        ] {
            let error = LinePattern::compile(pattern, MAX_BYTES).err().unwrap().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}

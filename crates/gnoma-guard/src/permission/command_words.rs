//! Rules about the words of one simple command, such as `git status` or `cargo test *`.
//!
//! Words are compared one by one, as the shell would pass them to the program; the raw text is never examined.
//! Options count in the order in which they are written. A rule that denies or asks may also leave words and parts of
//! words open: `git push * --force`, `docker*`.

use std::fmt;

use gnoma_shell::Invocation;

use super::pattern_overlap::{PatternStep, patterns_overlap};

/// Most words of a rule.
const MAX_WORDS: usize = 64;
/// Characters that end or join commands, or are replaced by the shell.
const SPECIAL: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\n', '\r', '#', '?', '[', ']', '{', '}', '!'];

/// Words that a command must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandWords {
    words: Vec<RuleWord>,
    /// Further arguments may follow.
    more: bool,
}

/// The fault of words that are not a rule about one simple command.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandWordsError {
    /// The words name no command.
    #[error("it names no command; a rule for all commands is `bash`")]
    NoCommand,
    /// There are more words than a rule may have.
    #[error("it has more than {MAX_WORDS} words")]
    TooManyWords,
    /// A `*` is not the last word of a rule that allows.
    #[error("`*` may only be a word of its own at the end; write `bash(cargo *)`, or quote it")]
    StarInside,
    /// The words end with `:*`.
    #[error(
        "`:*` is how other programs leave arguments open; write `bash({before} *)`, or quote the colon to mean it"
    )]
    ColonStar {
        /// The words without `:*`.
        before: String,
    },
    /// A character ends or joins commands, or is replaced by the shell.
    #[error(
        "`{}` is not part of a simple command; a rule is about one command, without pipes, lists and expansions (quote it to mean it as it stands)",
        .0.escape_debug()
    )]
    SpecialCharacter(char),
    /// A control character stands outside of quotes.
    #[error("it contains the character `{}`", .0.escape_debug())]
    ControlCharacter(char),
    /// A control character stands in quotes.
    #[error("it contains a control character")]
    ControlInQuote,
    /// A quote is not closed.
    #[error("a quote is not closed")]
    OpenQuote,
    /// The words end with a backslash.
    #[error("it ends after a backslash")]
    OpenEscape,
}

gnoma_core::debug_as_display!(CommandWordsError);

/// A word of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RuleWord {
    /// Exactly this one word.
    Plain(String),
    /// One that has these parts in their order, and anything between them.
    Glob(Vec<String>),
    /// Any number of any words.
    Any,
}

impl RuleWord {
    fn matches_word(&self, word: &str) -> bool {
        match self {
            Self::Plain(own) => own == word,
            Self::Glob(parts) => has_parts(parts, word),
            Self::Any => true,
        }
    }
}

/// Reports whether a word begins with the first part, ends with the last, and has the others between them.
fn has_parts(parts: &[String], word: &str) -> bool {
    let [first, between @ .., last] = parts else { return false };
    let Some(rest) = word.strip_prefix(first.as_str()) else { return false };
    let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
    between.iter().all(|part| match rest.split_once(part.as_str()) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The certainty that a rule is about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// The rule is surely not about this.
    No,
    /// The answer cannot be known.
    Maybe,
    /// The rule is about this.
    Yes,
}

impl CommandWords {
    /// Exactly `words`. `None` when no rule can say them.
    #[must_use]
    pub(crate) fn from_words(words: &[String]) -> Option<Self> {
        let sayable = !words.is_empty()
            && words.len() <= MAX_WORDS
            && words.iter().all(|word| !word.chars().any(char::is_control));
        sayable.then(|| Self {
            words: words.iter().cloned().map(RuleWord::Plain).collect(),
            more: false,
        })
    }

    /// Reads words as they are in a rule: blanks separate, quotes and `\` keep. With `is_open`, for rules that never
    /// allow, a `*` may be anywhere.
    ///
    /// # Errors
    /// It is not the words of one command, or leaves more open than such a rule may.
    pub(crate) fn parse(text: &str, is_open: bool) -> Result<Self, CommandWordsError> {
        let mut words = split_words(text)?;
        if is_open && let Some(before) = text.trim_end_matches(' ').strip_suffix(":*") {
            return Err(CommandWordsError::ColonStar { before: before.to_owned() });
        }
        let mut more = words.last() == Some(&RuleWord::Any);
        if more {
            words.pop();
        }
        let is_plain = words.iter().all(|word| matches!(word, RuleWord::Plain(_)));
        if !is_plain && !is_open {
            return Err(CommandWordsError::StarInside);
        }
        if words.iter().all(|word| *word == RuleWord::Any) {
            return Err(CommandWordsError::NoCommand);
        }
        if words.len() > MAX_WORDS {
            return Err(CommandWordsError::TooManyWords);
        }
        // What a `*` at the very end stands for may go on behind a blank.
        more |= matches!(words.last(), Some(RuleWord::Glob(parts)) if parts.last().is_some_and(String::is_empty));
        Ok(Self { words, more })
    }

    /// Reports whether every word is known and as the rule says.
    pub(crate) fn covers_command(&self, words: &[Option<String>]) -> bool {
        let enough = words.len() == self.words.len() || self.more;
        enough
            && words.len() >= self.words.len()
            && words.iter().all(Option::is_some)
            && self.words.iter().zip(words).all(|(one, two)| match (one, two) {
                (RuleWord::Plain(one), Some(two)) => one == two,
                _ => false,
            })
    }

    /// Returns whether the command is, or could turn out to be, what the rule says. A program is the same wherever
    /// it is, and an unknown word can become any number of words.
    pub(crate) fn touches_command(&self, words: &[Option<String>]) -> Match {
        let mut mine: Vec<_> = self.words.iter().map(CommandStep::from_word).collect();
        if self.more {
            mine.push(PatternStep::Run);
        }
        let program = self.words.first();
        if let (Some(step), Some(RuleWord::Plain(program))) = (mine.first_mut(), program)
            && !program.contains('/')
        {
            *step = PatternStep::One(CommandStep::Word(program_name(program)));
        }
        let in_folder = matches!(program, Some(RuleWord::Plain(program)) if program.contains('/'))
            || matches!(program, Some(RuleWord::Glob(parts)) if parts.iter().any(|it| it.contains('/')));
        let theirs: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(at, word)| match word {
                None => PatternStep::Run,
                Some(program) if at == 0 && !in_folder => {
                    PatternStep::One(CommandStep::Word(program_name(program)))
                }
                Some(word) => PatternStep::One(CommandStep::Word(word.as_str())),
            })
            .collect();
        let is_same = |one: &PatternStep<_>, two: &PatternStep<_>| match (one, two) {
            (PatternStep::One(one), PatternStep::One(two)) => CommandStep::may_overlap(one, two),
            _ => false,
        };
        // What is unknown does not matter where anything may follow.
        let begins_so = self.more
            && theirs.len() >= self.words.len()
            && mine.iter().zip(&theirs).take(self.words.len()).all(|(one, two)| is_same(one, two));
        let is_known = begins_so || !theirs.contains(&PatternStep::Run);
        match patterns_overlap(&mine, &theirs, CommandStep::may_overlap) {
            Some(false) => Match::No,
            Some(true) if is_known => Match::Yes,
            Some(true) | None => Match::Maybe,
        }
    }

    /// Returns how specific the words are, for finding the most specific rule.
    pub(crate) fn specificity_score(&self) -> usize {
        self.words.iter().filter(|word| **word != RuleWord::Any).count()
    }

    /// Reports whether the words are one command, letter by letter.
    pub(crate) fn is_exact(&self) -> bool {
        !self.more && self.words.iter().all(|word| matches!(word, RuleWord::Plain(_)))
    }
}

/// A word on one of the two sides that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandStep<'a> {
    Word(&'a str),
    Pattern(&'a RuleWord),
}

impl<'a> CommandStep<'a> {
    fn from_word(word: &'a RuleWord) -> PatternStep<Self> {
        match word {
            RuleWord::Plain(word) => PatternStep::One(Self::Word(word)),
            RuleWord::Glob(_) => PatternStep::One(Self::Pattern(word)),
            RuleWord::Any => PatternStep::Run,
        }
    }

    fn may_overlap(one: &Self, two: &Self) -> bool {
        match (one, two) {
            (Self::Word(one), Self::Word(two)) => one == two,
            (Self::Pattern(pattern), Self::Word(word))
            | (Self::Word(word), Self::Pattern(pattern)) => pattern.matches_word(word),
            (Self::Pattern(one), Self::Pattern(two)) => one == two,
        }
    }
}

/// The program a first word names, without its folder and Windows' ending.
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let at = name.len().saturating_sub(".exe".len());
    match name.get(at..) {
        Some(ending) if at > 0 && ending.eq_ignore_ascii_case(".exe") => {
            name.get(..at).unwrap_or(name)
        }
        _ => name,
    }
}

fn split_words(text: &str) -> Result<Vec<RuleWord>, CommandWordsError> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(' ');
    while !rest.is_empty() {
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = after.trim_start_matches(' ');
    }
    Ok(words)
}

fn next_word(text: &str) -> Result<(RuleWord, &str), CommandWordsError> {
    if let Some(after) = text.strip_prefix('*')
        && (after.is_empty() || after.starts_with(' '))
    {
        return Ok((RuleWord::Any, after));
    }
    let mut parts = Vec::new();
    let mut word = String::new();
    let mut rest = text.chars();
    loop {
        let before = rest.as_str();
        match rest.next() {
            None | Some(' ') if parts.is_empty() => return Ok((RuleWord::Plain(word), before)),
            None | Some(' ') => {
                parts.push(word);
                return Ok((RuleWord::Glob(parts), before));
            }
            Some('\'') => word.push_str(&read_quoted(&mut rest, '\'')?),
            Some('"') => word.push_str(&read_quoted(&mut rest, '"')?),
            Some('\\') => {
                let letter = rest.next().ok_or(CommandWordsError::OpenEscape)?;
                if letter.is_control() {
                    return Err(CommandWordsError::ControlCharacter(letter));
                }
                word.push(letter);
            }
            Some('*') => parts.push(std::mem::take(&mut word)),
            Some(letter) if SPECIAL.contains(&letter) => {
                return Err(CommandWordsError::SpecialCharacter(letter));
            }
            Some(letter) if letter.is_control() => {
                return Err(CommandWordsError::ControlCharacter(letter));
            }
            Some(letter) => word.push(letter),
        }
    }
}

fn read_quoted(rest: &mut std::str::Chars<'_>, quote: char) -> Result<String, CommandWordsError> {
    let text = rest.as_str();
    let (inside, after) = text.split_once(quote).ok_or(CommandWordsError::OpenQuote)?;
    if inside.chars().any(char::is_control) {
        return Err(CommandWordsError::ControlInQuote);
    }
    *rest = after.chars();
    Ok(inside.to_owned())
}

/// `word` so that a shell, and [`CommandWords::parse`], reads it back as one word with exactly this text.
pub(crate) fn quote_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:@%+,~^".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl fmt::Display for CommandWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A colon before a `*` is quoted, as `parse` wants it.
        let part = |part: &String| match part.strip_suffix(':') {
            Some(before) => format!("{}':'", quote_word(before)),
            None if part.is_empty() => String::new(),
            None => quote_word(part),
        };
        let written = |word: &RuleWord| match word {
            RuleWord::Plain(word) => quote_word(word),
            RuleWord::Glob(parts) => parts.iter().map(part).collect::<Vec<_>>().join("*"),
            RuleWord::Any => "*".to_owned(),
        };
        let words: Vec<_> = self.words.iter().map(written).collect();
        f.write_str(&words.join(" "))?;
        let is_open = words.last().is_some_and(|word| word.ends_with('*'));
        if self.more && !is_open { f.write_str(" *") } else { Ok(()) }
    }
}

/// The program's name; nothing when it is not known.
pub(super) fn program_of(command: &Invocation) -> &str {
    command.words.first().and_then(Option::as_deref).map(program_name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(text: &str) -> Vec<Option<String>> {
        text.split(' ').map(|word| (word != "?").then(|| word.to_owned())).collect()
    }

    #[test]
    fn bash_allow_rule_matches_whole_command_words_in_order() {
        for (rule, command, covered) in [
            ("git status", "git status", true),
            ("git status", "git status -s", false),
            ("git status", "git statusx", false),
            ("git status *", "git status -s -b", true),
            ("git status *", "git status", true),
            ("git status *", "git -C x status", false),
            ("git status", "git ?", false),
            ("git *", "git ?", false),
            ("git status", "/tmp/git status", false),
        ] {
            assert_eq!(
                CommandWords::parse(rule, false).unwrap().covers_command(&known(command)),
                covered,
                "{command}"
            );
        }
    }

    #[test]
    fn bash_deny_rule_matches_full_program_paths_and_maybe_unknown_words() {
        for (rule, command, expected) in [
            ("rm *", "rm -rf x", Match::Yes),
            ("rm *", "/bin/rm x", Match::Yes),
            ("rm *", "RM.EXE x", Match::No),
            ("rm *", "rm.EXE x", Match::Yes),
            ("rm *", "? x", Match::Maybe),
            ("rm *", "ls ?", Match::No),
            ("git push", "git ? push", Match::Maybe),
            ("git push", "git ?", Match::Maybe),
            ("git push *", "git push ?", Match::Yes),
            ("git push", "git pull ?", Match::No),
            ("./run", "/tmp/run", Match::No),
        ] {
            assert_eq!(
                CommandWords::parse(rule, false).unwrap().touches_command(&known(command)),
                expected,
                "{command}"
            );
        }
    }

    #[test]
    fn bash_deny_rule_may_have_wildcards_between_and_inside_words() {
        for (rule, command, expected) in [
            ("git push * --force", "git push origin main --force", Match::Yes),
            ("git push * --force", "git push --force", Match::Yes),
            ("git push * --force", "git push origin", Match::No),
            ("docker*", "docker-compose up", Match::Yes),
            ("docker*", "docker ps", Match::Yes),
            ("docker*", "/usr/bin/docker ps", Match::Yes),
            ("* --force", "git push --force", Match::Yes),
            ("* *deploy*", "npm run deploy", Match::Yes),
            ("* *deploy*", "./deploy.sh now", Match::Yes),
            ("* *deploy*", "npm run pre-deploy -- x", Match::Yes),
            ("* *deploy*", "npm run build", Match::No),
            ("curl *evil*", "curl https://evil.example", Match::Yes),
            ("curl *evil*", "curl -s https://evil.example -o x", Match::No),
            ("a *b*c", "a xbyc", Match::Yes),
            ("a *b*c", "a xcyb", Match::No),
            ("ls '*'", "ls x", Match::No),
            ("curl http':'*", "curl http://a.example", Match::Yes),
        ] {
            let words = CommandWords::parse(rule, true).unwrap();
            assert_eq!(words.touches_command(&known(command)), expected, "{rule}: {command}");
            assert_eq!(CommandWords::parse(&words.to_string(), true).unwrap(), words);
        }
        assert!(CommandWords::parse("* *", true).is_err());
        for text in ["rm:*", "git push:*"] {
            let why = CommandWords::parse(text, true).unwrap_err().to_string();
            assert!(why.contains(&text.replace(":*", " *")), "{why}");
        }
    }

    #[test]
    fn bash_rule_with_shell_operators_or_bare_wildcard_is_rejected() {
        for text in ["", "*", "a; b", "a && b", "a > f", "a $(b)", "gh:*", "a * b", "a 'b", "a\\"] {
            assert!(CommandWords::parse(text, false).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn command_words_round_trip_through_display_and_parse(words in prop::collection::vec("[^\\p{C}]{0,8}", 1..6), more: bool) {
            let words = words.into_iter().map(RuleWord::Plain).collect();
            let words = CommandWords { words, more };
            prop_assert_eq!(CommandWords::parse(&words.to_string(), false).unwrap(), words);
        }
    }
}

//! Rules about the words of one simple command, such as `git status` or `cargo test *`.
//!
//! Words are compared one by one, as the shell would pass them to the program; the raw text is never examined.
//! Options count in the order in which they are written.

use std::fmt;

use super::meet::{PatternStep, meet};

/// Most words of a rule.
const MAX_WORDS: usize = 64;
/// Characters that end or join commands, or are replaced by the shell.
const SPECIAL: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\n', '\r', '#', '?', '[', ']', '{', '}', '!'];

/// Words that a command must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandWords {
    words: Vec<String>,
    /// Further arguments may follow.
    more: bool,
}

/// Whether a rule is about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// Surely not.
    No,
    /// It cannot be known.
    Maybe,
    /// It is.
    Yes,
}

impl CommandWords {
    /// Exactly `words`. `None` when no rule can say them.
    #[must_use]
    pub(crate) fn exactly(words: &[String]) -> Option<Self> {
        let sayable = !words.is_empty()
            && words.len() <= MAX_WORDS
            && words.iter().all(|word| !word.chars().any(char::is_control));
        sayable.then(|| Self { words: words.to_vec(), more: false })
    }

    /// Reads words as they are in a rule: blanks separate, quotes and `\` keep.
    ///
    /// # Errors
    /// Why it is not a list of words.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut written = split(text)?;
        let more = written.last() == Some(&Written::Star);
        if more {
            written.pop();
        }
        let words: Option<Vec<_>> = written.into_iter().map(Written::word).collect();
        let words = words.ok_or("`*` may only be the last word, on its own")?;
        if words.is_empty() {
            return Err("it names no command; a rule for all commands is `bash`".to_owned());
        }
        if words.len() > MAX_WORDS {
            return Err(format!("it has more than {MAX_WORDS} words"));
        }
        Ok(Self { words, more })
    }

    /// Whether every word is known and as the rule says.
    pub(crate) fn covers(&self, words: &[Option<String>]) -> bool {
        let enough = words.len() == self.words.len() || self.more;
        enough
            && words.len() >= self.words.len()
            && words.iter().all(Option::is_some)
            && self.words.iter().zip(words).all(|(one, two)| two.as_ref() == Some(one))
    }

    /// Whether the command is, or could turn out to be, what the rule says. A program is the same
    /// wherever it is, and an unknown word can become any number of words.
    pub(crate) fn touches(&self, words: &[Option<String>]) -> Match {
        let mut mine: Vec<_> =
            self.words.iter().map(|word| PatternStep::One(word.as_str())).collect();
        if self.more {
            mine.push(PatternStep::Run);
        }
        if let Some(PatternStep::One(program)) = mine.first_mut()
            && !program.contains('/')
        {
            *program = program_name(program);
        }
        let in_folder = self.words.first().is_some_and(|program| program.contains('/'));
        let theirs: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(at, word)| match word {
                None => PatternStep::Run,
                Some(program) if at == 0 && !in_folder => PatternStep::One(program_name(program)),
                Some(word) => PatternStep::One(word.as_str()),
            })
            .collect();
        // What is unknown does not matter where anything may follow.
        let begins_so = self.more
            && theirs.len() >= self.words.len()
            && theirs.iter().zip(&mine).take(self.words.len()).all(|(one, two)| one == two);
        let is_known = begins_so || !theirs.contains(&PatternStep::Run);
        match meet(&mine, &theirs, |one, two| one == two) {
            Some(false) => Match::No,
            Some(true) if is_known => Match::Yes,
            Some(true) | None => Match::Maybe,
        }
    }

    /// How much it says, for finding the most specific rule.
    pub(crate) fn weight(&self) -> usize {
        self.words.len()
    }

    /// Whether nothing may follow.
    pub(crate) fn is_exact(&self) -> bool {
        !self.more
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

#[derive(Debug, PartialEq, Eq)]
enum Written {
    Word(String),
    Star,
}

impl Written {
    fn word(self) -> Option<String> {
        match self {
            Self::Word(word) => Some(word),
            Self::Star => None,
        }
    }
}

fn split(text: &str) -> Result<Vec<Written>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(' ');
    while !rest.is_empty() {
        let (word, after) = next_word(rest)?;
        words.push(word);
        rest = after.trim_start_matches(' ');
    }
    Ok(words)
}

fn next_word(text: &str) -> Result<(Written, &str), String> {
    if let Some(after) = text.strip_prefix('*')
        && (after.is_empty() || after.starts_with(' '))
    {
        return Ok((Written::Star, after));
    }
    let mut word = String::new();
    let mut rest = text.chars();
    loop {
        let before = rest.as_str();
        match rest.next() {
            None | Some(' ') => return Ok((Written::Word(word), before)),
            Some('\'') => word.push_str(&until(&mut rest, '\'')?),
            Some('"') => word.push_str(&until(&mut rest, '"')?),
            Some('\\') => {
                let letter = rest.next().ok_or("it ends after a backslash")?;
                if letter.is_control() {
                    return Err(format!("it contains the character `{}`", letter.escape_debug()));
                }
                word.push(letter);
            }
            Some('*') => {
                return Err(
                    "`*` may only be a word of its own at the end; write `bash(cargo *)`, \
                            or quote it"
                        .to_owned(),
                );
            }
            Some(letter) if SPECIAL.contains(&letter) => {
                return Err(format!(
                    "`{}` is not part of a simple command; a rule is about one command, without \
                     pipes, lists and expansions (quote it to mean it as it stands)",
                    letter.escape_debug()
                ));
            }
            Some(letter) if letter.is_control() => {
                return Err(format!("it contains the character `{}`", letter.escape_debug()));
            }
            Some(letter) => word.push(letter),
        }
    }
}

fn until(rest: &mut std::str::Chars<'_>, quote: char) -> Result<String, String> {
    let text = rest.as_str();
    let (inside, after) = text.split_once(quote).ok_or("a quote is not closed")?;
    if inside.chars().any(char::is_control) {
        return Err("it contains a control character".to_owned());
    }
    *rest = after.chars();
    Ok(inside.to_owned())
}

/// `word` so that a shell, and [`CommandWords::parse`], reads it back as one word with exactly this text.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:@%+,~^".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl fmt::Display for CommandWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| quoted(word)).collect();
        f.write_str(&words.join(" "))?;
        if self.more { f.write_str(" *") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(text: &str) -> Vec<Option<String>> {
        text.split(' ').map(|word| (word != "?").then(|| word.to_owned())).collect()
    }

    #[test]
    fn words_are_compared_whole_and_in_order() {
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
                CommandWords::parse(rule).unwrap().covers(&known(command)),
                covered,
                "{command}"
            );
        }
    }

    #[test]
    fn what_could_be_meant_is_found() {
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
                CommandWords::parse(rule).unwrap().touches(&known(command)),
                expected,
                "{command}"
            );
        }
    }

    #[test]
    fn only_words_of_one_command_are_a_rule() {
        for text in ["", "*", "a; b", "a && b", "a > f", "a $(b)", "gh:*", "a * b", "a 'b", "a\\"] {
            assert!(CommandWords::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn words_print_as_they_are_read(words in prop::collection::vec("[^\\p{C}]{0,8}", 1..6), more: bool) {
            let words = CommandWords { words, more };
            prop_assert_eq!(CommandWords::parse(&words.to_string()).unwrap(), words);
        }
    }
}

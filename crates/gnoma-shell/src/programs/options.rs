//! Sorts the words of a command into options and operands, as getopt does it.
//!
//! Options are an allow-list: what an entry does not name is reported as strange. An abbreviated long
//! option is taken for what it abbreviates *and* reported, because the table need not have all names.

use super::entry::{Consequence, OptionSpec, OptionValue, ProgramEntry, Role, Style, Trait};
use crate::expand::Field;

/// An option that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenOption {
    /// The name of the option without dashes.
    pub(crate) name: String,
    /// The consequence that the table gives for the option.
    pub(crate) leads_to: Option<Consequence>,
    /// The role of the option's last value.
    pub(crate) role: Role,
    /// The values of the option.
    pub(crate) values: Vec<Field>,
}

/// The words of a command, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SortedWords {
    /// The options, in the order they are given.
    pub(crate) options: Vec<GivenOption>,
    /// The operands, in the order they are given.
    pub(crate) operands: Vec<Field>,
    /// The number of operands before `--`; all of them if there is none.
    pub(crate) before_dashes: Option<usize>,
    /// The reasons why it is not certain what the command does: unlisted options, words that may be options.
    pub(crate) strange: Vec<String>,
}

impl SortedWords {
    pub(crate) fn has_option(&self, names: &[&str]) -> bool {
        self.options.iter().any(|given| names.contains(&given.name.as_str()))
    }

    pub(crate) fn leads_to(&self, consequence: Consequence) -> bool {
        self.options.iter().any(|given| given.leads_to == Some(consequence))
    }

    /// The one operand's constant text at `at`.
    pub(crate) fn operand(&self, at: usize) -> Option<&str> {
        self.operands.get(at).and_then(Field::known_text)
    }
}

/// Sorts `words` (without the program) by what `entry` says.
pub(crate) fn sort_words(entry: &ProgramEntry, words: &[Field]) -> SortedWords {
    let mut sorter = Sorter { entry, sorted: SortedWords::default(), words: words.iter() };
    while let Some(word) = sorter.words.next() {
        if !sorter.sort_word(word) {
            break;
        }
    }
    sorter.sorted
}

/// True if a program could take the word for an option where the table says that it is a value: `git log -U --output=x`.
fn looks_like_option(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(|first: char| !first.is_ascii_digit()))
}

struct Sorter<'a> {
    entry: &'a ProgramEntry,
    sorted: SortedWords,
    words: std::slice::Iter<'a, Field>,
}

impl Sorter<'_> {
    /// Takes one word and the values it needs. False when the rest was taken too.
    fn sort_word(&mut self, word: &Field) -> bool {
        let Some(text) = word.known_text().filter(|_| self.entry.style != Style::Plain) else {
            return self.take_operand(word);
        };
        if text == "--" {
            self.sorted.before_dashes = Some(self.sorted.operands.len());
            self.sorted.operands.extend(self.words.by_ref().cloned());
            return false;
        }
        if text == "-" || !text.starts_with('-') {
            return self.take_operand(word);
        }
        let text = text.to_owned();
        self.take_option(&text);
        true
    }

    fn take_operand(&mut self, word: &Field) -> bool {
        let safe = self.entry.has_trait(Trait::Safe) || self.entry.has_trait(Trait::Loose);
        if !safe && word.known_text().is_none() && word.may_be_option() {
            self.record_strange(format!("`{word}` may be an option"));
        }
        if word.known_text().is_some_and(|text| text.len() > 1 && text.starts_with('+'))
            && self.entry.has_trait(Trait::Number)
            && !safe
        {
            self.record_strange(format!("`{word}` is one of the program's commands"));
        }
        self.sorted.operands.push(word.clone());
        if self.entry.style == Style::First {
            self.sorted.operands.extend(self.words.by_ref().cloned());
            return false;
        }
        true
    }

    fn take_option(&mut self, text: &str) {
        if let Some(long) = text.strip_prefix("--") {
            self.take_long(long, text);
        } else if let Some(short) = text.strip_prefix('-') {
            let is_number = short.bytes().all(|byte| byte.is_ascii_digit());
            if is_number && self.entry.has_trait(Trait::Number) {
                return;
            }
            let named = short.split('=').next().unwrap_or(short);
            let may_be_long = self.entry.has_trait(Trait::LongSingle) && named.len() > 1;
            if self.entry.style == Style::Single || may_be_long && self.find_option(named).is_some()
            {
                self.take_long(short, text);
            } else {
                self.take_bundle(short, text);
            }
        }
    }

    fn take_long(&mut self, long: &str, text: &str) {
        let (name, joined) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let Some(spec) = self.find_option(name).filter(|spec| self.is_long(spec)) else {
            return self.take_unknown_long(name, joined, text);
        };
        self.record_option(&spec, joined);
    }

    /// An option that is not listed: perhaps the beginning of one that is.
    fn take_unknown_long(&mut self, name: &str, joined: Option<&str>, text: &str) {
        let fits = |spec: &&OptionSpec| spec.name.len() > 1 && spec.name.starts_with(name);
        let mut candidates = self.entry.options.iter().filter(fits);
        let only = candidates.next().filter(|_| candidates.next().is_none()).cloned();
        if let Some(spec) = only.filter(|_| !name.is_empty()) {
            self.record_option(&spec, joined);
            self.record_strange(format!("option `{text}` is abbreviated"));
        } else {
            self.record_strange(format!("unknown option `{text}`"));
        }
    }

    fn take_bundle(&mut self, bundle: &str, text: &str) {
        for (at, letter) in bundle.char_indices() {
            let end = at + letter.len_utf8();
            let Some(spec) = bundle.get(at..end).and_then(|name| self.find_option(name)) else {
                return self.record_strange(format!("unknown option `{text}`"));
            };
            let rest = bundle.get(end..).filter(|rest| !rest.is_empty());
            if spec.takes == OptionValue::None {
                self.record_option(&spec, None);
            } else {
                return self.record_option(&spec, rest);
            }
        }
    }

    /// Records an option with its values: the joined one, else the words that follow.
    fn record_option(&mut self, spec: &OptionSpec, joined: Option<&str>) {
        let wanted = match spec.takes {
            OptionValue::None | OptionValue::Joined => 0,
            OptionValue::One => usize::from(joined.is_none()),
            OptionValue::Two => 2 - usize::from(joined.is_some()),
        };
        let mut values: Vec<Field> =
            joined.map(|text| Field::Known(text.to_owned())).into_iter().collect();
        for _ in 0..wanted {
            let Some(value) = self.words.next() else {
                self.record_strange(format!("option `{}` has no value", spec.name));
                break;
            };
            if value.may_be_many() {
                self.record_strange(format!("`{value}` may be several words"));
            }
            if looks_like_option(value.known_start()) {
                self.record_strange(format!("`{value}` may be an option"));
            }
            values.push(value.clone());
        }
        if spec.takes == OptionValue::None && joined.is_some() {
            self.record_strange(format!("option `{}` takes no value", spec.name));
        }
        self.sorted.options.push(GivenOption {
            name: spec.name.to_owned(),
            leads_to: spec.leads_to,
            role: spec.value,
            values,
        });
    }

    fn find_option(&self, name: &str) -> Option<OptionSpec> {
        self.entry.options.iter().find(|spec| spec.name == name).cloned()
    }

    /// True if a spec may be written with two dashes: all names but a lone letter.
    fn is_long(&self, spec: &OptionSpec) -> bool {
        spec.name.chars().count() > 1 || self.entry.style == Style::Single
    }

    fn record_strange(&mut self, why: String) {
        if !self.entry.has_trait(Trait::Loose) && !self.entry.has_trait(Trait::Safe) {
            self.sorted.strange.push(why);
        }
    }
}

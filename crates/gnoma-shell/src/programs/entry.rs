//! One entry of a table, and how its lines are read.
//!
//! ```text
//! [sort]                          the name; `[git log]` is a command of a program, `[@diff]` a shared set
//! also: gsort | bsdsort           other names of the same
//! like: @diff                     options of a shared set
//! options: -nru -k= -o=write --color=? --in-place=?!writes
//! operands: text read*            what operands are, in order; one may repeat
//! text-by: e regexp               with these options there is no first `text` operand
//! default: list                   what the working folder is when there is no operand
//! style: first                    how options are written, see [`Style`]
//! is: safe number                 see [`Trait`]
//! does: network runs              effects it always has
//! risk: high                      at least this
//! by: sed                         code that looks closer
//! ```
//!
//! An option is a flag (`-nru` are three), or takes a value: `=` needed, `=?` only joined, `==` two. After it
//! comes what the value is (text when nothing is said), after `!` what the option leads to.

use crate::facts::Risk;

/// The role of an operand or of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Text without any effect.
    Text,
    /// A file that is read.
    Read,
    /// A file or folder that is listed or looked at.
    List,
    /// A file or folder of which nothing but its name, its kind and where it leads is shown.
    Look,
    /// A file with names of files that are read too.
    Names,
    /// A path that git limits itself to.
    Path,
    /// A revision, a path, or a path within a revision.
    Revision,
    /// A file that is written, or a folder written into.
    Write,
    /// A file or folder that is deleted.
    Delete,
    /// A folder to work in.
    Folder,
    /// A repository that is used in place of the one around: its settings may run programs.
    Repository,
    /// A host or address.
    Url,
    /// An address that something is sent to, or the path of a folder on this machine that is written.
    Remote,
    /// Code or a program: not looked into.
    Run,
    /// The rest is a command.
    Command,
    /// The first of these words only; then text.
    Verb,
    /// A text that begins with `+`.
    Plus,
    /// A pattern for names of files that are searched, below the working folder.
    Glob,
    /// An archive: read or written as the command goes.
    Archive,
    /// None may be given.
    Nothing,
}

/// The consequence of an option, in addition to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// Operands that would be read are written.
    Writes,
    /// Operands that would be read are deleted.
    Deletes,
    /// The option changes the state that the program keeps.
    Changes,
    /// The option makes the program lose something.
    Destroys,
    /// The option makes the program only print: the effects that the program always has do not happen.
    Nothing,
    /// The option makes the program only say what it would do. It takes its locks and reads the project as if it
    /// did it, so that a run on trial shows it.
    Rehearses,
    /// The option makes the program only list.
    Lists,
    /// The option shows the program's output through a pager.
    Pager,
    /// The option shows the program's output directly; with a value only if that is `never`.
    Unpaged,
    /// A state of the system changes.
    System,
    /// An archive is made or changed.
    Creates,
    /// An archive is unpacked.
    Extracts,
}

/// The way in which options are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// As getopt does: bundles, `--long`, also after operands.
    #[default]
    Usual,
    /// As getopt does, but the first operand ends the options.
    First,
    /// Long names after one dash.
    Single,
    /// There are none: every word is an operand.
    Plain,
}

/// A fact about a program as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// Changes nothing whatever its arguments are, so those need not be known.
    Safe,
    /// The program takes options such as `-3`.
    Number,
    /// The program takes arguments such as `+3`.
    Plus,
    /// Shows its output through a pager when that is a terminal.
    Pager,
    /// The first operand names a command that has an entry of its own.
    Commands,
    /// The program's options do not matter: its effects are bad enough without them.
    Loose,
    /// A word after one dash may also be one long option.
    LongSingle,
    /// `-` is its output also where a file to write is named.
    Dash,
    /// The program replaces the file that is there with its output, or changes the file itself: also a device.
    Replaces,
    /// A word such as `@file` stands for arguments in that file.
    Arguments,
}

/// An effect a program always has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEffect {
    Runs,
    Network,
    Repository,
    System,
    Secret,
    Settings,
    /// Writes in the working folder.
    Write,
    /// Deletes in the working folder.
    Delete,
}

/// The number of values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    None,
    One,
    /// Only joined to it.
    Joined,
    Two,
}

/// The description of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionSpec {
    /// The name without its dashes.
    pub(crate) name: &'static str,
    pub(crate) takes: OptionValue,
    pub(crate) value: Role,
    pub(crate) leads_to: Option<Consequence>,
}

/// The roles of the operands: some from the front, one that repeats, some from the back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operands {
    pub(crate) front: Vec<Role>,
    pub(crate) repeated: Option<Role>,
    pub(crate) back: Vec<Role>,
    /// Allowed words of a [`Role::Verb`].
    pub(crate) verbs: Vec<&'static str>,
}

/// All that is known of a program or command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramEntry {
    pub(crate) options: Vec<OptionSpec>,
    pub(crate) like: Vec<&'static str>,
    pub(crate) operands: Operands,
    pub(crate) text_by: Vec<&'static str>,
    pub(crate) default: Option<Role>,
    pub(crate) style: Style,
    pub(crate) traits: Vec<Trait>,
    pub(crate) does: Vec<ProgramEffect>,
    pub(crate) risk: Option<Risk>,
    pub(crate) by: Option<&'static str>,
}

impl ProgramEntry {
    /// Reads the lines of one entry; what is wrong in them is left out (a test says there is nothing).
    pub(crate) fn decode(block: &'static str) -> Self {
        let mut entry = Self::default();
        for line in entry_lines(block) {
            entry.take_line(line);
        }
        entry
    }

    pub(crate) fn has_trait(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    /// Adds the options of a shared set, and its operands when there are none.
    pub(crate) fn take_from(&mut self, shared: Self) {
        self.options.extend(shared.options);
        if self.operands == Operands::default() {
            self.operands = shared.operands;
        }
    }

    fn take_line(&mut self, line: &'static str) -> bool {
        let Some((key, rest)) = line.split_once(':') else { return false };
        let mut words = rest.split_whitespace();
        match key {
            "also" => true,
            "options" => words.all(|word| self.take_option(word)),
            "like" => extend_parsed(&mut self.like, words, Some),
            "text-by" => extend_parsed(&mut self.text_by, words, Some),
            "is" => extend_parsed(&mut self.traits, words, trait_of),
            "does" => extend_parsed(&mut self.does, words, does_of),
            "operands" => self.take_operands(words),
            "default" => store_value(&mut self.default, words.next().and_then(role_of)),
            "risk" => store_value(&mut self.risk, words.next().and_then(risk_of)),
            "by" => store_value(&mut self.by, words.next()),
            "style" => words.next().and_then(style_of).map(|style| self.style = style).is_some(),
            _ => false,
        }
    }

    fn take_option(&mut self, word: &'static str) -> bool {
        let end = word.find(['=', '!']).unwrap_or(word.len());
        let (Some(name), Some(rest)) = (word.get(..end), word.get(end..)) else { return false };
        let (value_text, consequence_text) = rest.split_once('!').unwrap_or((rest, ""));
        let Some((takes, value)) = value_of(value_text) else { return false };
        let leads_to = consequence_of(consequence_text);
        if leads_to.is_none() && !consequence_text.is_empty() {
            return false;
        }
        let mut add = |name| self.options.push(OptionSpec { name, takes, value, leads_to });
        if let Some(long) = name.strip_prefix("--") {
            add(long);
            return true;
        }
        let Some(short) = name.strip_prefix('-') else { return false };
        if self.style == Style::Single {
            add(short);
        } else {
            for (at, letter) in short.char_indices() {
                add(short.get(at..at + letter.len_utf8()).unwrap_or_default());
            }
        }
        true
    }

    fn take_operands(&mut self, words: impl Iterator<Item = &'static str>) -> bool {
        let operands = &mut self.operands;
        for word in words {
            if operands.front.contains(&Role::Verb) {
                operands.verbs.push(word);
                continue;
            }
            let Some(role) = role_of(word.trim_end_matches('*')) else { return false };
            match (word.ends_with('*'), operands.repeated) {
                (true, None) => operands.repeated = Some(role),
                (true, Some(_)) => return false,
                (false, None) => operands.front.push(role),
                (false, Some(_)) => operands.back.push(role),
            }
        }
        true
    }
}

/// Names of an entry: those in its first line and those of `also`.
pub(crate) fn entry_names(block: &'static str) -> impl Iterator<Item = &'static str> {
    let title = block.split_once(']').map_or("", |(title, _)| title);
    let also = entry_lines(block).filter_map(|line| line.strip_prefix("also:"));
    std::iter::once(title).chain(also.flat_map(|line| line.split('|'))).map(str::trim)
}

/// Lines of an entry that are not understood.
#[cfg(test)]
pub(crate) fn unreadable_lines(block: &'static str) -> Vec<&'static str> {
    let mut entry = ProgramEntry::default();
    entry_lines(block).filter(|line| !entry.take_line(line)).collect()
}

fn entry_lines(block: &'static str) -> impl Iterator<Item = &'static str> {
    block.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn extend_parsed<T>(
    into: &mut Vec<T>,
    words: impl Iterator<Item = &'static str>,
    read: impl Fn(&'static str) -> Option<T>,
) -> bool {
    let before = into.len();
    let mut count = 0;
    into.extend(words.inspect(|_| count += 1).filter_map(read));
    into.len() == before + count
}

fn store_value<T>(into: &mut Option<T>, value: Option<T>) -> bool {
    *into = value;
    into.is_some()
}

/// Decodes what stands after an option's name, such as `=?write`.
fn value_of(text: &'static str) -> Option<(OptionValue, Role)> {
    let Some(rest) = text.strip_prefix('=') else {
        return text.is_empty().then_some((OptionValue::None, Role::Text));
    };
    let (takes, role) = match rest.as_bytes().first() {
        Some(b'?') => (OptionValue::Joined, rest.get(1..)?),
        Some(b'=') => (OptionValue::Two, rest.get(1..)?),
        _ => (OptionValue::One, rest),
    };
    let role = if role.is_empty() { Role::Text } else { role_of(role)? };
    Some((takes, role))
}

fn role_of(word: &str) -> Option<Role> {
    Some(match word {
        "text" => Role::Text,
        "read" => Role::Read,
        "list" => Role::List,
        "look" => Role::Look,
        "names" => Role::Names,
        "path" => Role::Path,
        "revision" => Role::Revision,
        "write" => Role::Write,
        "delete" => Role::Delete,
        "folder" => Role::Folder,
        "repository" => Role::Repository,
        "url" => Role::Url,
        "remote" => Role::Remote,
        "run" => Role::Run,
        "command" => Role::Command,
        "verb" => Role::Verb,
        "plus" => Role::Plus,
        "glob" => Role::Glob,
        "archive" => Role::Archive,
        "nothing" => Role::Nothing,
        _ => return None,
    })
}

fn consequence_of(word: &str) -> Option<Consequence> {
    Some(match word {
        "writes" => Consequence::Writes,
        "deletes" => Consequence::Deletes,
        "changes" => Consequence::Changes,
        "destroys" => Consequence::Destroys,
        "nothing" => Consequence::Nothing,
        "rehearses" => Consequence::Rehearses,
        "lists" => Consequence::Lists,
        "pager" => Consequence::Pager,
        "unpaged" => Consequence::Unpaged,
        "system" => Consequence::System,
        "creates" => Consequence::Creates,
        "extracts" => Consequence::Extracts,
        _ => return None,
    })
}

fn style_of(word: &str) -> Option<Style> {
    Some(match word {
        "first" => Style::First,
        "single" => Style::Single,
        "plain" => Style::Plain,
        _ => return None,
    })
}

fn trait_of(word: &str) -> Option<Trait> {
    Some(match word {
        "safe" => Trait::Safe,
        "number" => Trait::Number,
        "plus" => Trait::Plus,
        "pager" => Trait::Pager,
        "commands" => Trait::Commands,
        "loose" => Trait::Loose,
        "long-single" => Trait::LongSingle,
        "dash" => Trait::Dash,
        "replaces" => Trait::Replaces,
        "arguments" => Trait::Arguments,
        _ => return None,
    })
}

fn does_of(word: &str) -> Option<ProgramEffect> {
    Some(match word {
        "runs" => ProgramEffect::Runs,
        "network" => ProgramEffect::Network,
        "repository" => ProgramEffect::Repository,
        "system" => ProgramEffect::System,
        "secret" => ProgramEffect::Secret,
        "settings" => ProgramEffect::Settings,
        "write" => ProgramEffect::Write,
        "delete" => ProgramEffect::Delete,
        _ => return None,
    })
}

fn risk_of(word: &str) -> Option<Risk> {
    Some(match word {
        "low" => Risk::Low,
        "medium" => Risk::Medium,
        "high" => Risk::High,
        "critical" => Risk::Critical,
        _ => return None,
    })
}

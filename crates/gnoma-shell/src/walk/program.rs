//! A program with its arguments: what its table entry says it does with them.

use super::call::ProgramCall;
use super::command_facts::{CommandFacts, is_nowhere};
use super::operand_places::{add_file_operand, add_searched_files, git_paths};
use super::{Walker, listing, obfuscation, special};
use crate::expand::{Field, Folders};
use crate::facts::{Effect, FilePlace, Risk};
use crate::programs::{
    self, Consequence, GivenOption, ProgramEffect, ProgramEntry, Role, SortedWords, Trait,
    sort_words,
};

/// Folders whose programs are those of the tables.
const PROGRAM_FOLDERS: [&str; 9] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/usr/games",
];

impl Walker<'_> {
    /// Runs a program or a builtin, whatever functions are named.
    pub(super) fn run_program(&mut self, fields: &[Field], from: usize) -> CommandFacts {
        let Some((first, words)) = fields.split_first() else { return CommandFacts::default() };
        let Field::Known(name) = first else {
            return CommandFacts::unknown_effect(format!(
                "`{first}`: which program runs is only known at run time"
            ))
            .with_risk(Risk::High);
        };
        if let Some(why) = obfuscation::in_program_name(name) {
            self.oddities.push(why);
        }
        let (name, is_file) = match name.rsplit_once('/') {
            Some((folder, name)) if PROGRAM_FOLDERS.contains(&folder) => (name, true),
            Some(_) => return CommandFacts::from_effect(Effect::Runs(name.clone())),
            None => (name.as_str(), false),
        };
        let name = name.strip_suffix(".exe").unwrap_or(name);
        if is_file {
            self.walk_in_subshell(|walker| walker.run_named(name, words, from))
        } else {
            self.run_named(name, words, from)
        }
    }

    fn run_named(&mut self, name: &str, words: &[Field], from: usize) -> CommandFacts {
        if let Some(facts) = self.walk_builtin(name, words, from) {
            return facts;
        }
        let known: Option<Vec<&str>> = words.iter().map(Field::known_text).collect();
        if known.is_some_and(|words| programs::only_prints(name, &words)) {
            return CommandFacts::default();
        }
        match programs::find_entry(name) {
            Some(entry) => self.apply_entry(name, &entry, words, from, self.state.folders.clone()),
            None if name.starts_with("mkfs.") => {
                CommandFacts::from_effect(Effect::System("formats a disk".to_owned()))
                    .with_risk(Risk::Critical)
            }
            None => CommandFacts::unknown_effect(format!("gnoma does not know what `{name}` does")),
        }
    }

    fn apply_entry(
        &mut self,
        title: &str,
        entry: &ProgramEntry,
        words: &[Field],
        from: usize,
        cwd: Folders,
    ) -> CommandFacts {
        if let Some((title, rest)) = longer_title(title, words)
            && let Some(entry) = programs::find_entry(&title)
        {
            return self.apply_entry(&title, &entry, rest, from, cwd);
        }
        let sorted = sort_words(entry, words);
        let cwd = working_folder(&sorted, cwd);
        let call = ProgramCall { title, entry, words, sorted: &sorted, cwd, from };
        let mut facts = match entry.by {
            _ if entry.has_trait(Trait::Commands) => self.command_of(&call),
            Some(by) => special::look_closer(self, by, &call),
            None => self.generic_facts(&call),
        };
        if sorted.options.iter().any(|given| given.role == Role::Folder) {
            facts.add_at_places(Effect::Look, call.cwd.current_places());
        }
        facts
    }

    /// A program whose first operand names what it shall do.
    fn command_of(&mut self, call: &ProgramCall<'_>) -> CommandFacts {
        let mut facts = self.option_facts(call);
        if call.entry.by == Some("git") {
            facts.merge_with(special::git::analyse_settings(call));
        }
        let Some(first) = call.sorted.operands.first() else {
            // By themselves some do their work: `yarn` and `bundle` install.
            self.add_fixed_effects(call, &mut facts);
            return facts;
        };
        let found = longer_title(call.title, &call.sorted.operands);
        let Some((title, entry, rest)) = found.and_then(|(title, rest)| {
            programs::find_entry(&title).map(|entry| (title, entry, rest))
        }) else {
            if call.entry.does.is_empty() {
                let name = format!("{} {first}", call.title);
                facts.add(Effect::Unknown(format!("gnoma does not know what `{name}` does")));
            }
            self.add_fixed_effects(call, &mut facts);
            return facts;
        };
        facts.merge_with(self.apply_entry(&title, &entry, rest, call.from, call.cwd.clone()));
        facts
    }

    /// Returns the effects that the table gives for the program, and no others.
    pub(super) fn generic_facts(&mut self, call: &ProgramCall<'_>) -> CommandFacts {
        let mut facts = self.option_facts(call);
        self.add_operand_effects(call, &mut facts);
        self.add_fixed_effects(call, &mut facts);
        facts
    }

    /// Effects a program has whatever its arguments are.
    pub(super) fn add_fixed_effects(&self, call: &ProgramCall<'_>, facts: &mut CommandFacts) {
        if call.sorted.leads_to(Consequence::Nothing) {
            return;
        }
        if call.sorted.leads_to(Consequence::Rehearses) {
            facts.add(Effect::Runs(format!("{} without changing anything", call.title)));
            return;
        }
        for does in &call.entry.does {
            let title = call.title.to_owned();
            match does {
                ProgramEffect::Runs => facts.add(Effect::Runs(title)),
                ProgramEffect::Network => facts.add(Effect::Network(None)),
                ProgramEffect::Repository => facts.add(Effect::Repository(title)),
                ProgramEffect::System => facts.add(Effect::System(title)),
                ProgramEffect::Secret => facts.add(Effect::Secret(title)),
                ProgramEffect::Settings => facts.add(Effect::Settings(title)),
                ProgramEffect::Write => {
                    facts.add_at_places(Effect::Write, call.cwd.current_places());
                }
                ProgramEffect::Delete => {
                    facts.add_at_places(Effect::Delete, call.cwd.current_places());
                }
            }
        }
        if let Some(risk) = call.entry.risk {
            facts.at_least(risk);
        }
        if call.entry.has_trait(Trait::Pager) && self.shown && !is_unpaged(call.sorted) {
            facts.add(Effect::Unknown(format!(
                "`{}` may show its output through a pager",
                call.title
            )));
        }
    }

    /// Returns the effects of the options.
    pub(super) fn option_facts(&mut self, call: &ProgramCall<'_>) -> CommandFacts {
        let mut facts = CommandFacts::default();
        if let Some(why) = call.sorted.strange.first() {
            facts.add(Effect::Unknown(format!("{}: {why}", call.title)));
        }
        for given in &call.sorted.options {
            for value in given.values.iter().filter(|value| value.may_be_many()) {
                self.apply_role(call, Role::Text, value, &mut facts);
            }
            if let Some(value) = given.values.last() {
                self.apply_role(call, given.role, value, &mut facts);
            }
            add_consequence(call, given, &mut facts);
        }
        facts
    }

    /// Adds the effects of the operands, by their roles.
    pub(super) fn add_operand_effects(&mut self, call: &ProgramCall<'_>, facts: &mut CommandFacts) {
        let operands = call.sorted.operands.as_slice();
        if operands.is_empty() {
            if let Some(role) = call.entry.default {
                self.apply_role(call, role, &Field::Known(".".to_owned()), facts);
            }
            return;
        }
        for (at, (role, operand)) in
            operand_roles(call, operands.len()).into_iter().zip(operands).enumerate()
        {
            match role {
                Some(Role::Command) => {
                    let rest = operands.get(at..).unwrap_or_default().to_vec();
                    self.walk_child_command(&rest);
                    return;
                }
                Some(Role::Verb) => {
                    let verbs = &call.entry.operands.verbs;
                    if !operand.known_text().is_some_and(|word| verbs.contains(&word)) {
                        facts.add(Effect::System(format!("{} {operand}", call.title)));
                    }
                    return;
                }
                Some(role) => {
                    self.apply_role(call, role, operand, facts);
                    // The words that it becomes may reach to where one is written.
                    let mut later = call.entry.operands.front.iter().skip(at + 1);
                    if operand.may_be_many() && later.any(|role| *role == Role::Write) {
                        self.apply_role(call, Role::Write, operand, facts);
                    }
                }
                None => facts.add(Effect::Unknown(format!(
                    "{}: gnoma does not know how it uses `{operand}`",
                    call.title
                ))),
            }
        }
    }

    /// A file that names others, which are read too.
    fn list_of_files(&mut self, call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
        self.apply_role(call, Role::Read, word, facts);
        let named = format!("the files that `{word}` names");
        facts.add(Effect::Read(FilePlace::Unknown(named)));
    }

    /// Adds the effects of a word in its role.
    pub(super) fn apply_role(
        &mut self,
        call: &ProgramCall<'_>,
        role: Role,
        word: &Field,
        facts: &mut CommandFacts,
    ) {
        let cwd = &call.cwd;
        if keeps_nothing(call, role, word) {
            return;
        }
        if matches!(role, Role::Read | Role::List) {
            read_otherwise(call, word, facts);
        }
        match role {
            // A pattern stays as it is where no file matches it; of the files that do, the first is the text.
            Role::Text if takes_files(call.entry) && matches!(word, Field::Pattern(_)) => {
                facts.add_at_places(Effect::Read, cwd.resolve_places(word));
            }
            // One word too many is one more file.
            Role::Text | Role::Verb if word.may_be_many() && takes_files(call.entry) => {
                facts.add(Effect::Read(FilePlace::Unknown(word.to_string())));
            }
            Role::Text | Role::Folder | Role::Command | Role::Verb => {}
            Role::Read | Role::List | Role::Archive => add_file_operand(call, word, facts),
            Role::Path | Role::Revision => self.read_git_paths(call, word, facts),
            Role::Glob => add_searched_files(call, word, facts),
            Role::Names => self.list_of_files(call, word, facts),
            Role::Write => facts.add_at_places(Effect::Write, cwd.resolve_places(word)),
            Role::Delete => facts.add_at_places(Effect::Delete, deleted_places(cwd, word)),
            Role::Repository => look_into_repository(call, word, facts),
            Role::Look => facts.add_looks(cwd, word),
            Role::Remote if is_local_path(word) => {
                facts.add_at_places(Effect::Write, cwd.resolve_places(word));
            }
            Role::Url | Role::Remote => self.add_address(word, facts),
            Role::Run => facts.add(Effect::Runs(word.to_string())),
            Role::Plus if word.known_start().starts_with('+') => {}
            Role::Plus => facts.add(Effect::System(format!("{} {word}", call.title))),
            Role::Nothing => facts.add(Effect::Unknown(format!(
                "{}: gnoma does not know what `{word}` does",
                call.title
            ))),
        }
    }

    /// Adds that git reads the paths in a word.
    fn read_git_paths(&mut self, call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
        for path in git_paths(word) {
            self.apply_role(call, Role::Read, &path, facts);
        }
    }

    /// Adds that a program talks to an address.
    fn add_address(&mut self, word: &Field, facts: &mut CommandFacts) {
        self.oddities.extend(obfuscation::in_address(word.known_start()));
        facts.add(Effect::Network(obfuscation::parse_host(word.known_start())));
    }
}

/// The places of what a word deletes; of files that `find` chooses by name, all places where they may lie.
fn deleted_places(cwd: &Folders, word: &Field) -> Vec<FilePlace> {
    match word {
        Field::Listed { places, exact: true, .. } if listing::are_named(places) => places.to_vec(),
        _ => cwd.resolve_places(word),
    }
}

/// True if git takes a word for a folder on this machine instead of an address or the name of a remote.
fn is_local_path(word: &Field) -> bool {
    let text = word.known_start();
    let is_address = text.split('/').next().is_some_and(|start| start.contains(':'));
    !is_address && (text.contains('/') || matches!(text, "." | ".."))
}

/// Adds that a program looks into a repository, whose settings may run others.
fn look_into_repository(call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
    facts.add(Effect::Unknown(format!("the settings of `{word}` may run programs")));
    facts.add_looks(&call.cwd, word);
}

/// True if a program reads the files that are named in its arguments.
fn takes_files(entry: &ProgramEntry) -> bool {
    let operands = &entry.operands;
    let roles = operands.front.iter().chain(&operands.repeated).chain(&operands.back);
    let mut all = roles.copied().chain(entry.options.iter().map(|option| option.value));
    all.any(|role| matches!(role, Role::Read | Role::List))
}

/// Some programs take `@file` for a file with arguments, and an address for a file.
fn read_otherwise(call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
    if let Some(file) = word.strip_prefix("@") {
        facts.add_at_places(Effect::Read, call.cwd.resolve_places(&file));
    }
    if call.entry.has_trait(Trait::Arguments) && word.known_start().starts_with('@') {
        facts.add(Effect::Unknown(format!("{}: `{word}` may be any option", call.title)));
    }
    if word.known_start().contains("://") {
        facts.add(Effect::Network(obfuscation::parse_host(word.known_start())));
    }
}

/// True if an option turns the pager off.
fn is_unpaged(sorted: &SortedWords) -> bool {
    sorted.options.iter().any(|given| {
        given.leads_to == Some(Consequence::Unpaged)
            && given.values.iter().all(|value| value.known_text() == Some("never"))
    })
}

/// Adds the consequence of an option, in addition to its value.
fn add_consequence(call: &ProgramCall<'_>, given: &GivenOption, facts: &mut CommandFacts) {
    let title = format!("{} {}", call.title, given.name);
    match given.leads_to {
        Some(Consequence::Changes) => facts.add(Effect::Repository(title)),
        Some(Consequence::Destroys) => {
            facts.add(Effect::Repository(title));
            facts.at_least(Risk::High);
        }
        Some(Consequence::Pager) => facts.add(Effect::Unknown(format!("{title} runs a pager"))),
        Some(Consequence::System) => facts.add(Effect::System(title)),
        Some(
            Consequence::Writes
            | Consequence::Deletes
            | Consequence::Nothing
            | Consequence::Rehearses
            | Consequence::Unpaged
            | Consequence::Lists
            | Consequence::Creates
            | Consequence::Extracts,
        )
        | None => {}
    }
}

/// The role of each of `count` operands; `None` for one too many.
fn operand_roles(call: &ProgramCall<'_>, count: usize) -> Vec<Option<Role>> {
    let operands = &call.entry.operands;
    let no_text = call.sorted.has_option(&call.entry.text_by);
    let front = match operands.front.split_first() {
        Some((Role::Text, rest)) if no_text => rest,
        _ => operands.front.as_slice(),
    };
    let back = operands.back.len().min(count);
    let middle_end = count - back;
    (0..count)
        .map(|at| {
            if at >= middle_end && operands.repeated.is_some() {
                operands.back.get(at - middle_end).copied()
            } else if let Some(role) = front.get(at) {
                Some(*role)
            } else {
                operands.repeated
            }
        })
        .collect()
}

/// `program word word` or `program word`, where that has an entry, and the words after it.
fn longer_title<'w>(title: &str, words: &'w [Field]) -> Option<(String, &'w [Field])> {
    let first = words.first()?.known_text()?;
    let one = format!("{title} {first}");
    if let Some(second) = words.get(1).and_then(Field::known_text) {
        let two = format!("{one} {second}");
        if programs::is_known(&two) {
            return Some((two, words.get(2..)?));
        }
    }
    programs::is_known(&one).then_some((one, words.get(1..)?))
}

/// The folder a program works in after options such as `-C`.
fn working_folder(sorted: &SortedWords, cwd: Folders) -> Folders {
    let folders = sorted.options.iter().filter(|given| given.role == Role::Folder);
    folders
        .filter_map(|given| given.values.last())
        .fold(cwd, |cwd, folder| cwd.enter_folder(folder))
}

/// True if a word is like `/dev/null`, in a role where that has no effect. For most programs that write, `-` is a
/// file.
fn keeps_nothing(call: &ProgramCall<'_>, role: Role, word: &Field) -> bool {
    let Some(text) = word.known_text().filter(|text| is_nowhere(text)) else { return false };
    let changes = [Consequence::Writes, Consequence::Deletes];
    match role {
        Role::Write if text == "-" => call.entry.has_trait(Trait::Dash),
        Role::Write => !call.entry.has_trait(Trait::Replaces),
        Role::Read | Role::List | Role::Path | Role::Archive | Role::Revision => {
            !changes.into_iter().any(|change| call.sorted.leads_to(change))
        }
        Role::Text | Role::Folder | Role::Look | Role::Command | Role::Verb => true,
        Role::Names
        | Role::Glob
        | Role::Delete
        | Role::Repository
        | Role::Url
        | Role::Remote
        | Role::Run
        | Role::Plus
        | Role::Nothing => false,
    }
}

/// A word as it could be written in a command.
pub(super) fn quote_field(field: &Field) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,@%+{}*?[]~".contains(c);
    match field {
        Field::Known(text) if text.is_empty() || !text.chars().all(is_plain) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => field.to_string(),
    }
}

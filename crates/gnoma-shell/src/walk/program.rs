//! A program with its arguments: what its table entry says it does with them.

use super::call::ProgramCall;
use super::facts_of::{CommandFacts, is_nowhere};
use super::{Walker, odd, special};
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

/// Programs that search what they are named, as they do below a folder.
const SEARCHING: [&str; 6] = ["grep", "egrep", "fgrep", "rg", "ag", "ugrep"];

/// Programs that tell figures and names of files, and nothing of what is in them.
const MEASURING: [&str; 10] =
    ["wc", "ls", "stat", "du", "file", "md5sum", "sha1sum", "sha256sum", "cksum", "basename"];

impl Walker<'_> {
    /// Runs a program or a builtin, whatever functions are named.
    pub(super) fn run_program(&mut self, fields: &[Field], from: usize) -> CommandFacts {
        let Some((first, words)) = fields.split_first() else { return CommandFacts::default() };
        let Field::Known(name) = first else {
            return CommandFacts::unknown(format!(
                "`{first}`: which program runs is only known at run time"
            ))
            .with_risk(Risk::High);
        };
        if let Some(why) = odd::in_program_name(name) {
            self.oddities.push(why);
        }
        let (name, is_file) = match name.rsplit_once('/') {
            Some((folder, name)) if PROGRAM_FOLDERS.contains(&folder) => (name, true),
            Some(_) => return CommandFacts::of(Effect::Runs(name.clone())),
            None => (name.as_str(), false),
        };
        let name = name.strip_suffix(".exe").unwrap_or(name);
        if is_file {
            self.apart(|walker| walker.named(name, words, from))
        } else {
            self.named(name, words, from)
        }
    }

    fn named(&mut self, name: &str, words: &[Field], from: usize) -> CommandFacts {
        if let Some(facts) = self.builtin(name, words, from) {
            return facts;
        }
        let known: Option<Vec<&str>> = words.iter().map(Field::known).collect();
        if known.is_some_and(|words| programs::only_prints(name, &words)) {
            return CommandFacts::default();
        }
        match programs::find(name) {
            Some(entry) => self.apply(name, &entry, words, from, self.state.folders.clone()),
            None if name.starts_with("mkfs.") => {
                CommandFacts::of(Effect::System("formats a disk".to_owned()))
                    .with_risk(Risk::Critical)
            }
            None => CommandFacts::unknown(format!("gnoma does not know what `{name}` does")),
        }
    }

    fn apply(
        &mut self,
        title: &str,
        entry: &ProgramEntry,
        words: &[Field],
        from: usize,
        cwd: Folders,
    ) -> CommandFacts {
        if let Some((title, rest)) = longer_title(title, words)
            && let Some(entry) = programs::find(&title)
        {
            return self.apply(&title, &entry, rest, from, cwd);
        }
        let sorted = sort_words(entry, words);
        let cwd = working_folder(&sorted, cwd);
        let call = ProgramCall { title, entry, words, sorted: &sorted, cwd, from };
        if entry.is(Trait::Commands) {
            return self.command_of(&call);
        }
        match entry.by {
            Some(by) => special::look_closer(self, by, &call),
            None => self.generic(&call),
        }
    }

    /// A program whose first operand names what it shall do.
    fn command_of(&mut self, call: &ProgramCall<'_>) -> CommandFacts {
        let mut facts = self.options(call);
        if call.entry.by == Some("git") {
            facts.join(special::git::options(call));
        }
        let Some(first) = call.sorted.operands.first() else {
            // By themselves some do their work: `yarn` and `bundle` install.
            self.always(call, &mut facts);
            return facts;
        };
        let found = longer_title(call.title, &call.sorted.operands);
        let Some((title, entry, rest)) = found
            .and_then(|(title, rest)| programs::find(&title).map(|entry| (title, entry, rest)))
        else {
            if call.entry.does.is_empty() {
                let name = format!("{} {first}", call.title);
                facts.add(Effect::Unknown(format!("gnoma does not know what `{name}` does")));
            }
            self.always(call, &mut facts);
            return facts;
        };
        facts.join(self.apply(&title, &entry, rest, call.from, call.cwd.clone()));
        facts
    }

    /// Returns the effects that the table gives for the program, and no others.
    pub(super) fn generic(&mut self, call: &ProgramCall<'_>) -> CommandFacts {
        let mut facts = self.options(call);
        self.operands(call, &mut facts);
        self.always(call, &mut facts);
        facts
    }

    /// Effects a program has whatever its arguments are.
    pub(super) fn always(&self, call: &ProgramCall<'_>, facts: &mut CommandFacts) {
        if call.sorted.leads_to(Consequence::Nothing) {
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
                ProgramEffect::Write => facts.at(Effect::Write, call.cwd.here()),
                ProgramEffect::Delete => facts.at(Effect::Delete, call.cwd.here()),
            }
        }
        if let Some(risk) = call.entry.risk {
            facts.at_least(risk);
        }
        if call.entry.is(Trait::Pager) && self.shown && !is_unpaged(call.sorted) {
            facts.add(Effect::Unknown(format!(
                "`{}` may show its output through a pager",
                call.title
            )));
        }
    }

    /// Returns the effects of the options.
    pub(super) fn options(&mut self, call: &ProgramCall<'_>) -> CommandFacts {
        let mut facts = CommandFacts::default();
        if let Some(why) = call.sorted.strange.first() {
            facts.add(Effect::Unknown(format!("{}: {why}", call.title)));
        }
        for given in &call.sorted.options {
            for value in given.values.iter().filter(|value| value.may_be_many()) {
                self.act(call, Role::Text, value, &mut facts);
            }
            if let Some(value) = given.values.last() {
                self.act(call, given.role, value, &mut facts);
            }
            lead(call, given, &mut facts);
        }
        facts
    }

    /// Adds the effects of the operands, by their roles.
    pub(super) fn operands(&mut self, call: &ProgramCall<'_>, facts: &mut CommandFacts) {
        let operands = call.sorted.operands.as_slice();
        if operands.is_empty() {
            if let Some(role) = call.entry.default {
                self.act(call, role, &Field::Known(".".to_owned()), facts);
            }
            return;
        }
        for (at, (role, operand)) in
            roles(call, operands.len()).into_iter().zip(operands).enumerate()
        {
            match role {
                Some(Role::Command) => {
                    let rest = operands.get(at..).unwrap_or_default().to_vec();
                    self.started(&rest);
                    return;
                }
                Some(Role::Verb) => {
                    let verbs = &call.entry.operands.verbs;
                    if !operand.known().is_some_and(|word| verbs.contains(&word)) {
                        facts.add(Effect::System(format!("{} {operand}", call.title)));
                    }
                    return;
                }
                Some(role) => {
                    self.act(call, role, operand, facts);
                    // The words that it becomes may reach to where one is written.
                    let mut later = call.entry.operands.front.iter().skip(at + 1);
                    if operand.may_be_many() && later.any(|role| *role == Role::Write) {
                        self.act(call, Role::Write, operand, facts);
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
        self.act(call, Role::Read, word, facts);
        let named = format!("the files that `{word}` names");
        facts.add(Effect::Read(FilePlace::Unknown(named)));
    }

    /// Adds the effects of a word in its role.
    pub(super) fn act(
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
                facts.at(Effect::Read, cwd.places(word));
            }
            // One word too many is one more file.
            Role::Text | Role::Verb if word.may_be_many() && takes_files(call.entry) => {
                facts.add(Effect::Read(FilePlace::Unknown(word.to_string())));
            }
            Role::Text | Role::Folder | Role::Command | Role::Verb => {}
            Role::Read | Role::List | Role::Archive => file_operand(call, word, facts),
            Role::Path | Role::Revision => {
                for path in paths_of_git(word) {
                    self.act(call, Role::Read, &path, facts);
                }
            }
            Role::Glob => searched(call, word, facts),
            Role::Names => self.list_of_files(call, word, facts),
            Role::Write => facts.at(Effect::Write, cwd.places(word)),
            Role::Delete => facts.at(Effect::Delete, cwd.places(word)),
            Role::Repository => {
                facts.add(Effect::Unknown(format!("the settings of `{word}` may run programs")));
            }
            Role::Url => {
                self.oddities.extend(odd::in_address(word.start()));
                facts.add(Effect::Network(odd::host(word.start())));
            }
            Role::Run => facts.add(Effect::Runs(word.to_string())),
            Role::Plus if word.start().starts_with('+') => {}
            Role::Plus => facts.add(Effect::System(format!("{} {word}", call.title))),
            Role::Nothing => facts.add(Effect::Unknown(format!(
                "{}: gnoma does not know what `{word}` does",
                call.title
            ))),
        }
    }
}

/// A file that is read, unless an option has it written or deleted.
fn file_operand(call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
    if call.sorted.leads_to(Consequence::Writes) {
        facts.at(Effect::Write, call.cwd.places(word));
    } else if call.sorted.leads_to(Consequence::Deletes) {
        facts.at(Effect::Delete, call.cwd.places(word));
    } else {
        facts.at(Effect::Read, places(call, word));
    }
}

/// Returns the places that a word points to, for a word that is read. Names of a listing are split at blanks,
/// unless they are exact, and may so become any path: then only programs that show no contents may have them.
/// Programs that show whole files show secrets, too, among everything below a folder.
fn places(call: &ProgramCall<'_>, word: &Field) -> Vec<FilePlace> {
    let Field::Listed { places, exact, .. } = word else { return call.cwd.places(word) };
    let searches = SEARCHING.contains(&call.title);
    let narrow = |place: &FilePlace| match place {
        FilePlace::Pattern { pattern, .. } => !pattern.ends_with("/**"),
        FilePlace::Path(_) | FilePlace::Unknown(_) => true,
    };
    if MEASURING.contains(&call.title) || *exact && (searches || places.iter().all(narrow)) {
        return places.to_vec();
    }
    call.cwd.places(word)
}

/// Files that fit a pattern, wherever below the working folder they are.
fn searched(call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
    let Some(pattern) = word.known().filter(|text| !text.starts_with('!')) else {
        if word.known().is_none() {
            facts.add(Effect::Read(FilePlace::Unknown(word.to_string())));
        }
        return;
    };
    let anywhere = |name: &str| Field::Pattern(format!("**/{}", name.trim_start_matches('/')));
    match alternatives(pattern) {
        Some(names) => {
            for name in names {
                facts.at(Effect::Read, call.cwd.places(&anywhere(&name)));
            }
        }
        None => facts.add(Effect::Read(FilePlace::Unknown(pattern.to_owned()))),
    }
}

/// `*.{ts,tsx}` as patterns without braces; `None` when there are many or braces within braces.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    const MOST: usize = 32;
    let mut all = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').filter(|(inside, _)| !inside.contains('{'))?;
        let joined = |start: &String| {
            let start = format!("{start}{before}");
            inside.split(',').map(move |one| format!("{start}{one}")).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(joined).take(MOST + 1).collect();
        rest = after;
    }
    for one in &mut all {
        one.push_str(rest);
    }
    (all.len() <= MOST).then_some(all)
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
        facts.at(Effect::Read, call.cwd.places(&file));
    }
    if call.entry.is(Trait::Arguments) && word.start().starts_with('@') {
        facts.add(Effect::Unknown(format!("{}: `{word}` may be any option", call.title)));
    }
    if word.start().contains("://") {
        facts.add(Effect::Network(odd::host(word.start())));
    }
}

/// True if an option turns the pager off.
fn is_unpaged(sorted: &SortedWords) -> bool {
    sorted.options.iter().any(|given| {
        given.leads_to == Some(Consequence::Unpaged)
            && given.values.iter().all(|value| value.known() == Some("never"))
    })
}

/// Adds the consequence of an option, in addition to its value.
fn lead(call: &ProgramCall<'_>, given: &GivenOption, facts: &mut CommandFacts) {
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
            | Consequence::Unpaged
            | Consequence::Lists
            | Consequence::Creates
            | Consequence::Extracts,
        )
        | None => {}
    }
}

/// The role of each of `count` operands; `None` for one too many.
fn roles(call: &ProgramCall<'_>, count: usize) -> Vec<Option<Role>> {
    let operands = &call.entry.operands;
    let no_text = call.sorted.has(&call.entry.text_by);
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
    let first = words.first()?.known()?;
    let one = format!("{title} {first}");
    if let Some(second) = words.get(1).and_then(Field::known) {
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
    folders.filter_map(|given| given.values.last()).fold(cwd, |cwd, folder| cwd.enter(folder))
}

/// The paths that a word may be to git: itself, or those of `HEAD:path`, `:0:path` and `:(top)path`.
fn paths_of_git(word: &Field) -> Vec<Field> {
    let Some(text) = word.known() else { return vec![word.clone()] };
    if text.starts_with(":!") || text.starts_with(":^") {
        return Vec::new();
    }
    let of_pathspec = text.strip_prefix(":(").and_then(|rest| rest.split_once(')'));
    let paths: Vec<&str> = match of_pathspec {
        Some((_, path)) => vec![path],
        None if text.contains(':') => text
            .match_indices(':')
            .filter_map(|(at, _)| text.get(at + 1..))
            .map(|path| path.trim_start_matches('/'))
            .collect(),
        None => vec![text],
    };
    let paths = paths.into_iter().filter(|path| !path.is_empty()).map(str::to_owned);
    let is_pattern = |path: &String| path.contains(['*', '?', '[']);
    paths
        .map(|path| if is_pattern(&path) { Field::Pattern(path) } else { Field::Known(path) })
        .collect()
}

/// True if a word is like `/dev/null`, in a role where that has no effect. For most programs that write, `-` is a
/// file.
fn keeps_nothing(call: &ProgramCall<'_>, role: Role, word: &Field) -> bool {
    let Some(text) = word.known().filter(|text| is_nowhere(text)) else { return false };
    let changes = [Consequence::Writes, Consequence::Deletes];
    match role {
        Role::Write if text == "-" => call.entry.is(Trait::Dash),
        Role::Write => !call.entry.is(Trait::Replaces),
        Role::Read | Role::List | Role::Path | Role::Archive | Role::Revision => {
            !changes.into_iter().any(|change| call.sorted.leads_to(change))
        }
        Role::Text | Role::Folder | Role::Command | Role::Verb => true,
        Role::Names
        | Role::Glob
        | Role::Delete
        | Role::Repository
        | Role::Url
        | Role::Run
        | Role::Plus
        | Role::Nothing => false,
    }
}

/// A word as it could be written in a command.
pub(super) fn quote(field: &Field) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,@%+{}*?[]~".contains(c);
    match field {
        Field::Known(text) if text.is_empty() || !text.chars().all(is_plain) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        _ => field.to_string(),
    }
}

//! `gnoma completions`: command lines that a shell completes.
//!
//! A shell loads a short script, which asks `gnoma completions SHELL -- WORDS` at each Tab. The answer comes from the
//! command line's own definition, and from the project where a task is named.

use anyhow::Result;
use clap::{Arg, Command, CommandFactory as _};
use gnoma_host::tasks::Tasks;

use super::common::{open_project_without_keys, print_safe_text};
use crate::{
    args::{Args, CompletionShell, TurnArgs},
    environment::ProcessEnvironment,
    launch_request,
    report::Exit,
};

/// Words come from files of projects, so they are quoted, and never expanded as `compgen -W` does.
const BASH: &str = r#"_gnoma() {
    local word quoted
    COMPREPLY=()
    while IFS= read -r word; do
        printf -v quoted %q "$word"
        COMPREPLY+=("$quoted")
    done < <("$1" completions bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _gnoma -o bashdefault -o default gnoma
"#;

/// `(@f)` splits at the ends of lines. The last lines serve a file that is loaded by its name as well as `source`.
const ZSH: &str = r#"#compdef gnoma
_gnoma() {
    local -a found
    found=("${(@f)$("${words[1]}" completions zsh -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n ${found[1]} ]]; then
        _describe gnoma found
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_gnoma" ]; then
    _gnoma "$@"
else
    compdef _gnoma gnoma
fi
"#;

const FISH: &str = r"function __gnoma_words
    set -l words (commandline -opc) (commandline -ct)
    $words[1] completions fish -- $words[2..-1] 2>/dev/null
end
complete -c gnoma -a '(__gnoma_words)'
";

const ELVISH: &str = r"set edit:completion:arg-completer[gnoma] = {|@words|
    (external $words[0]) completions elvish -- (all $words[1..]) 2>/dev/null
}
";

const POWERSHELL: &str = r#"Register-ArgumentCompleter -Native -CommandName gnoma -ScriptBlock {
    param($word, $line, $position)
    $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if ($word -eq '') { $words += '' }
    & $line.CommandElements[0].ToString() completions powershell -- $words 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_)
    }
}
"#;

/// Commands of `gnoma task` that take the name of a task.
const TASK_COMMANDS: &[&str] =
    &["run", "show", "edit", "delete", "history", "resume", "schedule", "repair"];

/// Prints the script of a shell, or what can stand in place of the last of `words`.
pub(super) fn run(
    shell: CompletionShell,
    words: &[String],
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let Some((current, before)) = words.split_last() else {
        return print_safe_text(script(shell));
    };
    let mut root = Args::command();
    root.build();
    let line = CommandLine::read(&root, before);
    let mut found = line.candidates(current);
    if let Some(named) = line.task_words() {
        let project = open_project_without_keys(launch_request::spec_from_args(args, around))?;
        let next = Tasks::find(&project).next_words(named);
        let next = next.into_iter().filter(|word| word.starts_with(&**current));
        found.extend(next.map(|word| Candidate { word, about: String::new() }));
    }
    let lines = found.iter().filter(|candidate| !candidate.word.contains('\n'));
    print_safe_text(&lines.map(|candidate| candidate.to_line(shell)).collect::<String>())
}

const fn script(shell: CompletionShell) -> &'static str {
    match shell {
        CompletionShell::Bash => BASH,
        CompletionShell::Elvish => ELVISH,
        CompletionShell::Fish => FISH,
        CompletionShell::Powershell => POWERSHELL,
        CompletionShell::Zsh => ZSH,
    }
}

/// Returns a word as PowerShell puts it into a line: it quotes nothing itself.
fn quote_for_powershell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // All of these end a quoted word; two of them are one within it.
    let count = |c: char| if matches!(c, '\'' | '‘' | '’' | '‚' | '‛') { 2 } else { 1 };
    let inner: String = word.chars().flat_map(|c| std::iter::repeat_n(c, count(c))).collect();
    format!("'{inner}'")
}

/// A word that can stand in a command line.
struct Candidate {
    word: String,
    /// The first line of its help.
    about: String,
}

impl Candidate {
    fn to_line(&self, shell: CompletionShell) -> String {
        match shell {
            CompletionShell::Zsh => {
                format!("{}:{}\n", self.word.replace('\\', r"\\").replace(':', r"\:"), self.about)
            }
            CompletionShell::Fish => format!("{}\t{}\n", self.word, self.about),
            CompletionShell::Powershell => format!("{}\n", quote_for_powershell(&self.word)),
            CompletionShell::Bash | CompletionShell::Elvish => format!("{}\n", self.word),
        }
    }
}

/// The part of a command line in front of the word that is completed.
struct CommandLine<'c> {
    command: &'c Command,
    /// The name of the command that `command` belongs to.
    parent: &'c str,
    /// The option whose value comes next.
    option: Option<&'c Arg>,
    arguments: Vec<String>,
    /// After `--` no word is an option.
    has_dashes: bool,
}

impl<'c> CommandLine<'c> {
    fn read(root: &'c Command, words: &[String]) -> Self {
        let arguments = Vec::new();
        let mut line =
            Self { command: root, parent: "", option: None, arguments, has_dashes: false };
        words.iter().for_each(|word| line.pass_word(word));
        line
    }

    fn pass_word(&mut self, word: &str) {
        // Bash hands `--name=value` over as three words.
        if word == "=" || self.option.take().is_some() {
            return;
        }
        if self.has_dashes || !word.starts_with('-') || word == "-" {
            self.pass_argument(word);
        } else if word == "--" {
            self.has_dashes = true;
        } else if !word.contains('=') {
            self.option = self.find_option(word).filter(|option| takes_value(option));
        }
    }

    fn pass_argument(&mut self, word: &str) {
        if self.arguments.is_empty()
            && let Some(command) = self.command.find_subcommand(word)
        {
            self.parent = self.command.get_name();
            self.command = command;
        } else {
            self.arguments.push(word.to_owned());
        }
    }

    /// Of letters that stand together, such as `-cm`, the last can have a value.
    fn find_option(&self, word: &str) -> Option<&'c Arg> {
        let is_it = |option: &&Arg| match word.strip_prefix("--") {
            Some(long) => {
                option.get_long() == Some(long)
                    || option.get_all_aliases().is_some_and(|names| names.contains(&long))
            }
            None => option.get_short() == word.chars().last(),
        };
        self.command.get_arguments().find(is_it)
    }

    fn candidates(&self, current: &str) -> Vec<Candidate> {
        if let Some(option) = self.option {
            return values(option, "", current.trim_start_matches('='));
        }
        if self.has_dashes || !current.starts_with('-') {
            return self.argument_candidates(current);
        }
        if let Some((name, value)) = current.split_once('=') {
            let option = self.find_option(name).filter(|option| takes_value(option));
            return option
                .map_or_else(Vec::new, |option| values(option, &format!("{name}="), value));
        }
        let options = self.command.get_arguments().filter(|option| !option.is_hide_set());
        let long = options.filter_map(|option| {
            let word = format!("--{}", option.get_long()?);
            word.starts_with(current)
                .then(|| Candidate { word, about: first_line(option.get_help()) })
        });
        long.collect()
    }

    /// Returns commands, and the values of the next argument. Neither: the shell completes names of files.
    fn argument_candidates(&self, current: &str) -> Vec<Candidate> {
        let mut found = Vec::new();
        if self.arguments.is_empty() && !self.has_dashes {
            let commands = self.command.get_subcommands().filter(|sub| !sub.is_hide_set());
            found.extend(commands.filter(|sub| sub.get_name().starts_with(current)).map(|sub| {
                Candidate { word: sub.get_name().to_owned(), about: first_line(sub.get_about()) }
            }));
        }
        if let Some(argument) = self.command.get_positionals().nth(self.arguments.len()) {
            found.extend(values(argument, "", current));
        }
        found
    }

    /// Returns the words behind a command that takes the name of a task, if more can follow.
    fn task_words(&self) -> Option<&[String]> {
        let name = self.command.get_name();
        let takes_task = self.parent == "task" && TASK_COMMANDS.contains(&name);
        // Only a run and a schedule take more than the name.
        let is_over = !matches!(name, "run" | "schedule") && !self.arguments.is_empty();
        (takes_task && !is_over && self.option.is_none()).then_some(&*self.arguments)
    }
}

fn takes_value(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|count| count.min_values() > 0)
}

/// Returns the values that an argument can have, if there is a list of them.
fn values(argument: &Arg, prefix: &str, current: &str) -> Vec<Candidate> {
    let known = argument.get_possible_values();
    let known = known.iter().filter(|value| !value.is_hide_set());
    known
        .filter(|value| value.get_name().starts_with(current))
        .map(|value| Candidate {
            word: format!("{prefix}{}", value.get_name()),
            about: first_line(value.get_help()),
        })
        .collect()
}

fn first_line(help: Option<&clap::builder::StyledStr>) -> String {
    let help = help.map(ToString::to_string).unwrap_or_default();
    help.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let (current, before) = words.split_last().unwrap();
        let mut root = Args::command();
        root.build();
        let found = CommandLine::read(&root, before).candidates(current);
        found.into_iter().map(|found| found.word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands_options_and_values_are_completed() {
        for (line, expected) in [
            ("sess", "sessions"),
            ("sessions li", "list"),
            ("--permission acc", "accept_edits"),
            ("--permission = acc", "accept_edits"),
            ("--permission =", "default accept_edits auto plan deny bypass"),
            ("--permission=pl", "--permission=plan"),
            ("usage --permission plan --csv --js", "--json"),
            ("completions z", "zsh"),
            ("-c --incog", "--incognito"),
            ("fix the te", ""),
            ("-- sess", ""),
            ("completions zsh ", ""),
        ] {
            assert_eq!(complete(line), expected, "{line}");
        }
        assert!(complete("").split(' ').any(|word| word == "task"));
    }

    #[test]
    fn words_of_tasks_follow_commands_that_name_one() {
        let mut root = Args::command();
        root.build();
        for (line, expected) in [
            ("task run", Some(0)),
            ("task run --dry-run release v1", Some(2)),
            ("task rm", Some(0)),
            ("task show release", None),
            ("task list", None),
            ("sessions list", None),
            ("task schedule --every", None),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let line = CommandLine::read(&root, &words);
            assert_eq!(line.task_words().map(<[String]>::len), expected, "{words:?}");
        }
    }

    #[test]
    fn zsh_and_fish_get_descriptions() {
        let candidate = Candidate { word: "a:b".to_owned(), about: "Both.".to_owned() };
        assert_eq!(candidate.to_line(CompletionShell::Zsh), "a\\:b:Both.\n");
        assert_eq!(candidate.to_line(CompletionShell::Fish), "a:b\tBoth.\n");
        assert_eq!(candidate.to_line(CompletionShell::Bash), "a:b\n");
    }

    #[test]
    fn powershell_completion_words_are_quoted() {
        for (word, expected) in [
            ("--permission=plan", "--permission=plan"),
            ("a; rm b", "'a; rm b'"),
            ("$(rm b)", "'$(rm b)'"),
            ("it's", "'it''s'"),
            ("a’; rm b", "'a’’; rm b'"),
        ] {
            assert_eq!(quote_for_powershell(word), expected);
        }
    }
}

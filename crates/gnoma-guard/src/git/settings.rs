//! Git settings by which a looking command runs a program (`core.fsmonitor`, `diff.external`, filters).
//!
//! Format: <https://git-scm.com/docs/git-config#_configuration_file>.

/// The harmless values of a filter's settings: the commands of git LFS, or no command at all.
const LFS: [&str; 6] = [
    "git-lfs clean -- %f",
    "git-lfs smudge -- %f",
    "git-lfs smudge --skip -- %f",
    "git-lfs filter-process",
    "git-lfs filter-process --skip",
    "",
];

/// Settings that name a program which looking runs: section, whether it has a name of its own, variables.
const PROGRAMS: [(&str, &[&str]); 17] = [
    ("core", &["fsmonitor", "alternaterefscommand"]),
    ("diff", &["external", "command", "textconv"]),
    ("filter", &["clean", "smudge", "process"]),
    ("merge", &["driver"]),
    ("gpg", &["program", "defaultkeycommand"]),
    ("hook", &["command"]),
    ("man", &["viewer", "cmd", "path"]),
    ("browser", &["cmd", "path"]),
    ("help", &["browser", "format", "autocorrect"]),
    ("web", &["browser"]),
    ("remote", &["uploadpack", "vcs"]),
    // `git archive` compresses with it.
    ("tar", &["command"]),
    ("protocol", &["allow"]),
    ("include", &["path"]),
    ("includeif", &["path"]),
    // Commands of git that are not part of it, or of which a later git no longer says so.
    ("alias", &["lfs", "flow", "svn", "p4", "gui", "whatchanged", "pack-redundant"]),
    ("lfs", &["clean", "smudge", "path"]),
];

/// Programs that fetch, where what is missing is fetched by looking.
const FETCHING: [(&str, &str); 3] =
    [("core", "sshcommand"), ("core", "gitproxy"), ("core", "askpass")];

/// One setting of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GitSetting {
    /// Section and variable in lower case, with the name between them as it is: `filter.x.clean`.
    name: String,
    /// The value of the setting; `true` where none is written.
    value: String,
}

impl GitSetting {
    fn section_name(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    fn variable_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    fn runs_program(&self, fetches: bool) -> bool {
        let (section, variable) = (self.section_name(), self.variable_name());
        let is_named = |(known, variables): &(&str, &[&str])| {
            *known == section && variables.contains(&variable)
        };
        let fetching = fetches && FETCHING.contains(&(section, variable));
        (fetching || PROGRAMS.iter().any(is_named)) && !self.is_harmless()
    }

    /// Reports whether the value is one that many repositories have and that runs nothing of theirs.
    fn is_harmless(&self) -> bool {
        match (self.section_name(), self.variable_name()) {
            ("core", "fsmonitor") | ("help", "autocorrect") => is_switch(&self.value),
            ("help", "format") => self.value == "man",
            ("filter", _) => LFS.contains(&self.value.as_str()),
            ("protocol", _) => matches!(self.value.as_str(), "never" | "user"),
            _ => self.value.is_empty(),
        }
    }
}

fn is_switch(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0" | "" | "never" | "show"
    )
}

/// The first setting in a file of git's settings by which looking at the repository runs a program or reads
/// further settings. What cannot be read counts as one.
#[must_use]
pub fn program_setting(text: &str) -> Option<String> {
    let Some(settings) = parse_settings(text) else {
        return Some("a line that cannot be read".to_owned());
    };
    let fetches = settings.iter().any(|setting| {
        matches!(
            (setting.section_name(), setting.variable_name()),
            ("remote", "promisor") | ("extensions", "partialclone")
        )
    });
    settings.into_iter().find(|setting| setting.runs_program(fetches)).map(|setting| setting.name)
}

/// The last value of the setting of this name, in lower case, in a file of git's settings.
#[must_use]
pub fn find_setting(text: &str, name: &str) -> Option<String> {
    let named = parse_settings(text)?.into_iter().rfind(|setting| setting.name == name);
    named.map(|setting| setting.value)
}

/// The further files of settings that a file of git's settings names, as they are written there.
#[must_use]
pub fn included_files(text: &str) -> Vec<String> {
    let all = parse_settings(text).unwrap_or_default().into_iter();
    let includes = |setting: &GitSetting| {
        matches!(
            (setting.section_name(), setting.variable_name()),
            ("include" | "includeif", "path")
        )
    };
    all.filter(includes).map(|setting| setting.value).collect()
}

/// All settings of a file; `None` when it is not one.
fn parse_settings(text: &str) -> Option<Vec<GitSetting>> {
    let mut letters = Letters { rest: text.strip_prefix('\u{feff}').unwrap_or(text) };
    let (mut section, mut found) = (None, Vec::new());
    loop {
        letters.skip_blank();
        match letters.peek() {
            None => return Some(found),
            Some('#' | ';') => letters.skip_line(),
            Some('[') => section = Some(letters.read_section()?),
            Some(letter) if letter.is_ascii_alphabetic() => {
                let variable =
                    letters.read_word(|letter| letter.is_ascii_alphanumeric() || letter == '-');
                let name = format!("{}.{}", section.as_ref()?, variable.to_ascii_lowercase());
                found.push(GitSetting { name, value: letters.read_value()? });
            }
            Some(_) => return None,
        }
    }
}

/// A file's text, read from its start.
struct Letters<'t> {
    rest: &'t str,
}

impl<'t> Letters<'t> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next_letter(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = self.rest.get(letter.len_utf8()..).unwrap_or_default();
        Some(letter)
    }

    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn skip_line(&mut self) {
        self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
    }

    fn read_word(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|letter| !belongs(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// `[section]`, `[section "name"]` or `[section.name]`.
    fn read_section(&mut self) -> Option<String> {
        self.next_letter();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
        let mut name = self.read_word(is_part).to_ascii_lowercase();
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if self.peek() == Some('"') {
            self.next_letter();
            name.push('.');
            loop {
                match self.next_letter()? {
                    '"' => break,
                    '\\' => name.push(self.next_letter()?),
                    '\n' => return None,
                    letter => name.push(letter),
                }
            }
        }
        (self.next_letter() == Some(']')).then_some(name)
    }

    /// Parses what stands after a variable: nothing, or `=` and a value, which may continue in the next line.
    fn read_value(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        match self.peek() {
            None | Some('\n' | '\r' | '#' | ';') => {
                self.skip_line();
                return Some("true".to_owned());
            }
            Some('=') => self.next_letter(),
            Some(_) => return None,
        };
        let (mut value, mut quoted) = (String::new(), false);
        loop {
            match self.next_letter() {
                None if quoted => return None,
                None | Some('\n') if !quoted => break,
                Some('#' | ';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some('"') => quoted = !quoted,
                Some('\\') => match self.next_letter()? {
                    '\n' => {}
                    '\r' if self.peek() == Some('\n') => drop(self.next_letter()),
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    letter @ ('\\' | '"') => value.push(letter),
                    _ => return None,
                },
                None | Some('\n') => return None,
                Some(letter) => value.push(letter),
            }
        }
        Some(value.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_config_settings_that_run_programs_are_detected_in_any_spelling() {
        for (text, expected) in [
            ("[core]\n\tfsmonitor = ./x\n", "core.fsmonitor"),
            ("[core] fsmonitor=./x", "core.fsmonitor"),
            ("[CORE]\nFsMonitor = ./x", "core.fsmonitor"),
            ("[core]\nbare = false\n[filter \"x\"]\nclean = ./x\n", "filter.x.clean"),
            ("[filter \"a.b\"]\n\tprocess = \"./x\" ; so\n", "filter.a.b.process"),
            ("[filter.x]\nsmudge = ./x", "filter.x.smudge"),
            ("[filter \"lfs\"]\nclean = ./x clean -- %f", "filter.lfs.clean"),
            ("[diff \"x\"]\ntextconv = ./x", "diff.x.textconv"),
            ("[diff]\nexternal = ./x", "diff.external"),
            ("[core]\nexcludesFile = a\\\nb\nfsmonitor = a\\\n  b\n", "core.fsmonitor"),
            ("[include]\npath = ../more", "include.path"),
            ("[includeIf \"gitdir:/\"]\npath = ../more", "includeif.gitdir:/.path"),
            ("[merge \"x\"]\ndriver = ./x", "merge.x.driver"),
            ("[gpg \"ssh\"]\nprogram = ./x", "gpg.ssh.program"),
            ("[alias]\nlfs = !./x", "alias.lfs"),
            ("[tar \"x\"]\ncommand = ./x", "tar.x.command"),
            ("\u{feff}[core]\nfsmonitor = ./x", "core.fsmonitor"),
            ("[remote \"o\"]\npromisor\n[core]\nsshCommand = ./x", "core.sshcommand"),
            ("[core]\n=", "a line that cannot be read"),
            ("[core\n", "a line that cannot be read"),
            ("[core]\na = \"b\n", "a line that cannot be read"),
        ] {
            assert_eq!(program_setting(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn usual_git_config_has_no_setting_that_runs_a_program() {
        let usual = "# kept by git\n[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            \tlogallrefupdates = true\n\thooksPath = .husky/_\n\tfsmonitor = true\n\tsshCommand = ssh -i ~/.ssh/work\n\
            [remote \"origin\"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = Ada # who\n\
            [filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n[alias]\n\tst = !./x\n\
            [lfs \"https://example.org\"]\n\taccess = basic\n[submodule \"a\"]\n\tactive = true\n";
        assert_eq!(program_setting(usual), None);
        assert_eq!(program_setting(&usual.replace('\n', "\r\n")), None);
        assert_eq!(program_setting(""), None);
    }
}

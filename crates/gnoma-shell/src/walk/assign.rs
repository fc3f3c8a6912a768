//! Variables that are set, and which of them change what programs do.

use super::Walker;
use super::command_facts::CommandFacts;
use crate::expand::{Field, Value, looks_secret};
use crate::facts::Effect;
use crate::syntax::{ArrayElement, AssignedValue, Assignment, Word, WordPart, WordPartKind};

/// Names that only change how things look, or that tests and logs look at.
const HARMLESS: [&str; 46] = [
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    "DEBUG",
    "VERBOSE",
    "QUIET",
    "LOG_LEVEL",
    "LOGLEVEL",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "NODE_ENV",
    "RAILS_ENV",
    "RACK_ENV",
    "APP_ENV",
    "FLASK_ENV",
    "ENVIRONMENT",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "DEBIAN_FRONTEND",
    "PORT",
    "HEADLESS",
    "SOURCE_DATE_EPOCH",
    "PY_COLORS",
    "NPM_CONFIG_COLOR",
    "NPM_CONFIG_FUND",
    "NPM_CONFIG_AUDIT",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_PAGER_IN_USE",
    "TEST",
    "COLOR",
    "BLOCKSIZE",
    "BLOCK_SIZE",
    "TIMEFORMAT",
];

/// Names that change what programs do, also when they are set without `export`: they are exported already
/// where they matter, or the shell itself looks at them.
const DANGEROUS: [&str; 67] = [
    "POSIXLY_CORRECT",
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELL",
    "SHELLOPTS",
    "BASHOPTS",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "CDPATH",
    "FPATH",
    "ZDOTDIR",
    "GLOBIGNORE",
    "HISTFILE",
    "HOME",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "MAILCAPS",
    "CC",
    "CXX",
    "LD",
    "AR",
    "CPP",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "MFLAGS",
    "RUSTC",
    "RUSTFLAGS",
    "RUSTDOC",
    "CLASSPATH",
    "IGNOREEOF",
    "FCEDIT",
    "MANPATH",
    "INFOPATH",
    "TERMINFO",
    "TERMCAP",
    "KUBECONFIG",
    "INPUTRC",
    "EXINIT",
    "VIMINIT",
    "OPENER",
    "POSIX_SHELL",
    "PROMPT_COMMAND",
    "COMMAND_MODE",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "RES_OPTIONS",
    "NLSPATH",
    "GCONV_PATH",
    "LOCPATH",
    "MALLOC_TRACE",
    "GETCONF_DIR",
    "HOSTFILE",
    "COMPREPLY",
    "EXECIGNORE",
    "SYSTEMD_EDITOR",
];

/// Beginnings of names that change what programs do.
const DANGEROUS_STARTS: [&str; 60] = [
    "LD_",
    "DYLD_",
    "GIT_",
    "SSH_",
    "PYTHON",
    "NODE_",
    "PERL",
    "RUBY",
    "BUNDLE_",
    "GEM_",
    "JAVA_",
    "_JAVA",
    "JDK_",
    "MAVEN_",
    "GRADLE_",
    "LESS",
    "MAN",
    "BAT_",
    "FZF_",
    "RIPGREP_",
    "GREP_",
    "AWK",
    "PIP_",
    "UV_",
    "POETRY_",
    "CONDA_",
    "NPM_",
    "npm_",
    "YARN_",
    "PNPM_",
    "BUN_",
    "DENO_",
    "CARGO_",
    "RUSTUP_",
    "RUSTC_",
    "GO",
    "CGO_",
    "DOCKER_",
    "KUBE",
    "HELM_",
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "CLOUDSDK_",
    "TF_",
    "PG",
    "MYSQL_",
    "CURL_",
    "WGET",
    "BASH_",
    "ZSH_",
    "DBUS_",
    "XDG_",
    "GTK_",
    "QT_",
    "ANSIBLE_",
    "OPENSSL_",
    "SUDO_",
    "SYSTEMD_",
    "PULUMI_",
];

/// Ends of names that change what programs do.
const DANGEROUS_ENDS: [&str; 18] = [
    "_OPTIONS",
    "_OPTS",
    "_FLAGS",
    "_COMMAND",
    "_CMD",
    "_PAGER",
    "_EDITOR",
    "_BROWSER",
    "_PATH",
    "_HOME",
    "_PRELOAD",
    "_SHELL",
    "_WRAPPER",
    "_RC",
    "_CONFIG",
    "_PROXY",
    "_proxy",
    "_BASE_URL",
];

/// Names that the shell calculates what they are set to: that may run commands.
const CALCULATED: [&str; 10] = [
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "OPTIND",
    "LINENO",
    "HISTCMD",
    "BASHPID",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "BASH_SUBSHELL",
];

/// Names that do not become what they are set to.
const STUBBORN: [&str; 12] = [
    "UID", "EUID", "PPID", "GROUPS", "FUNCNAME", "DIRSTACK", "RANDOM", "SRANDOM", "LINENO",
    "HISTCMD", "BASHPID", "OPTARG",
];

/// The consequence of setting a variable, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableMeaning {
    Harmless,
    /// Not known: matters only to programs that get it.
    Own,
    /// The shell calculates what it is set to.
    Calculated,
    Dangerous,
}

pub(super) fn variable_meaning(name: &str) -> VariableMeaning {
    if CALCULATED.contains(&name) {
        return VariableMeaning::Calculated;
    }
    if HARMLESS.contains(&name) || name.starts_with("LC_") {
        return VariableMeaning::Harmless;
    }
    let dangerous = DANGEROUS.contains(&name)
        || DANGEROUS_STARTS.iter().any(|start| name.starts_with(start))
        || DANGEROUS_ENDS.iter().any(|end| name.ends_with(end))
        || name.ends_with("proxy")
        || looks_secret(name);
    if dangerous { VariableMeaning::Dangerous } else { VariableMeaning::Own }
}

impl Walker<'_> {
    /// Assignments that stand alone: they stay.
    pub(super) fn assign_all(&mut self, assignments: &[Assignment], facts: &mut CommandFacts) {
        for assignment in assignments {
            let value = self.assigned_value(assignment, facts);
            add_variable_effect(&assignment.name, Some(&value), facts);
            self.assign_variable(&assignment.name, value);
        }
    }

    /// Assignments before a program: only it sees them. `IFS` for `read` only says where it splits.
    pub(super) fn assign_before(
        &mut self,
        assignments: &[Assignment],
        program: Option<&Field>,
        facts: &mut CommandFacts,
    ) -> Vec<(String, Option<Value>)> {
        let mut kept = Vec::new();
        let reads = program.and_then(Field::known_text) == Some("read");
        for assignment in assignments {
            let value = self.assigned_value(assignment, facts);
            let name = &assignment.name;
            let splits = reads && name == "IFS";
            if !splits && variable_meaning(name) != VariableMeaning::Harmless {
                facts.add(Effect::Environment(name.clone()));
            }
            kept.push((name.clone(), self.state.variables.get(name).cloned()));
            self.assign_variable(name, value);
        }
        kept
    }

    /// Variables that were set for one command are, most likely, as they were.
    pub(super) fn take_back(&mut self, kept: Vec<(String, Option<Value>)>) {
        for (name, before) in kept {
            let before = before.unwrap_or(Value::Unknown);
            let now = self
                .state
                .variables
                .get(&name)
                .map_or(Value::Unknown, |now| now.merge_with(&before));
            self.state.set_variable(&name, now);
        }
    }

    /// The value of an assignment, with what expanding it does.
    fn assigned_value(&mut self, assignment: &Assignment, facts: &mut CommandFacts) -> Value {
        if assignment.subscript.is_some() || matches!(assignment.value, AssignedValue::Array(_)) {
            self.state.arrays.insert(assignment.name.clone());
        }
        if let Some(subscript) = &assignment.subscript {
            self.expand_with(facts, |expander| expander.look_at_subscript(subscript));
        }
        match &assignment.value {
            AssignedValue::Word(word) => {
                let field = self.expand_with(facts, |expander| expander.expand_single(word));
                if assignment.subscript.is_some() {
                    Value::Unknown
                } else {
                    self.value_of(assignment, word, &field)
                }
            }
            AssignedValue::Array(elements) => {
                self.expand_array(elements, facts);
                Value::Unknown
            }
        }
    }

    fn value_of(&self, assignment: &Assignment, word: &Word, field: &Field) -> Value {
        let value = match field {
            Field::Unknown { .. } if is_calculated(&word.parts) => Value::Number,
            // It is text here: nothing is looked up until it is used.
            Field::Listed { .. } => Value::Unknown,
            _ => Value::from_field(field),
        };
        if !assignment.append {
            return value;
        }
        match (self.state.variables.get(&assignment.name), value) {
            (Some(Value::Text(before)), Value::Text(text)) => {
                Value::Text(format!("{before}{text}"))
            }
            _ => Value::Unknown,
        }
    }

    /// Elements of `( … )`: a subscript is calculated.
    pub(super) fn expand_array(&mut self, elements: &[ArrayElement], facts: &mut CommandFacts) {
        for element in elements {
            if let Some(subscript) = &element.subscript {
                self.expand_with(facts, |expander| expander.look_at_subscript(subscript));
            }
            self.expand_word(&element.value, facts);
        }
    }

    pub(super) fn assign_variable(&mut self, name: &str, value: Value) {
        if self.state.stubborn.contains(name) {
            // Nothing that follows in this line runs when it is read-only.
            self.may_abort();
        }
        self.changes += 1;
        self.exhausted |= self.state.variables.len() >= super::MAX_VARIABLES;
        let value = if self.is_stubborn(name) { Value::Unknown } else { value };
        self.state.set_variable(name, value);
    }

    fn is_stubborn(&self, name: &str) -> bool {
        STUBBORN.contains(&name) || self.state.stubborn.contains(name)
    }

    /// Sets a variable by another way than `=`: what it does to programs is an effect of its own.
    pub(super) fn assign_and_warn(&mut self, name: &str, value: Value) {
        let mut facts = CommandFacts::default();
        add_variable_effect(name, Some(&value), &mut facts);
        self.record_if_any(name.to_owned(), facts);
        self.assign_variable(name, value);
    }
}

/// Notes what setting a variable leads to, where later commands get it.
pub(super) fn add_variable_effect(name: &str, value: Option<&Value>, facts: &mut CommandFacts) {
    match variable_meaning(name) {
        VariableMeaning::Dangerous => facts.add(Effect::Environment(name.to_owned())),
        VariableMeaning::Calculated if !value.is_some_and(Value::is_number) => facts.add(
            Effect::Unknown(format!("`{name}` is set to a computed value, which may run commands")),
        ),
        VariableMeaning::Calculated | VariableMeaning::Harmless | VariableMeaning::Own => {}
    }
}

/// True if a value is one `$(( ))` and nothing else.
fn is_calculated(parts: &[WordPart]) -> bool {
    match parts {
        [WordPart { kind: WordPartKind::Arithmetic(_), .. }] => true,
        [WordPart { kind: WordPartKind::DoubleQuoted(parts), .. }] => is_calculated(parts),
        _ => false,
    }
}

/// Names an arithmetic expression sets: what stands before `=`, `++`, `--` or after the latter two.
pub(super) fn calculated_names(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_name(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        rest = after;
        let after = after.trim_start();
        let steps = after.starts_with("++") || after.starts_with("--");
        let stepped = before.trim_end().ends_with("++") || before.trim_end().ends_with("--");
        let operator = after.trim_start_matches(['+', '-', '*', '/', '%', '<', '>', '&', '^', '|']);
        let set = operator.starts_with('=') && !operator.starts_with("==") && !is_comparison(after);
        if word.starts_with(|c: char| !c.is_ascii_digit()) && (steps || stepped || set) {
            names.push(word.to_owned());
        }
    }
    names
}

/// `<=` and `>=` compare; `<<=` and `>>=` set.
fn is_comparison(after: &str) -> bool {
    after.starts_with("<=") || after.starts_with(">=")
}

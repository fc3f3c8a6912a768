//! Programs that run a command given as their arguments.

use super::Walker;
use super::builtins::is_name;
use super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::{Effect, Risk};

/// A program that runs the command after its own options and some leading words.
struct Wrapper {
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with one.
    valued: &'static str,
    /// Long options without a value.
    long_flags: &'static [&'static str],
    /// Long options with one.
    long_valued: &'static [&'static str],
    /// Words before the command.
    skipped: usize,
}

const PLAIN: Wrapper =
    Wrapper { flags: "", valued: "", long_flags: &[], long_valued: &[], skipped: 0 };

const WATCH: Wrapper = Wrapper {
    flags: "bcdegtwxpr",
    valued: "nq",
    long_flags: &[
        "beep",
        "color",
        "differences",
        "errexit",
        "chgexit",
        "no-title",
        "exec",
        "precise",
        "no-wrap",
    ],
    long_valued: &["interval", "equexit"],
    skipped: 0,
};

fn wrapper_of(name: &str) -> Option<Wrapper> {
    Some(match name {
        "nohup" | "setsid" | "chronic" => {
            Wrapper { flags: "cfw", long_flags: &["fork", "wait", "ctty"], ..PLAIN }
        }
        "nice" => {
            Wrapper { valued: "n", long_valued: &["adjustment"], flags: "0123456789", ..PLAIN }
        }
        "ionice" => Wrapper {
            flags: "t",
            valued: "cn",
            long_flags: &["ignore"],
            long_valued: &["class", "classdata"],
            ..PLAIN
        },
        "timeout" | "gtimeout" => Wrapper {
            flags: "vfp",
            valued: "ks",
            long_flags: &["preserve-status", "foreground", "verbose"],
            long_valued: &["kill-after", "signal"],
            skipped: 1,
        },
        "time" | "gtime" => Wrapper {
            flags: "pvlq",
            valued: "f",
            long_flags: &["portability", "verbose", "quiet"],
            long_valued: &["format"],
            skipped: 0,
        },
        "stdbuf" => Wrapper { valued: "ioe", long_valued: &["input", "output", "error"], ..PLAIN },
        "chrt" | "taskset" => Wrapper { flags: "abdfimorvc", skipped: 1, ..PLAIN },
        "caffeinate" => Wrapper { flags: "disum", valued: "tw", ..PLAIN },
        "watch" => WATCH,
        "busybox" | "toybox" => PLAIN,
        "multitime" => Wrapper { flags: "lqv", valued: "nsI", ..PLAIN },
        _ => return None,
    })
}

impl Walker<'_> {
    /// Returns the effects of a program that runs its arguments; `None` if it is no such program.
    pub(super) fn walk_wrapper(&mut self, name: &str, words: &[Field]) -> Option<CommandFacts> {
        let wrapper = wrapper_of(name)?;
        let mut facts = CommandFacts::default();
        let mut rest = words;
        let mut directly = false;
        while let Some((word, after)) = rest.split_first() {
            let option = word.known_text().filter(|text| text.len() > 1 && text.starts_with('-'));
            let Some(option) = option else { break };
            rest = after;
            match wrapper.option_takes_value(option) {
                Some(true) => rest = rest.get(1..).unwrap_or_default(),
                Some(false) => {}
                None => {
                    facts.add(Effect::Unknown(format!("unknown option `{option}` of `{name}`")));
                }
            }
            directly |= matches!(option, "-x" | "--exec");
            if option == "--" {
                break;
            }
        }
        let rest = rest.get(wrapper.skipped..).unwrap_or_default();
        if name == "watch" && !directly {
            facts.merge_with(self.walk_joined_words(name, rest));
        } else if !rest.is_empty() {
            self.walk_child_command(rest);
        }
        Some(facts)
    }

    /// Words that are joined to a text that a shell runs.
    fn walk_joined_words(&mut self, name: &str, words: &[Field]) -> CommandFacts {
        let texts: Option<Vec<&str>> = words.iter().map(Field::known_text).collect();
        match texts {
            Some(texts) => {
                self.depth += 1;
                let facts = self.walk_child_shell(&texts.join(" "));
                self.depth -= 1;
                facts
            }
            None => CommandFacts::unknown_effect(format!(
                "what `{name}` runs is only known at run time"
            )),
        }
    }

    /// `sudo` and its like: options, variables, a command run as somebody else.
    pub(super) fn walk_elevated(&mut self, name: &str, words: &[Field]) -> CommandFacts {
        let mut facts =
            CommandFacts::from_effect(Effect::System(format!("`{name}` runs as another user")))
                .with_risk(Risk::High);
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            let Some(text) = word.known_text() else { break };
            let variable = text.split_once('=').map(|(variable, _)| variable);
            if let Some(option) = text.strip_prefix('-') {
                rest = after;
                if option == "-" {
                    break;
                }
                if name == "su" && option.ends_with('c') {
                    facts.merge_with(
                        self.walk_joined_words(name, after.get(..1).unwrap_or_default()),
                    );
                    return facts;
                }
                let skipped = usize::from(needs_value(name, option));
                rest = rest.get(skipped..).unwrap_or_default();
            } else if let Some(variable) = variable.filter(|variable| is_name(variable)) {
                facts.add(Effect::Environment(variable.to_owned()));
                rest = after;
            } else {
                break;
            }
        }
        let skipped = usize::from(matches!(name, "gosu" | "su-exec" | "su"));
        let rest = rest.get(skipped..).unwrap_or_default();
        if !rest.is_empty() {
            self.walk_child_command(rest);
        }
        facts
    }
}

impl Wrapper {
    /// Reports whether the value of an option is the next word; `None` for an unknown option.
    fn option_takes_value(&self, text: &str) -> Option<bool> {
        if text == "--" {
            return Some(false);
        }
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            return if self.long_flags.contains(&name) {
                Some(false)
            } else if self.long_valued.contains(&name) {
                Some(!long.contains('='))
            } else {
                None
            };
        }
        let letters = text.strip_prefix('-')?;
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// Long options of `sudo` and its like that take the next word.
const LONG_WITH_VALUE: [&str; 14] = [
    "user",
    "group",
    "host",
    "prompt",
    "chroot",
    "chdir",
    "close-from",
    "role",
    "type",
    "command-timeout",
    "other-user",
    "shell",
    "reuid",
    "regid",
];

/// True if the option's value is the next word.
fn needs_value(name: &str, option: &str) -> bool {
    if let Some(long) = option.strip_prefix('-') {
        return LONG_WITH_VALUE.contains(&long);
    }
    let valued = match name {
        "doas" => "uC",
        "su" | "runuser" => "sgGw",
        _ => "ugpChrtTRDU",
    };
    option.chars().position(|letter| valued.contains(letter))
        == option.chars().count().checked_sub(1)
}

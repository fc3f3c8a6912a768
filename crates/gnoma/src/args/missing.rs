//! Commands without an argument that they need, and tasks without the command that runs them.

use std::ffi::OsString;

use clap::{
    Arg, CommandFactory as _,
    builder::PossibleValue,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    Args,
    foreign::command_of,
    mistaken_commands::{TASK, quote_words, task_advice},
    prompt_hint,
};

/// Returns advice on what to write where a required argument is missing. The advice lists the choices if the
/// argument is one of a few words.
pub(crate) fn missing_argument_advice(error: &clap::Error, line: &[OsString]) -> Option<String> {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && command_of(error).as_deref() == Some(TASK)
    {
        let told = task_advice(std::slice::from_ref(word), |_| true)?;
        let hint = prompt_hint(line).map_or_else(String::new, |hint| format!("\n{hint}"));
        return Some(format!("there is no `gnoma task {word}`; {told}{hint}"));
    }
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let name = command_of(error)?;
    if name == "config set"
        && let Some((key, value)) = line.last()?.to_str()?.split_once('=')
    {
        let words = quote_words(&[key.to_owned(), value.to_owned()]);
        return Some(format!("write `gnoma config set {words}`"));
    }
    let mut command = Args::command();
    for word in name.split(' ') {
        command = command.find_subcommand(word)?.clone();
    }
    let required = command.get_positionals().find(|arg| arg.is_required_set());
    let choices = required.map(Arg::get_possible_values).filter(|choices| !choices.is_empty())?;
    let names: Vec<&str> = choices.iter().map(PossibleValue::get_name).collect();
    Some(format!("`gnoma {name}` needs one of: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn a_missing_word_is_named_with_its_choices() {
        for (line, told) in [
            ("gnoma completions", "`gnoma completions` needs one of: bash, elvish, fish"),
            ("gnoma import", "`gnoma import` needs one of: claude, codex, opencode"),
            ("gnoma ci init", "`gnoma ci init` needs one of: github, gitlab, container"),
            ("gnoma config set tui.vim=true", "write `gnoma config set tui.vim true`"),
            ("gnoma task release --dry-run", "there is no `gnoma task release`; `gnoma task run"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = Args::try_parse_from(&words).unwrap_err();
            let said = missing_argument_advice(&error, &words)
                .unwrap_or_else(|| panic!("{line}: {error}"));
            assert!(said.starts_with(told), "{line}: {said}");
        }
        let words = ["gnoma", "config", "get"].map(OsString::from);
        let error = Args::try_parse_from(&words).unwrap_err();
        assert_eq!(missing_argument_advice(&error, &words), None);
    }
}

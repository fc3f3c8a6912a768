//! `gnoma completions`: scripts that complete command lines in a shell.
//!
//! The scripts for bash, zsh and fish complete the names of tasks and their arguments as well: they ask
//! `gnoma task complete`.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::common::print_safe_text;
use crate::{args::Args, report::Exit};

/// Completes the words of tasks, and leaves all others to the generated function. Words come from files of projects, so
/// they are quoted, and never expanded as `compgen -W` does.
const BASH_TASKS: &str = r#"
_gnoma_task_words() {
    local word quoted current="${COMP_WORDS[COMP_CWORD]}"
    if [[ ${COMP_WORDS[1]} == task && $COMP_CWORD -ge 3 && $current != -* ]]; then
        case "${COMP_WORDS[2]}" in
            run | show | edit | delete | history | resume | schedule)
                COMPREPLY=()
                while IFS= read -r word; do
                    if [[ $word == "$current"* ]]; then
                        printf -v quoted %q "$word"
                        COMPREPLY+=("$quoted")
                    fi
                done < <("$1" task complete -- "${COMP_WORDS[2]}" "${COMP_WORDS[@]:3:COMP_CWORD-3}" 2>/dev/null)
                [[ ${#COMPREPLY[@]} -eq 0 ]] || return 0
                ;;
        esac
    fi
    _gnoma "$@"
}
complete -F _gnoma_task_words -o bashdefault -o default gnoma
"#;

/// The end of the generated script for zsh, which makes its function known, also if the file is loaded by its name.
const ZSH_END: &str = r#"if [ "$funcstack[1]" = "_gnoma" ]; then
    _gnoma "$@"
else
    compdef _gnoma gnoma
fi
"#;

/// As for bash. `(@f)` splits at the ends of lines, and `compadd` quotes what it inserts.
const ZSH_TASKS: &str = r#"_gnoma_task_words() {
    local -a found
    if [[ ${words[2]} == task && $CURRENT -ge 4 && ${words[CURRENT]} != -* ]]; then
        case ${words[3]} in
            run | show | edit | delete | history | resume | schedule)
                found=("${(@f)$("${words[1]}" task complete -- "${words[3]}" "${(@Q)words[4,CURRENT-1]}" 2>/dev/null)}")
                if [[ -n ${found[1]} ]]; then
                    compadd -- "${found[@]}" && return 0
                fi
                ;;
        esac
    fi
    _gnoma "$@"
}
compdef _gnoma_task_words gnoma
if [ "$funcstack[1]" = "_gnoma" ]; then
    _gnoma_task_words "$@"
fi
"#;

/// As for bash, beside the generated completions.
const FISH_TASKS: &str = r#"
function __gnoma_task_words
    set -l words (commandline -opc)
    test (count $words) -ge 3; and test "$words[2]" = task; or return
    contains -- "$words[3]" run show edit delete history resume schedule; or return
    $words[1] task complete -- $words[3..-1] 2>/dev/null
end
complete -c gnoma -n '__fish_seen_subcommand_from task' -a '(__gnoma_task_words)'
"#;

pub(super) fn run(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "gnoma", &mut script);
    let script = String::from_utf8_lossy(&script);
    print_safe_text(&with_tasks(shell, &script))
}

/// Adds the words of tasks to a generated script.
fn with_tasks(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH_TASKS}"),
        Shell::Zsh => script.replace(ZSH_END, ZSH_TASKS),
        Shell::Fish => format!("{script}{FISH_TASKS}"),
        _ => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tasks_are_added_for_three_shells() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "gnoma", &mut script);
            let script = String::from_utf8_lossy(&script);
            let whole = with_tasks(shell, &script);
            assert!(whole.contains("task complete -- ") && whole.len() > script.len(), "{shell}");
        }
    }
}

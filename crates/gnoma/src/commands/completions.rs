//! `gnoma completions`: scripts that complete command lines in a shell.
//!
//! The script for bash completes the names of tasks and their arguments as well: it asks `gnoma task complete`.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::common::print;
use crate::{args::Args, report::Exit};

/// Completes the words of tasks, and leaves all others to the generated function. Words come from files of projects, so
/// they are quoted, and never expanded as `compgen -W` does.
const BASH_TASKS: &str = r#"
_gnoma_task_words() {
    local word quoted current="${COMP_WORDS[COMP_CWORD]}"
    if [[ ${COMP_WORDS[1]} == task && $COMP_CWORD -ge 3 && $current != -* ]]; then
        case "${COMP_WORDS[2]}" in
            run | show | edit | delete | history | resume)
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

pub(super) fn run(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "gnoma", &mut script);
    let tasks = if shell == Shell::Bash { BASH_TASKS } else { "" };
    print(&format!("{}{tasks}", String::from_utf8_lossy(&script)))
}

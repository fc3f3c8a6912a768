//! Laws of what commands do: nothing that is added hides anything.

use std::mem::discriminant;

use gnoma_shell::Effect;
use proptest::prelude::*;
use proptest::sample::select;

use super::facts::{effects, look, not_read_only, read_only};

fn is_single(command: &&'static str) -> bool {
    // Parts that change what the rest means are laws of their own.
    !command.contains(['|', ';', '&', '<', '>', '(', '{', '=', '#', '\n'])
        && !["cd ", "! ", "time ", "coproc "].iter().any(|start| command.starts_with(start))
        && look(command).commands.first().is_some_and(|first| first.words.len() > 1)
}

/// A pager runs only where output is shown.
fn is_pager(effect: &Effect) -> bool {
    matches!(effect, Effect::Unknown(why) if why.contains("pager"))
}

fn singles() -> Vec<&'static str> {
    not_read_only().into_iter().filter(is_single).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Ways to run a command within another.
fn wrapped(command: &str, way: usize) -> String {
    match way {
        0 => format!("( {command} )"),
        1 => format!("{{ {command}; }}"),
        2 => format!("echo $({command})"),
        3 => format!("echo \"$({command})\""),
        4 => format!("bash -c {}", quoted(command)),
        5 => format!("eval {}", quoted(command)),
        6 => format!("f() {{ {command}; }}; f"),
        7 => format!("if {command}; then :; fi"),
        8 => format!("while {command}; do :; done"),
        9 => format!("cat <({command})"),
        10 => format!("for round in 1; do {command}; done"),
        11 => format!("case x in *) {command};; esac"),
        12 => format!("sh <<'END'\n{command}\nEND\n"),
        13 => format!("echo x | {command}"),
        14 => format!("! {command}"),
        TRAP => format!("trap {} EXIT", quoted(command)),
        16 => format!("[[ $({command}) ]]"),
        _ => format!("x=$({command})"),
    }
}
const WAYS: usize = 18;
const TRAP: usize = 15;

proptest! {
    #[test]
    fn harmless_command_part_never_hides_effects_of_another(
        bad in select(not_read_only()),
        good in select(read_only()),
        joint in select(vec!["; ", " && ", " || ", " | ", " & ", "\n"]),
        first in any::<bool>(),
    ) {
        // What writes into a pipe starts no pager.
        prop_assume!(!(first && joint == " | " && effects(&look(bad)).iter().any(is_pager)));
        // In a pipe, the parts of a list are no list any more.
        let bad = if joint == " | " && bad.contains("; ") && !bad.contains('\n') { wrapped(bad, 1) } else { bad.to_owned() };
        let line = if first { format!("{bad}{joint}{good}") } else { format!("{good}{joint}{bad}") };
        let analysis = look(&line);
        prop_assert!(!analysis.is_read_only(), "{line}");
    }

    #[test]
    fn wrapped_command_has_the_effects_of_the_inner_command(bad in select(singles()), way in 0..WAYS) {
        let line = wrapped(bad, way);
        let analysis = look(&line);
        prop_assert!(analysis.unparsed.is_none(), "{line}");
        let outer = effects(&analysis);
        for effect in effects(&look(bad)).into_iter().filter(|effect| !is_pager(effect)) {
            // A shell that is given text runs that instead of what it would have read.
            let runs = |it: &Effect| matches!(it, Effect::Runs(_));
            // A trap runs later, perhaps in another folder.
            let elsewhere = way == TRAP
                && (matches!(effect, Effect::Look(_))
                    || outer.iter().any(|it| discriminant(it) == discriminant(&effect)));
            let kept = elsewhere || outer.contains(&effect) || (runs(&effect) && outer.iter().any(runs));
            prop_assert!(kept, "{line}: {effect:?} not in {outer:?}");
        }
    }

    #[test]
    fn env_nohup_sudo_and_timeout_lose_no_effect_of_their_command(
        bad in select(singles()),
        before in select(vec!["env ", "nohup ", "nice -n 5 ", "timeout 5 ", "command ", "time ", "sudo ", "exec ", "env -- ", "stdbuf -oL "]),
    ) {
        let line = format!("{before}{bad}");
        let risk = look(bad).risk();
        prop_assert!(!look(&line).is_read_only(), "{line}");
        prop_assert!(look(&line).risk() >= risk, "{line}");
    }

    #[test]
    fn quoting_arguments_changes_no_effect(words in prop::collection::vec("[a-z./-]{1,6}", 1..4), program in select(vec!["rm", "ls", "cat", "sort", "git", "find", "touch", "cp"])) {
        let plain = format!("{program} {}", words.join(" "));
        let single = format!("{program} {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        let double = format!("\"{program}\" {}", words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" "));
        prop_assert_eq!(effects(&look(&plain)), effects(&look(&single)));
        prop_assert_eq!(effects(&look(&plain)), effects(&look(&double)));
    }

    #[test]
    fn shell_analysis_accepts_any_text(pieces in prop::collection::vec(select(vec![
        "ls", "rm", " ", " ", "-rf", "$x", "${x", "}", "$(", ")", "`", "'", "\"", "|", "&&", ";", "\n", "<", ">", ">>", "<<E", "E\n",
        "{", "a,b", "}", "((", "))", "[[", "]]", "x=1", "for x in", "do", "done", "if", "then", "fi", "case", "esac", "find . -exec",
        "\\;", "sed s/a/b/", "awk '{print}'", "git", "xargs", "env -S", "bash -c", "eval", "é", "\u{200b}", "*", "?", "[", "~", "#", "f()", "!", "tar xf",
    ]), 0..25)) {
        let text = pieces.concat();
        let analysis = look(&text);
        prop_assert!(analysis.unparsed.is_none() || !analysis.is_read_only());
    }

    #[test]
    fn shell_analysis_accepts_any_program_arguments(
        program in select(vec!["sed", "awk", "find", "xargs", "tar", "git", "env", "sudo", "ssh", "dd", "chmod", "parallel", "jq", "yq", "ps", "7z", "fd", "python3", "curl", "test", "read", "declare", "printf"]),
        words in prop::collection::vec("[ -~]{0,8}", 0..6),
    ) {
        let line = format!("{program} {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        prop_assert!(look(&line).unparsed.is_none(), "{line}");
    }
}

#[test]
fn nesting_depth_is_limited_across_function_calls() {
    let opened = "$( ".repeat(40);
    let closed = ")".repeat(40);
    let chain: String =
        (0..14).map(|at| format!("f{at}() {{ echo {opened} f{} {closed}; }}\n", at + 1)).collect();
    let analysis = look(&format!("{chain}f14() {{ ls; }}\nf0"));
    assert!(analysis.unparsed.is_some() || !analysis.is_read_only());
}

#[test]
fn nested_loops_are_analyzed_in_bounded_time() {
    let opened = "for a in 1 2; do b=1; ".repeat(40);
    let closed = "; b=2; done".repeat(40);
    let analysis = look(&format!("{opened} ls {closed}"));
    assert!(!analysis.is_read_only());
}

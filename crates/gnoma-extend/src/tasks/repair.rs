//! Proposes a change of a task whose runs fail at the same step: what the person did instead, or the parts of the step as
//! steps of their own, as it had them in a run that went well or as its text has them. No model is asked.

use gnoma_core::shell_line::split_shell_lines;

use super::{
    definition::parse_task,
    repetition::{PastCall, PastTurn},
    session::{Parameter, command_with_names, step_text, step_title, title_without_values},
    steps::{StepAction, StepOptions, TaskStep},
    substitute::NamedValue,
};

/// Most steps that take the place of one.
const MAX_PARTS: usize = 20;
/// First words of lines that do not stand alone in a shell: what they do is gone in the next step.
const DEPENDENT_WORDS: [&str; 31] = [
    "cd", "pushd", "popd", "export", "unset", "set", "shopt", "source", ".", "alias", "trap", "if",
    "then", "else", "fi", "for", "while", "until", "case", "esac", "done", "function", "elif",
    "do", "eval", "exec", "exit", "umask", "ulimit", "declare", "readonly",
];

/// A part of the work of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepPart {
    /// A message to the model.
    Prompt(String),
    /// A command for the shell.
    Command(String),
}

/// Returns the commands by which the person, or a model for them, went on in the turns behind a step that failed. They
/// are those of the first such turn that has any; calls of turns that did not end well do not count.
#[must_use]
pub fn commands_run_instead(
    turns: &[PastTurn],
    is_of_step: impl Fn(&PastTurn) -> bool,
) -> Vec<StepPart> {
    let Some(failed) = turns.iter().rposition(&is_of_step) else { return Vec::new() };
    let after = turns.iter().skip(failed + 1);
    after.map(commands_of).find(|it| !it.is_empty()).unwrap_or_default()
}

/// Returns the parts that a prompt had in a run that went well: what its turn changed and ran, and what the person said
/// and ran behind it before the next step began. Turns that did not end well do not count. Empty if there are no commands.
/// `prompt`: the text of the step in its file.
#[must_use]
pub fn parts_that_went_well(
    turns: &[PastTurn],
    prompt: &str,
    is_of_step: impl Fn(&PastTurn) -> bool,
    is_of_run: impl Fn(&PastTurn) -> bool,
) -> Vec<StepPart> {
    let went_well = |turn: &PastTurn| turn.ended_well && is_of_step(turn);
    let Some(at) = turns.iter().rposition(went_well) else { return Vec::new() };
    let behind = turns.iter().skip(at + 1).take_while(|turn| !is_of_run(turn));
    let mut parts = Vec::new();
    for (place, turn) in turns.iter().skip(at).take(1).chain(behind).enumerate() {
        let commands = commands_of(turn);
        let (_, said) = split_shell_lines(&turn.message);
        let said = if place == 0 { prompt } else { said }.trim();
        let changed: Vec<&str> = turn.calls.iter().filter_map(changed_file).collect();
        // The words of a turn that only ran commands are done by the commands.
        let has_work = commands.is_empty() || !changed.is_empty();
        let is_prompt = !said.is_empty() && (place == 0 || !said.starts_with('/'));
        if turn.ended_well && has_work && is_prompt {
            parts.push(StepPart::Prompt(restrict_to_files(said, &changed)));
        }
        parts.extend(commands);
    }
    let has_commands = parts.iter().any(|part| matches!(part, StepPart::Command(_)));
    if has_commands { parts } else { Vec::new() }
}

/// The commands that the person typed in a turn, or else those that a model ran in it, if it ended well.
fn commands_of(turn: &PastTurn) -> Vec<StepPart> {
    let (typed, _) = split_shell_lines(&turn.message);
    if !typed.is_empty() {
        return typed.into_iter().map(|line| StepPart::Command(line.to_owned())).collect();
    }
    let called = turn.calls.iter().filter(|_| turn.ended_well);
    let commands = called.filter_map(|call| match call {
        PastCall::Command(command) => Some(StepPart::Command(command.clone())),
        PastCall::Edit(_) | PastCall::Write(_) => None,
    });
    commands.collect()
}

fn changed_file(call: &PastCall) -> Option<&str> {
    match call {
        PastCall::Edit(path) | PastCall::Write(path) => Some(path),
        PastCall::Command(_) => None,
    }
}

/// A message that leaves to other steps all but the change of these files.
fn restrict_to_files(said: &str, changed: &[&str]) -> String {
    if changed.is_empty() {
        return said.to_owned();
    }
    let files: Vec<String> = changed.iter().map(|path| format!("`{path}`")).collect();
    format!("{said}\n\nDo only this part now: change {}.", files.join(", "))
}

/// Returns whether the text of a step has parts that can be steps of their own: lines of a script, or items of a list.
#[must_use]
pub fn has_parts(step: &TaskStep) -> bool {
    !own_parts(step).is_empty()
}

/// Returns the text of a task file with other steps in the place of the one with this title: these parts, or if there
/// are none, the lines of its command or the items of its list. `None` if the step has no parts, or another file has it.
#[must_use]
pub fn propose_repair(
    name: &str,
    text: &str,
    title: &str,
    parts: &[StepPart],
    values: &[NamedValue],
) -> Option<String> {
    let task = parse_task(name, text).ok()?;
    let at = task.steps.iter().position(|step| step.title == title)?;
    let step = task.steps.get(at)?;
    let end = task.steps.get(at + 1).map(|next| next.line);
    let parameter = |(name, value): &NamedValue| Parameter {
        name: name.clone(),
        kind: "text",
        value: value.clone(),
    };
    let parameters: Vec<Parameter> = values.iter().map(parameter).collect();
    let given = parts.iter().filter_map(|part| match part {
        StepPart::Command(line) if line.contains("```") => None,
        StepPart::Command(line) => Some(command_step(&command_with_names(line, &parameters), None)),
        StepPart::Prompt(said) => {
            let title = title_without_values(said, &parameters);
            Some(prompt_step(&title, &step_text(said, &parameters), &step.options))
        }
    });
    let mut parts: Vec<String> = given.collect();
    if parts.is_empty() {
        parts = own_parts(step);
    }
    if parts.is_empty() || parts.len() > MAX_PARTS {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let before = lines.get(..step.line.checked_sub(1)?)?.concat();
    let after = end.map_or_else(String::new, |line| {
        lines.get(line.saturating_sub(1)..).unwrap_or_default().concat()
    });
    let gap = if after.is_empty() { "" } else { "\n" };
    let repaired = format!("{before}{}{gap}{after}", parts.join("\n"));
    (parse_task(name, &repaired).is_ok() && repaired != text).then_some(repaired)
}

/// A step that runs a command, in the form of a file.
fn command_step(command: &str, timeout_s: Option<u64>) -> String {
    let option = timeout_s.map_or_else(String::new, |limit| format!(" {{timeout={limit}s}}"));
    format!("## {}{option}\n\n```sh\n{command}\n```\n", step_title(command))
}

/// A step with a prompt, in the form of a file.
fn prompt_step(title: &str, body: &str, options: &StepOptions) -> String {
    let model = options.model.as_ref().map(|model| format!("model={model}"));
    let role = options.role.as_ref().map(|role| format!("role={role}"));
    let written: Vec<String> = model.into_iter().chain(role).collect();
    let written =
        if written.is_empty() { String::new() } else { format!(" {{{}}}", written.join(" ")) };
    format!("## {title}{written}\n\n{}\n", body.trim())
}

/// The parts that the text of a step has, as steps.
fn own_parts(step: &TaskStep) -> Vec<String> {
    match &step.action {
        StepAction::Command(command) => command_parts(command, step.options.timeout_s),
        StepAction::Prompt(prompt) => prompt_parts(prompt, &step.options),
        StepAction::Question { .. } | StepAction::Task { .. } => Vec::new(),
    }
}

/// The lines of a script as steps, if each of them stands alone.
fn command_parts(command: &str, timeout_s: Option<u64>) -> Vec<String> {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines: Vec<&str> = command.lines().filter(is_code).collect();
    let stands_alone = |line: &&str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        let goes_on = ["\\", "|", "&&", "||", "{", "(", "do", ";;", "&", "="];
        let is_inside = line.starts_with(char::is_whitespace) || line.starts_with(['}', ')']);
        !is_inside
            && !DEPENDENT_WORDS.contains(&first)
            && !first.contains('=')
            && !line.contains("<<")
            && !goes_on.iter().any(|end| line.trim_end().ends_with(end))
            && [b'"', b'\'']
                .iter()
                .all(|quote| line.bytes().filter(|it| it == quote).count() % 2 == 0)
    };
    if lines.len() < 2 || !lines.iter().all(stands_alone) {
        return Vec::new();
    }
    lines.iter().map(|line| command_step(line, timeout_s)).collect()
}

/// The items of the list of a prompt as steps, each with the text around the list.
fn prompt_parts(prompt: &str, options: &StepOptions) -> Vec<String> {
    let (mut around, mut items) = (Vec::new(), Vec::<String>::new());
    for line in prompt.lines() {
        match (list_item(line), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(item)) if line.starts_with(char::is_whitespace) => {
                item.push('\n');
                item.push_str(line);
            }
            (None, _) => around.push(line),
        }
    }
    if items.len() < 2 || prompt.contains("```") {
        return Vec::new();
    }
    let around = around.join("\n");
    let part = |item: &String| {
        prompt_step(&step_title(item), &format!("{}\n\n{item}", around.trim()), options)
    };
    items.iter().map(part).collect()
}

/// The text of an item of a list that is not within another one: `- text`, `* text`, `1. text`.
fn list_item(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")),
        _ => line.get(digits..).and_then(|rest| rest.strip_prefix(". ")),
    };
    rest.map(str::trim).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use gnoma_core::shell_line::describe_shell_line;

    use super::*;

    const TASK: &str = "---\narguments:\n  v: version\n---\nIntro.\n\n## A\na\n\n## B {timeout=90s}\n\n```sh\nmake\n\
        # then\ngit tag \"$v\"\n```\n\n## C\nDo both:\n- write it\n  well\n- check it\n";

    fn titles(text: &str) -> Vec<String> {
        let task = parse_task("t", text).unwrap();
        task.steps.into_iter().map(|step| step.title).collect()
    }

    #[test]
    fn task_repair_splits_lines_and_list_items_into_steps() {
        let split = propose_repair("t", TASK, "B", &[], &[]).unwrap();
        assert_eq!(titles(&split), ["A", "make", "git tag \"$v\"", "C"]);
        assert_eq!(parse_task("t", &split).unwrap().steps[2].options.timeout_s, Some(90));
        assert!(split.starts_with("---\narguments:") && split.ends_with("- check it\n"), "{split}");
        let split = propose_repair("t", TASK, "C", &[], &[]).unwrap();
        assert_eq!(titles(&split), ["A", "B", "write it", "check it"]);
        assert!(split.ends_with("## check it\n\nDo both:\n\ncheck it\n"), "{split}");
        for title in ["A", "none"] {
            assert_eq!(propose_repair("t", TASK, title, &[], &[]), None);
        }
        for script in [
            "cd x\nmake",
            "a=1\necho $a",
            "cat <<E\nx\nE",
            "make \\\n  all",
            "ls 'a\nb'",
            "umask 077\nmake",
        ] {
            let task = format!("## B\n```sh\n{script}\n```\n");
            assert_eq!(propose_repair("t", &task, "B", &[], &[]), None, "{script}");
        }
        let alone = propose_repair("t", "```sh\na\nb\n```\n", "t", &[], &[]).unwrap();
        assert_eq!(titles(&alone), ["a", "b"]);
    }

    #[test]
    fn task_repair_replaces_a_failed_step_by_the_commands_that_the_user_ran() {
        let turn = |message: &str, commands: &[&str]| PastTurn {
            message: message.to_owned(),
            calls: commands.iter().map(|it| PastCall::Command((*it).to_owned())).collect(),
            ended_well: true,
            ..PastTurn::default()
        };
        let typed = describe_shell_line("make release", "ok");
        let cases = [
            (
                turn("do it by hand", &["make all", "git tag v2"]),
                ["make all", "git tag v2"].as_slice(),
            ),
            (turn(&typed, &[]), &["make release"]),
        ];
        for (after, commands) in cases {
            let turns =
                [turn("earlier", &["ls"]), turn("step", &["make"]), turn("why?", &[]), after];
            let instead = commands_run_instead(&turns, |turn| turn.message == "step");
            let wanted = commands.iter().map(|it| StepPart::Command((*it).to_owned()));
            assert_eq!(instead, wanted.collect::<Vec<_>>());
            let values = [("v".to_owned(), "v2".to_owned())];
            let repaired = propose_repair("t", TASK, "B", &instead, &values).unwrap();
            assert_eq!(titles(&repaired).len(), 2 + commands.len());
            assert_eq!(repaired.contains("git tag \"$v\""), commands.len() == 2, "{repaired}");
        }
        let other = commands_run_instead(&[turn("x", &["ls"])], |turn| turn.message == "step");
        assert!(other.is_empty());
    }

    #[test]
    fn task_repair_splits_a_prompt_into_the_commands_of_a_successful_run() {
        let turn = |message: &str, calls: Vec<PastCall>, ended_well: bool| PastTurn {
            message: message.to_owned(),
            calls,
            ended_well,
            ..PastTurn::default()
        };
        let command = |line: &str| PastCall::Command(line.to_owned());
        let turns = [
            turn(
                "Release v2.",
                vec![PastCall::Edit("CHANGELOG.md".to_owned()), command("git tag v2")],
                true,
            ),
            turn("and push it", vec![command("git push origin v2")], true),
            turn("again?", vec![command("rm x")], false),
            turn("the next step", vec![command("make docs")], true),
        ];
        let task = "---\narguments:\n  v: version\n---\n## Release {role=editor}\nRelease $v.\n\n\
            ## Next\nthe next step\n";
        let parts = parts_that_went_well(
            &turns,
            "Release $v.",
            |turn| turn.message.starts_with("Release"),
            |turn| turn.message == "the next step",
        );
        let values = [("v".to_owned(), "v2".to_owned())];
        let repaired = propose_repair("t", task, "Release", &parts, &values).unwrap();
        let steps = parse_task("t", &repaired).unwrap().steps;
        let titles: Vec<&str> = steps.iter().map(|step| step.title.as_str()).collect();
        assert_eq!(titles, ["Release $v.", "git tag \"$v\"", "git push origin \"$v\"", "Next"]);
        assert_eq!(steps[0].options.role.as_deref(), Some("editor"));
        assert!(repaired.contains("Do only this part now: change `CHANGELOG.md`."), "{repaired}");
        let talk = [turn("Release v2.", Vec::new(), true)];
        assert!(parts_that_went_well(&talk, "Release $v.", |_| true, |_| false).is_empty());
    }
}

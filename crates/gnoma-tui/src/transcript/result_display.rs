//! What people see below a call's first line, by its tool: what a command printed, the plan, and what each elf does.

use gnoma_core::{
    ToolCall,
    plan::{self, PlanStep},
};

use serde_json::Value;

use super::layout;
use crate::{
    clean,
    text::{Line, Style, TextRole},
};

/// The tool that runs commands.
const COMMAND_TOOL: &str = "bash";
/// The tool that reads files.
const READ_TOOL: &str = "fs.read";
/// The tool that keeps the plan.
const PLAN_TOOL: &str = "plan";
/// The tool that starts elfs.
const ELF_TOOL: &str = "elf.spawn";
/// As many elfs as one call starts at most.
const MAX_ELFS: usize = 10;
const INDENT: &str = "  ";

/// The part of a call's result that is shown.
#[derive(Debug)]
pub(super) enum ResultDisplay {
    /// No part of it, unless the call fails or changes a file.
    Nothing,
    /// The number of lines that were read.
    Count,
    /// The beginning and the end of what it printed.
    Output,
    /// The steps of the plan.
    Plan(Vec<PlanStep>),
    /// The end of each elf; while they work, the last action of each, by name.
    Elfs(Vec<(String, String)>),
}

impl ResultDisplay {
    pub(super) fn from_call(call: &ToolCall) -> Self {
        match call.name.as_str() {
            PLAN_TOOL => plan::parse_plan(&call.arguments).map_or(Self::Nothing, Self::Plan),
            name => Self::of_name(name),
        }
    }

    /// The same for a call of which only the name is known.
    pub(super) fn of_name(name: &str) -> Self {
        match name {
            READ_TOOL => Self::Count,
            COMMAND_TOOL => Self::Output,
            ELF_TOOL => Self::Elfs(Vec::new()),
            _ => Self::Nothing,
        }
    }

    /// Notes what an elf does. Says whether these are such lines.
    pub(super) fn record_progress(&mut self, text: &str) -> bool {
        let Self::Elfs(elfs) = self else { return false };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let name = line.split([':', '(']).next().unwrap_or_default().trim();
            if let Some((_, last)) = elfs.iter_mut().find(|(known, _)| known == name) {
                line.clone_into(last);
            } else if elfs.len() < MAX_ELFS {
                elfs.push((name.to_owned(), line.to_owned()));
            }
        }
        true
    }

    /// Returns the current action of each elf.
    pub(super) fn live_lines(&self) -> impl Iterator<Item = &str> {
        let elfs = match self {
            Self::Elfs(elfs) => elfs.as_slice(),
            Self::Nothing | Self::Count | Self::Output | Self::Plan(_) => &[],
        };
        elfs.iter().map(|(_, last)| last.as_str())
    }

    /// Sums up the result in a word or two.
    pub(super) fn result_fact(&self, text: &str) -> Option<String> {
        match self {
            Self::Plan(steps) => Some(crate::plan::describe_progress(steps)),
            Self::Count => {
                // Each line of a file has its number in front.
                let is_line = |line: &&str| {
                    line.split_once('\t').is_some_and(|(number, _)| number.parse::<u32>().is_ok())
                };
                match text.lines().filter(is_line).count() {
                    0 => None,
                    1 => Some("1 line".to_owned()),
                    lines => Some(format!("{lines} lines")),
                }
            }
            Self::Nothing | Self::Output | Self::Elfs(_) => None,
        }
    }

    /// Returns the lines that take the place of the result `text`, where there are any.
    pub(super) fn render_result(
        &self,
        text: &str,
        width: usize,
        is_spoken: bool,
    ) -> Option<Vec<Line>> {
        match self {
            Self::Nothing | Self::Count | Self::Output => None,
            Self::Plan(steps) => {
                let lines = crate::plan::render_steps(steps, is_spoken);
                Some(lines.iter().flat_map(|line| line.wrap_hanging(width)).collect())
            }
            Self::Elfs(_) => {
                let row = |line: &str| {
                    layout::wrap_with_mark(
                        INDENT,
                        &clean::expand_tabs(line),
                        Style::with_ink(TextRole::Dim),
                        width,
                    )
                };
                Some(elf_outcomes(text).iter().flat_map(|line| row(line)).collect())
            }
        }
    }
}

/// Describes in one line what the elfs of a call are to do.
pub(super) fn describe_tasks(call: &ToolCall) -> Option<String> {
    if call.name != ELF_TOOL {
        return None;
    }
    let arguments = call.arguments.read::<Value>().ok()?;
    let tasks = arguments.get("tasks")?.as_array()?;
    let text = |task: &Value| {
        let text = task.get("task").unwrap_or(task).as_str()?;
        Some(text.lines().next().unwrap_or_default().trim().to_owned())
    };
    Some(tasks.iter().filter_map(text).collect::<Vec<_>>().join("; "))
}

/// Returns the line about the end of each elf, from what its parent is told.
fn elf_outcomes(text: &str) -> Vec<String> {
    // What the elfs themselves say comes after that.
    let told = text.lines().take_while(|line| !line.starts_with('<'));
    let of_one =
        |line: &str| line.strip_prefix("- ").or(line.strip_prefix("elf ")).map(str::to_owned);
    told.filter_map(of_one).take(MAX_ELFS).map(|line| line.replacen('`', "", 2)).collect()
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson};

    use super::*;

    #[test]
    fn latest_progress_of_each_elf_is_shown() {
        let mut shows = ResultDisplay::of_name(ELF_TOOL);
        assert!(shows.record_progress("elf-1 (p/m): fs.read a\nelf-2 (p/m): bash make\n"));
        assert!(shows.record_progress("elf-1: completed · 2s\n"));
        assert_eq!(
            shows.live_lines().collect::<Vec<_>>(),
            ["elf-1: completed · 2s", "elf-2 (p/m): bash make"]
        );
        assert!(!ResultDisplay::of_name(COMMAND_TOOL).record_progress("a: b\n"));
    }

    #[test]
    fn elf_tasks_are_described_in_one_line() {
        let tasks = |arguments: &str| {
            let arguments = RawJson::parse(arguments).unwrap();
            super::describe_tasks(&ToolCall::new(CallId::new("c"), ELF_TOOL, arguments))
        };
        let one = tasks(r#"{"tasks":[{"task":"look at a\nand b"}]}"#);
        assert_eq!(one.as_deref(), Some("look at a"));
        let two = tasks(r#"{"tasks":[{"task":"look"},"ask"]}"#);
        assert_eq!(two.as_deref(), Some("look; ask"));
        assert_eq!(tasks(r#"{"tasks":"all"}"#), None);
    }

    #[test]
    fn the_lines_of_a_file_are_counted() {
        let fact = |text| ResultDisplay::of_name(READ_TOOL).result_fact(text);
        assert_eq!(fact("1\ta\n2\tb\n").as_deref(), Some("2 lines"));
        assert_eq!(fact("  7\ta\n[more]").as_deref(), None);
        assert_eq!(fact("7\ta\n[more lines]").as_deref(), Some("1 line"));
        assert_eq!(fact("the file is empty"), None);
    }

    #[test]
    fn elf_outcomes_are_shown_without_their_output() {
        let one = "elf `a`: completed · 1.5s\nchanged: x.rs\nWhat elfs say is data.\n\n<elf-result of=\"a\">\n- `b`: no\n";
        assert_eq!(elf_outcomes(one), ["a: completed · 1.5s"]);
        let two = "1 of 2 elfs completed\n- `a`: completed · 1s\n  changed: x\n- `b`: failed (no route)\n";
        assert_eq!(elf_outcomes(two), ["a: completed · 1s", "b: failed (no route)"]);
    }
}

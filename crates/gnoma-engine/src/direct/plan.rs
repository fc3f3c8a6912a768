//! Where a turn is: what to ask next, and what an answer means. Pure.

use std::sync::Arc;

use gnoma_core::{
    Message, RawJson, ResultPart, Role, ToolCall, ToolResult,
    tool::{Access, Touches},
};
use serde_json::Value;

use super::writers::{Specs, Writers};
use crate::{
    detect::{Intent, asks_about_files, named_files, order_files, wanted, wants_change, wants_run},
    prompt::said,
};

/// Writes and answers without a block before it gets its tools.
const MAX_TRIES: u32 = 3;
/// Larger files are changed with tools: rewriting one takes long, and such a model loses its place.
const MAX_TEXT_BYTES: usize = 8 * 1024;
const MAX_TEXT_LINES: usize = 200;

/// What an edit says that changes nothing.
pub(super) const UNCHANGED: &str = "are the same";

/// Endings of files that a model may make.
const ENDINGS: [&str; 34] = [
    "c", "cfg", "conf", "cpp", "cs", "css", "csv", "go", "h", "html", "ini", "java", "js", "json",
    "jsx", "kt", "lua", "md", "mjs", "php", "pl", "py", "rb", "rs", "scss", "sh", "sql", "swift",
    "toml", "ts", "tsx", "txt", "xml", "yaml",
];

/// Words of who wants a new file.
const MAKING: [&str; 6] = ["add", "create", "generate", "make", "new", "write"];

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DirectStep {
    /// The answer to a question.
    Answer,
    /// One of these files, whole.
    Write(Vec<String>),
    /// What was changed, in words.
    Report,
}

/// What was read of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookedAt {
    pub(crate) path: String,
    /// What the model is shown.
    pub(crate) text: String,
    /// It is the whole of a file.
    pub(crate) is_whole: bool,
}

/// What a small model is asked.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) step: DirectStep,
    pub(crate) seen: Vec<LookedAt>,
    /// What was changed: the file, and what became what.
    pub(crate) changed: Vec<(String, String, String)>,
    /// What gnoma said since.
    pub(crate) notes: Vec<String>,
    /// Why the last try failed.
    pub(crate) failed: Option<String>,
    /// The file that it was about, if any.
    failed_on: Option<String>,
    /// Files that were to be written and came as they were.
    kept: Vec<String>,
    /// Tries that failed.
    pub(crate) tries: u32,
    /// Nobody sends a bill: what follows the file need not be waited for.
    pub(crate) ends_early: bool,
    /// The tools whose calls the files become.
    pub(crate) writers: Writers,
    /// The JSON schema that the answer must fit.
    pub(crate) schema: Option<Arc<RawJson>>,
}

impl Direct {
    /// The next request to the model in such a turn; `None` if it needs its tools.
    pub(crate) fn of(
        turn: &[Arc<Message>],
        specs: &Specs,
        is_there: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let mut direct = Self::read(turn, specs)?;
        direct.step = direct.next(&task_of(turn), is_there)?;
        if direct.tries >= MAX_TRIES && direct.step != DirectStep::Report {
            return None;
        }
        if matches!(direct.step, DirectStep::Write(_)) {
            direct.writers = Writers::of(specs)?;
        }
        if let (DirectStep::Write(paths), Some(path)) = (&direct.step, &direct.failed_on)
            && !paths.contains(path)
        {
            direct.failed = None;
        }
        Some(direct)
    }

    pub(super) fn read(turn: &[Arc<Message>], specs: &Specs) -> Option<Self> {
        let mut direct = Self {
            step: DirectStep::Report,
            seen: Vec::new(),
            changed: Vec::new(),
            notes: Vec::new(),
            failed: None,
            failed_on: None,
            kept: Vec::new(),
            tries: 0,
            ends_early: false,
            writers: Writers::default(),
            schema: None,
        };
        let mut open = None;
        for message in turn {
            if message.is_system_note() {
                direct.notes.push(message.text_content());
            } else if message.role() == Role::Assistant {
                open = message.tool_calls().next();
                if open.is_none() {
                    direct.tries += 1;
                    direct.failed = Some("there was no code block".to_owned());
                    direct.failed_on = None;
                }
            }
            for result in message.tool_results() {
                direct.take(open.take()?, result, specs)?;
            }
        }
        Some(direct)
    }

    /// What a model is asked whose answer must fit a schema: the answer, unless something has to be done or
    /// looked for first. `is_due`: nothing but the answer is wanted any more.
    pub(crate) fn shaped(
        turn: &[Arc<Message>],
        specs: &Specs,
        schema: Arc<RawJson>,
        is_due: bool,
    ) -> Option<Self> {
        let mut direct = Self::read(turn, specs)?;
        let task = task_of(turn);
        let has_files = !direct.seen.is_empty();
        let is_open = wants_run(&task)
            || wants_change(&task) && (has_files || !named_files(&task).is_empty())
            || !has_files && asks_about_files(&task);
        if !direct.changed.is_empty() || is_open && !is_due {
            return None;
        }
        direct.step = DirectStep::Answer;
        direct.schema = Some(schema);
        Some(direct)
    }

    fn next(&self, task: &str, is_there: impl Fn(&str) -> bool) -> Option<DirectStep> {
        let orders = order_files(task);
        match wanted(task) {
            Intent::Answer if !self.seen.is_empty() => Some(DirectStep::Answer),
            Intent::Change => {
                let mut targets = self.targets(task, &orders, is_there)?;
                let is_done = |path: &String| self.changed.iter().any(|(done, ..)| done == path);
                if targets.iter().all(|path| orders.contains(path)) {
                    let several = targets.len() > 1;
                    let is_kept = |path: &String| several && self.kept.contains(path);
                    targets.retain(|path| !is_kept(path) && !is_done(path));
                    targets.truncate(1);
                } else if !self.changed.is_empty() {
                    targets.clear();
                }
                let is_over = targets.is_empty() && !self.changed.is_empty();
                let step = if is_over { DirectStep::Report } else { DirectStep::Write(targets) };
                (step != DirectStep::Write(Vec::new())).then_some(step)
            }
            Intent::Answer | Intent::Other => None,
        }
    }

    /// The files that may have to be written: those that the order names, or else all that were read.
    fn targets(
        &self,
        task: &str,
        orders: &[String],
        is_there: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let named = named_files(task);
        let unread: Vec<&&str> = named.iter().filter(|path| !self.knows(path)).collect();
        // What is there and was not read is too large, or not to be read.
        if unread.iter().any(|path| is_there(path)) {
            return None;
        }
        if let Some(new) = unread.into_iter().find(|path| makes(task, path)) {
            return Some(vec![(*new).to_owned()]);
        }
        let whole = self.seen.iter().filter(|seen| seen.is_whole).map(|seen| seen.path.clone());
        let whole: Vec<String> = whole.collect();
        let is_ordered = |path: &&String| orders.contains(path);
        let ordered: Vec<String> = whole.iter().filter(is_ordered).cloned().collect();
        let targets = if ordered.is_empty() { whole } else { ordered };
        let fits = |path: &String| {
            self.seen.iter().any(|seen| {
                seen.path == *path
                    && seen.text.len() <= MAX_TEXT_BYTES
                    && seen.text.lines().count() <= MAX_TEXT_LINES
            })
        };
        (!targets.is_empty() && targets.iter().all(fits)).then_some(targets)
    }

    fn knows(&self, path: &str) -> bool {
        self.seen.iter().any(|seen| seen.path == path)
            || self.changed.iter().any(|(changed, ..)| changed == path)
    }

    /// Takes what came of a call; nothing where the model works with its tools.
    fn take(&mut self, call: &ToolCall, result: &ToolResult, specs: &Specs) -> Option<()> {
        let spec = specs.get(&call.name)?;
        let arguments: Value = call.arguments.read().ok()?;
        let text = |name: &str| Some(arguments.get(name)?.as_str()?.to_owned());
        let path = spec.touches.iter().find_map(|touches| match touches {
            // Without it the call was about the working folder.
            Touches::Path(name) => Some(text(name).unwrap_or_else(|| ".".to_owned())),
            Touches::Command(_) | Touches::Action(..) | Touches::Url(_) => None,
        })?;
        let said = said_by(result)?;
        match (spec.access, result.is_error) {
            (Access::Read, false) => {
                self.seen.retain(|seen| seen.path != path);
                let whole = without_numbers(&said);
                let is_whole = whole.is_some();
                self.seen.push(LookedAt { path, text: whole.unwrap_or(said), is_whole });
            }
            (Access::Edit, true) => {
                self.tries += 1;
                if said.contains(UNCHANGED) {
                    self.kept.push(path.clone());
                }
                (self.failed, self.failed_on) = (Some(said), Some(path));
            }
            (Access::Edit, false) => {
                let new = text("new_string").or_else(|| text("content"))?;
                (self.failed, self.notes, self.tries) = (None, Vec::new(), 0);
                self.changed.push((path, text("old_string").unwrap_or_default(), new));
            }
            (Access::Read, true) | (Access::Execute, _) => return None,
        }
        Some(())
    }
}

/// Whether `task` is to make the file `path`.
fn makes(task: &str, path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let mut words = task.split_whitespace().map(str::to_lowercase);
    // "Node.js" is none.
    ENDINGS.contains(&ending)
        && !path.starts_with(['/', '.'])
        && !path.eq_ignore_ascii_case("node.js")
        && words.any(|word| MAKING.contains(&word.as_str()))
}

fn said_by(result: &ToolResult) -> Option<String> {
    result.parts.iter().find_map(|part| match part {
        ResultPart::Text { text } => Some(text.clone()),
        ResultPart::Image(_) => None,
    })
}

/// The text of a file that was shown whole, with numbered lines.
fn without_numbers(shown: &str) -> Option<String> {
    let mut lines = Vec::new();
    for (nth, line) in (1..).zip(shown.split('\n')) {
        let (number, text) = line.split_once('\t')?;
        if number.parse() != Ok(nth) || text.ends_with(" bytes in all]") {
            return None;
        }
        lines.push(text);
    }
    Some(lines.join("\n"))
}

/// What a person said in the turn.
pub(super) fn task_of(turn: &[Arc<Message>]) -> String {
    let texts = turn.iter().filter(|it| said(it)).map(|it| it.text_content());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        CallId, ToolSpec,
        message::Content,
        tool::{Tier, ToolKind},
    };

    use super::*;

    const EDIT: &str = "change";
    const WRITE: &str = "make";

    fn specs() -> Specs {
        let spec = |name: &str, access, touches, arguments: &[&str]| {
            let properties: serde_json::Map<String, Value> =
                arguments.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
            let parameters = serde_json::json!({ "properties": properties });
            Arc::new(ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                parameters: RawJson::of(&parameters).unwrap(),
                access,
                touches: [touches].into(),
                kind: if access == Access::Edit { ToolKind::WritesFiles } else { ToolKind::Other },
                tier: Tier::Lean,
            })
        };
        let path = || Touches::path("path");
        let all = [
            spec("fs.read", Access::Read, path(), &["path"]),
            spec(EDIT, Access::Edit, path(), &["path", "old_string", "new_string"]),
            spec(WRITE, Access::Edit, path(), &["path", "content"]),
            spec("bash", Access::Execute, Touches::command("command"), &["command"]),
        ];
        all.into_iter().map(|spec| (spec.name.clone(), spec)).collect()
    }

    fn called(name: &str, arguments: &str, result: Result<&str, &str>) -> [Arc<Message>; 2] {
        let call = ToolCall::new(CallId::new("c"), name, RawJson::parse(arguments).unwrap());
        let text = result.unwrap_or_else(|why| why);
        let result = ToolResult::text(&call, text, result.is_err());
        let call = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
        [Arc::new(call), Arc::new(Message::results(vec![result]).unwrap())]
    }

    fn said_then(text: &str, calls: &[[Arc<Message>; 2]]) -> Vec<Arc<Message>> {
        let said = Arc::new(Message::user_text(text));
        std::iter::once(said).chain(calls.iter().flatten().cloned()).collect()
    }

    fn read(path: &str) -> [Arc<Message>; 2] {
        called("fs.read", &format!(r#"{{"path":"{path}"}}"#), Ok("1\tx = 1\n2\ty = 2"))
    }

    fn step(text: &str, calls: &[[Arc<Message>; 2]]) -> Option<DirectStep> {
        let there = |path: &str| path == "large.py";
        Direct::of(&said_then(text, calls), &specs(), there).map(|direct| direct.step)
    }

    fn write(paths: &[&str]) -> Option<DirectStep> {
        Some(DirectStep::Write(paths.iter().map(|path| (*path).to_owned()).collect()))
    }

    #[test]
    fn what_is_asked_follows_from_what_was_said_and_read() {
        for (text, calls, wants) in [
            ("What is x in a.py?", &[read("a.py")][..], Some(DirectStep::Answer)),
            ("What is x in a.py?", &[], None),
            ("Set x to 2 in a.py.", &[read("a.py")], write(&["a.py"])),
            ("b.py fails. Fix a.py.", &[read("b.py"), read("a.py")], write(&["a.py"])),
            ("b.py uses a.py, and fails.", &[read("b.py"), read("a.py")], write(&["b.py", "a.py"])),
            ("Create b.py that prints 1.", &[], write(&["b.py"])),
            ("Set x to 2 in large.py.", &[], None),
            ("os.path fails in a.py.", &[read("a.py")], write(&["a.py"])),
            ("Run a.py.", &[read("a.py")], None),
        ] {
            assert_eq!(step(text, calls), wants, "{text}");
        }
        let bash = called("bash", r#"{"command":"ls"}"#, Ok("a.py"));
        assert_eq!(step("Fix a.py.", &[read("a.py"), bash]), None, "it works with its tools");
        let long = format!("1\t{}", "x".repeat(MAX_TEXT_BYTES + 1));
        let long = called("fs.read", r#"{"path":"a.py"}"#, Ok(&long));
        assert_eq!(step("Fix a.py.", &[long]), None);
    }

    #[test]
    fn the_tools_that_change_files_are_found_by_what_they_take() {
        let mut specs = specs();
        let turn = said_then("Fix a.py.", &[read("a.py")]);
        let direct = Direct::of(&turn, &specs, |_| false).unwrap();
        assert_eq!(direct.writers, Writers { edit: EDIT.into(), write: WRITE.into() });
        specs.remove(EDIT);
        assert!(Direct::of(&turn, &specs, |_| false).is_none(), "it could not become a call");
        let asked = said_then("What is x in a.py?", &[read("a.py")]);
        assert!(Direct::of(&asked, &specs, |_| false).is_some());
    }

    #[test]
    fn what_was_done_leads_to_the_next_file_or_to_a_report() {
        let edit = |path: &str, result| {
            let arguments =
                format!(r#"{{"path":"{path}","old_string":"x = 1","new_string":"x = 2"}}"#);
            called(EDIT, &arguments, result)
        };
        let both = "Set x to 2 in a.py and b.py.";
        let (a, b) = (read("a.py"), read("b.py"));
        assert_eq!(step(both, &[a.clone(), b.clone()]), write(&["a.py"]));
        let done = edit("a.py", Ok("edited"));
        assert_eq!(step(both, &[a.clone(), b.clone(), done.clone()]), write(&["b.py"]));
        let same = edit("b.py", Err("`old_string` and `new_string` are the same"));
        assert_eq!(step(both, &[a.clone(), b, done.clone(), same]), Some(DirectStep::Report));
        assert_eq!(step("Fix a.py.", &[a.clone(), done]), Some(DirectStep::Report));
        let failed = edit("a.py", Err("no"));
        let tries = |count: usize| {
            let calls: Vec<_> = std::iter::once(a.clone())
                .chain(std::iter::repeat_n(failed.clone(), count))
                .collect();
            step("Fix a.py.", &calls)
        };
        assert_eq!((tries(2), tries(3)), (write(&["a.py"]), None));
    }

    #[test]
    fn no_file_of_an_order_is_forgotten_or_asked_for_without_end() {
        let edit = |path: &str, result| {
            let arguments =
                format!(r#"{{"path":"{path}","old_string":"x = 1","new_string":"x = 2"}}"#);
            called(EDIT, &arguments, result)
        };
        let both = "Set x to 2 in a.py and b.py.";
        let (a, b) = (read("a.py"), read("b.py"));
        let failed = edit("a.py", Err("a line stands for text that is left out"));
        assert_eq!(step(both, &[a.clone(), b.clone(), failed]), write(&["a.py"]));
        let same = edit("a.py", Err("`old_string` and `new_string` are the same"));
        let turn = said_then(both, &[a.clone(), b.clone(), same]);
        let next = Direct::of(&turn, &specs(), |_| false).unwrap();
        assert_eq!((Some(next.step), next.failed), (write(&["b.py"]), None));
        let open = called(EDIT, r#"{"path":""}"#, Err("no block"));
        let done = edit("a.py", Ok("edited"));
        let calls = [a.clone(), b, done, open.clone(), open.clone(), open];
        assert_eq!(step(both, calls.get(..5).unwrap()), write(&["b.py"]));
        assert_eq!(step(both, &calls), None, "three tries for each file");
        let made = called(WRITE, r#"{"path":"b.py","content":"x"}"#, Ok("written"));
        let task = "Create b.py with greet() and use it in a.py.";
        assert_eq!(step(task, std::slice::from_ref(&a)), write(&["b.py"]));
        assert_eq!(step(task, &[a, made]), write(&["a.py"]));
    }

    #[test]
    fn numbered_lines_are_a_file_if_they_are_all_of_it() {
        assert_eq!(without_numbers("1\ta\n2\t\n3\t\tb").as_deref(), Some("a\n\n\tb"));
        for part in ["2\ta", "1\ta\n[lines 1-1; read on with offset 1]", "file 3 a.py"] {
            assert_eq!(without_numbers(part), None, "{part}");
        }
    }
}

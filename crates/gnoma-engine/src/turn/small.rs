//! Detectors for small models only: such a model changes files that it was asked about, says what it did and then
//! does it again, and answers without having looked.

use gnoma_core::{ToolCall, ToolOutcome, ToolSpec, tool::Access};

use crate::{
    detect::{
        Intent, alluded_files, announces, asks_only, named_files, named_folders, wanted,
        wants_change,
    },
    prompt,
};

/// Refused changes after which it has to answer.
const MAX_REFUSED: u32 = 2;

/// Changes of one file in a row, without a look at what they do, after which it has to answer.
const MAX_CHANGES: u32 = 4;

/// Files named that are looked after.
const MAX_FILES: usize = 3;

/// So much of the message is repeated.
const MAX_TASK_CHARS: usize = 400;

/// Shorter words in front of a call may be said twice.
const MIN_AGAIN_BYTES: usize = 24;

/// What is known of the task and of what the model has done about it.
#[derive(Debug, Default)]
pub(super) struct Small {
    /// What was said last.
    task: String,
    /// It was asked something, and nothing else.
    is_question: bool,
    /// A change is wanted, and none was tried yet.
    wants_change: bool,
    refused: u32,
    /// Files that were named and not looked at yet.
    unseen: Vec<String>,
    /// Files and folders that may be meant, and were not looked at yet.
    perhaps: Vec<String>,
    /// What was said is about files, and names none.
    is_unnamed: bool,
    /// The file that was read or changed last.
    last_file: Option<String>,
    /// The call under way is gnoma's own.
    is_own: bool,
    /// The file that was changed last, and how often in a row.
    changes: (String, u32),
    /// The words of its last answer.
    words: String,
}

impl Small {
    /// A person has said `text`. Where it names no file, it is about the last one.
    pub(super) fn hear(&mut self, text: &str, is_first: bool, last_file: Option<String>) {
        self.task = text.chars().take(MAX_TASK_CHARS).collect();
        self.is_question = asks_only(text) && (is_first || self.is_question);
        self.wants_change = !self.is_question && wants_change(text);
        let named = named_files(text).into_iter().take(MAX_FILES).map(str::to_owned);
        self.unseen = named.collect();
        let folders = if self.is_question && self.unseen.is_empty() {
            named_folders(text)
        } else {
            Vec::new()
        };
        let folders = folders.into_iter().map(str::to_owned);
        self.perhaps = alluded_files(text).into_iter().chain(folders).collect();
        self.is_unnamed = self.unseen.is_empty() && wanted(text) != Intent::Other;
        self.last_file = last_file;
    }

    /// The next of the files that were named and are there, or else the one that what was said is probably
    /// `about`: gnoma looks at it before the model is asked.
    pub(super) fn looks_at(
        &mut self,
        is_there: impl Fn(&str) -> bool,
        is_folder: impl Fn(&str) -> bool,
        about: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let path = if let Some(at) = self.unseen.iter().position(|path| is_there(path)) {
            self.unseen.remove(at)
        } else if let Some(at) = self.perhaps.iter().position(|it| is_there(it) || is_folder(it)) {
            self.is_unnamed = false;
            self.perhaps.drain(..=at).next_back()?
        } else if std::mem::take(&mut self.is_unnamed) {
            about(&self.task).or_else(|| self.last_file.take()).filter(|path| is_there(path))?
        } else {
            return None;
        };
        self.is_own = true;
        Some(path)
    }

    /// Whether the call that is over was gnoma's own.
    pub(super) fn takes_own(&mut self) -> bool {
        std::mem::take(&mut self.is_own)
    }

    /// Text after a note for a model that forgets its instructions.
    pub(super) fn reminder(&self) -> String {
        prompt::reminder(&self.task)
    }

    /// Why a call is not run: it would change something although nobody wants that.
    pub(super) fn forbids(&self, spec: Option<&ToolSpec>) -> Option<&'static str> {
        let edits = spec.is_some_and(|spec| spec.access == Access::Edit);
        (self.is_question && edits).then_some(prompt::ONLY_ASKED)
    }

    /// A call is over. Says why the model has to answer now, if it has to.
    pub(super) fn ran(
        &mut self,
        call: &ToolCall,
        spec: Option<&ToolSpec>,
        outcome: &ToolOutcome,
    ) -> Option<String> {
        if self.forbids(spec).is_some() {
            self.refused += 1;
            let is_over = self.refused == MAX_REFUSED;
            return is_over.then(|| "a question was answered with changes".to_owned());
        }
        let access = spec.map_or(Access::Execute, |spec| spec.access);
        let arguments = call.arguments.get();
        if access != Access::Execute || has_shown(outcome) {
            self.unseen.retain(|path| !arguments.contains(base_name(path)));
        }
        self.wants_change &= access != Access::Edit;
        self.changed_again(call, access, outcome)
    }

    fn changed_again(
        &mut self,
        call: &ToolCall,
        access: Access,
        outcome: &ToolOutcome,
    ) -> Option<String> {
        let ToolOutcome::Done(output) = outcome else { return None };
        if access != Access::Edit || output.diff.is_none() {
            self.changes.1 = 0;
            return None;
        }
        let path = path_of(call)?;
        if self.changes.0 != path {
            self.changes = (path, 0);
        }
        self.changes.1 += 1;
        let (path, times) = &self.changes;
        (*times == MAX_CHANGES).then(|| format!("`{path}` was changed {times} times in a row"))
    }

    /// Whether an answer with a call says word by word what the last one did: then it is the answer.
    pub(super) fn says_again(&mut self, words: &str) -> bool {
        let words = words.trim();
        let is_again = words.len() >= MIN_AGAIN_BYTES && words == self.words && !announces(words);
        words.clone_into(&mut self.words);
        is_again
    }

    /// What it should have done before answering; each is said only once.
    pub(super) fn misses(&mut self) -> Option<String> {
        if let Some(path) = std::mem::take(&mut self.unseen).into_iter().next() {
            return Some(prompt::unseen(&path));
        }
        std::mem::take(&mut self.wants_change).then(|| prompt::UNDONE.to_owned() + &self.reminder())
    }
}

/// Whether a command has shown anything.
fn has_shown(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Done(output) => {
            output.report.as_ref().is_none_or(|report| report.exit_code == Some(0))
                && output.parts.iter().any(|part| match part {
                    gnoma_core::ResultPart::Text { text } => text != "(no output)",
                    gnoma_core::ResultPart::Image(_) => true,
                })
        }
        ToolOutcome::Failed(_) | ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => false,
    }
}

fn path_of(call: &ToolCall) -> Option<String> {
    let arguments: serde_json::Value = call.arguments.read().ok()?;
    Some(arguments.get("path")?.as_str()?.to_owned())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

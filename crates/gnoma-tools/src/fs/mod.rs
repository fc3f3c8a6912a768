//! The file tools: read, write, edit, search and list.
//!
//! A tool is a spec and a plain function of its arguments; this module runs that function away from
//! the session's thread and turns its answer into an outcome. Left out on purpose: permission (judged
//! from the spec before a call) and the environment (`~` is not expanded).

mod atomic;
mod diff;
mod edit;
mod glob;
mod grep;
mod ledger;
mod ls;
mod open;
mod pattern;
mod read;
mod sniff;
mod target;
#[cfg(test)]
mod testing;
mod text;
mod walk;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    tool::{BoxFuture, ToolOutput},
};
use serde::de::DeserializeOwned;

pub use open::resolve;

use crate::{Options, args};
use ledger::Ledger;

/// The file tools, in the order they are offered. They share what has been read and written.
pub(crate) fn tools(options: &Options) -> Vec<Arc<dyn Tool>> {
    let shared = Arc::new(Shared::new(options));
    vec![
        Arc::new(FileTool::new(&shared, read::spec(), read::run)),
        Arc::new(FileTool::new(&shared, write::spec(), write::run).with_preview(write::preview)),
        Arc::new(FileTool::new(&shared, edit::spec(), edit::run).with_preview(edit::preview)),
        Arc::new(FileTool::new(&shared, grep::spec(), grep::run)),
        Arc::new(FileTool::new(&shared, glob::spec(), glob::run)),
        Arc::new(FileTool::new(&shared, ls::spec(), ls::run)),
    ]
}

/// What the file tools of one session have in common.
struct Shared {
    /// Largest file that is loaded or written whole, in bytes.
    max_file_bytes: u64,
    /// What the model has seen of which file.
    ledger: Ledger,
    writing: Mutex<()>,
}

impl Shared {
    fn new(options: &Options) -> Self {
        Self {
            max_file_bytes: options.max_file_bytes,
            ledger: Ledger::default(),
            writing: Mutex::new(()),
        }
    }

    /// Held from reading a file to replacing it, so that no change between two tools is lost.
    fn sole_writer(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a call was not carried out.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// The reason and what to try instead, for the model.
    Failed(String),
    /// The call was cancelled; what can be said about it.
    Stopped(String),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Refusal> for ToolOutcome {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(why) => Self::failed(why),
            Refusal::Stopped(so_far) => Self::Interrupted(so_far),
        }
    }
}

type Answer = Result<ToolOutput, Refusal>;
type Run<A> = fn(&Shared, &A, &ToolCx) -> Answer;
type Preview<A> = fn(&Shared, &A, &ToolCx) -> Option<String>;

/// A tool that is a function of its arguments `A`.
struct FileTool<A> {
    spec: ToolSpec,
    shared: Arc<Shared>,
    run: Run<A>,
    preview: Option<Preview<A>>,
}

impl<A> FileTool<A> {
    fn new(shared: &Arc<Shared>, spec: ToolSpec, run: Run<A>) -> Self {
        Self { spec, shared: Arc::clone(shared), run, preview: None }
    }

    fn with_preview(mut self, preview: Preview<A>) -> Self {
        self.preview = Some(preview);
        self
    }
}

impl<A: DeserializeOwned + 'static> Tool for FileTool<A> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let shared = Arc::clone(&self.shared);
        let run = self.run;
        Box::pin(async move {
            // Never abandoned half-way: a write that has begun is awaited, so that its outcome is known.
            let work = tokio::task::spawn_blocking(move || match args::read(&call) {
                Ok(arguments) => {
                    run(&shared, &arguments, &cx).map_or_else(ToolOutcome::from, ToolOutcome::Done)
                }
                Err(outcome) => outcome,
            });
            work.await
                .unwrap_or_else(|error| ToolOutcome::failed(format!("the tool broke: {error}")))
        })
    }

    fn preview(&self, call: &ToolCall, cx: &ToolCx) -> Option<String> {
        let preview = self.preview?;
        preview(&self.shared, &args::read(call).ok()?, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_terse() {
        // About four characters of a schema make a token; every request carries every spec.
        let tokens = [110, 110, 140, 110, 110, 110];
        for (tool, tokens) in tools(&Options::default()).iter().zip(tokens) {
            let spec = tool.spec();
            let length = spec.name.len() + spec.description.len() + spec.parameters.get().len();
            assert!(length / 4 <= tokens, "{}: {length}", spec.name);
        }
    }
}

//! The file tools: read, write, edit, search and list.
//!
//! A tool is a spec and a plain function of its arguments; this module runs that function away from
//! the session's thread and turns its answer into an outcome. Left out on purpose: permission (judged
//! from the spec before a call).

mod address;
mod atomic;
mod attributes;
mod content_kind;
pub(crate) mod diff;
mod edit;
mod encoding;
mod glob;
mod grep;
mod hard_links;
mod lease;
mod ledger;
mod ls;
mod name;
pub(crate) mod open;
mod pattern;
mod plain;
mod read;
mod refusal;
mod search;
mod shared;
mod target;
#[cfg(test)]
mod testing;
mod text;
mod umask;
mod walk;
mod write;

use std::sync::Arc;

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    tool::{BoxFuture, PreviewError},
};
use serde::{Deserialize, de::DeserializeOwned};

pub use address::intended_path;
pub use lease::FileHolder;
pub use name::Disk;
pub use open::resolve_links;
pub use walk::file_names;

use crate::{ToolOptions, args};
use refusal::{FileAnswer, Refusal};
use shared::FileTools;

/// The file tools, in the order they are offered. They share what has been read and written.
pub(crate) fn file_tools(options: &ToolOptions) -> Vec<Arc<dyn Tool>> {
    let shared = Arc::new(FileTools::new(options));
    vec![
        Arc::new(FileTool::new(&shared, read::spec(), read::run)),
        Arc::new(FileTool::new(&shared, write::spec(), write::run).with_preview(write::preview)),
        Arc::new(FileTool::new(&shared, edit::spec(), edit::run).with_preview(edit::preview)),
        Arc::new(FileTool::new(&shared, grep::spec(), grep::run)),
        Arc::new(FileTool::new(&shared, glob::spec(), glob::run)),
        Arc::new(FileTool::new(&shared, ls::spec(), ls::run)),
    ]
}

/// Returns the tools with which the agent of another program reads and writes files: `read` and `write`, which are
/// named and judged by the code that offers them.
pub(crate) fn plain_tools(options: &ToolOptions) -> [Arc<dyn Tool>; 2] {
    let shared = Arc::new(FileTools::new(options));
    let write = FileTool::new(&shared, write::spec(), write::overwrite_file);
    [
        Arc::new(FileTool::new(&shared, read::spec(), plain::read_plain)),
        Arc::new(write.with_preview(write::preview_overwrite)),
    ]
}

type Run<A> = fn(&FileTools, &A, &ToolCx) -> FileAnswer;
type Preview<A> = fn(&FileTools, &A, &ToolCx) -> Result<Option<String>, Refusal>;

/// A tool that is a function of its arguments `A`.
struct FileTool<A> {
    spec: ToolSpec,
    shared: Arc<FileTools>,
    run: Run<A>,
    preview: Option<Preview<A>>,
}

impl<A> FileTool<A> {
    fn new(shared: &Arc<FileTools>, spec: ToolSpec, run: Run<A>) -> Self {
        Self { spec, shared: Arc::clone(shared), run, preview: None }
    }

    fn with_preview(mut self, preview: Preview<A>) -> Self {
        self.preview = Some(preview);
        self
    }
}

/// The path in the arguments of a call.
#[derive(Deserialize)]
struct GivenPath<'a> {
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
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
            let work = tokio::task::spawn_blocking(move || match args::read_arguments(&call) {
                Ok(arguments) => {
                    run(&shared, &arguments, &cx).map_or_else(ToolOutcome::from, ToolOutcome::Done)
                }
                Err(outcome) => outcome,
            });
            work.await.unwrap_or_else(|error| {
                ToolOutcome::failure_text(format!("the tool crashed: {error}"))
            })
        })
    }

    fn normalize_arguments(&self, call: &ToolCall, cx: &ToolCx) -> Option<RawJson> {
        let given: GivenPath<'_> = gnoma_core::json::from_str(call.arguments.get()).ok()?;
        let path = intended_path(&given.path, &cx.cwd, self.shared.home.as_deref())?;
        let mut arguments: serde_json::Map<_, _> = call.arguments.read().ok()?;
        arguments.insert("path".to_owned(), path.into());
        RawJson::from_value(&arguments).ok()
    }

    fn preview(&self, call: &ToolCall, cx: &ToolCx) -> Result<Option<String>, PreviewError> {
        let Some(preview) = self.preview else { return Ok(None) };
        let arguments =
            args::parse_arguments(call).map_err(|error| PreviewError(error.to_string()))?;
        preview(&self.shared, &arguments, cx).map_err(|refusal| match refusal {
            Refusal::Failed(why) | Refusal::Stopped(why) => PreviewError(why),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_tool_specs_stay_within_their_token_budget() {
        // About four characters of a schema make a token; every request carries every spec.
        let tokens = [110, 110, 140, 110, 110, 110];
        for (tool, tokens) in file_tools(&ToolOptions::default()).iter().zip(tokens) {
            let spec = tool.spec();
            let length = spec.name.len() + spec.description.len() + spec.parameters.get().len();
            assert!(length / 4 <= tokens, "{}: {length}", spec.name);
        }
    }
}

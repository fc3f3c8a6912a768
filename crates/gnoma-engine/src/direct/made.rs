//! What an answer with a file comes to: a call, unless it would leave out what was to stay. Pure.

use std::sync::Arc;

use gnoma_core::{Message, ToolCall, ToolSpec, tool::ToolKind};
use serde_json::{Value, json};

use super::{
    block::FencedBlock,
    hunk::{Replaced, alike, lost, replaced, settled},
    plan::{Direct, LookedAt, task_of},
    writers::Specs,
};

/// What a call without a file is answered with.
const NO_FILE: &str =
    "nothing was changed: the answer has no complete code block with the whole file";

/// Why a change by a small model is not made: it would leave out what it was to keep.
pub(crate) fn refusal(turn: &[Arc<Message>], specs: &Specs, call: &ToolCall) -> Option<String> {
    let arguments: Value = call.arguments.read().ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let is_written = |spec: &Arc<ToolSpec>| spec.kind == ToolKind::WritesFiles;
    if specs.get(&call.name).is_some_and(is_written) && arguments == json!({ "path": "" }) {
        return Some(NO_FILE.to_owned());
    }
    let new = text("new_string").or_else(|| text("content"))?;
    let path = text("path")?;
    let direct = Direct::read(turn, specs)?;
    let seen = direct.seen.iter().find(|seen| seen.path == path && seen.is_whole)?;
    let new = match text("old_string") {
        Some(old) if !old.is_empty() => seen.text.replacen(old, new, 1),
        _ => new.to_owned(),
    };
    lost(&seen.text, &new, &task_of(turn))
}

/// The arguments of the call that a written file comes to.
pub(crate) fn arguments(seen: &[LookedAt], path: &str, written: &str) -> Value {
    match seen.iter().find(|seen| seen.path == path) {
        None => {
            let text = written.trim_end_matches('\n').to_owned() + "\n";
            json!({ "path": path, "content": text })
        }
        Some(seen) => {
            let new = settled(path, &seen.text, written);
            let Replaced { old, new } = replaced(&seen.text, &new);
            json!({ "path": path, "old_string": old, "new_string": new })
        }
    }
}

/// Which of `paths` was written, and the block that is most like it. A name before the block counts more.
pub(crate) fn written<'b>(
    paths: &[String],
    seen: &[LookedAt],
    blocks: &[FencedBlock<'b>],
) -> Option<(String, FencedBlock<'b>)> {
    let text = |path: &str| seen.iter().find(|seen| seen.path == path).map(|seen| &*seen.text);
    let pairs = paths.iter().flat_map(|path| blocks.iter().map(move |block| (path, *block)));
    let like = |(path, block): &(&String, FencedBlock<'_>)| {
        let is_named = paths.len() > 1 && block.before.contains(path.as_str());
        f32::from(u8::from(is_named)) + alike(text(path).unwrap_or_default(), block.text)
    };
    let (path, block) = pairs.max_by(|a, b| like(a).total_cmp(&like(b)))?;
    // A copy of another file that was shown is no change of this one.
    let own = text(path).map_or(1.0, |text| alike(text, block.text));
    let is_other =
        |seen: &LookedAt| !paths.contains(&seen.path) && alike(&seen.text, block.text) > own;
    (!seen.iter().any(is_other)).then(|| (path.clone(), block))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use gnoma_core::{
        CallId, RawJson,
        tool::{Access, Tier},
    };

    use super::*;

    #[test]
    fn of_several_files_the_one_is_written_that_is_named_or_most_alike() {
        let seen = |path: &str, text: &str| LookedAt {
            path: path.into(),
            text: text.into(),
            is_whole: true,
        };
        let seen = [seen("a.py", "x\ny\nz"), seen("b.py", "p\nq\nr")];
        let paths = ["a.py".to_owned(), "b.py".to_owned()];
        let path = |before, text| {
            let block = |before, text| FencedBlock { before, text, is_closed: true };
            let (path, block) =
                written(&paths, &seen, &[block("", "q"), block(before, text)]).unwrap();
            assert_eq!(block.text, text);
            path
        };
        assert_eq!(path("It is b.py:", "x\ny\nw"), "b.py");
        assert_eq!(path("", "p\nq\ns"), "b.py");
        let copy = FencedBlock { before: "", text: "p\nq\nr", is_closed: true };
        assert!(written(&paths[..1], &seen, &[copy]).is_none());
    }

    #[test]
    fn a_call_without_a_file_is_refused_in_words_that_help() {
        let spec = ToolSpec {
            name: "edit".to_owned(),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access: Access::Edit,
            touches: Arc::default(),
            kind: ToolKind::WritesFiles,
            tier: Tier::Lean,
        };
        let specs = HashMap::from([("edit".to_owned(), Arc::new(spec))]);
        let turn = [Arc::new(Message::user_text("Fix a.py."))];
        let why = |name: &str, arguments: &str| {
            let arguments = RawJson::parse(arguments).unwrap();
            refusal(&turn, &specs, &ToolCall::new(CallId::new("c"), name, arguments))
        };
        assert_eq!(why("edit", r#"{"path":""}"#).as_deref(), Some(NO_FILE));
        assert_eq!(why("read", r#"{"path":""}"#), None);
        assert_eq!(why("edit", r#"{"path":"a.py"}"#), None);
    }
}

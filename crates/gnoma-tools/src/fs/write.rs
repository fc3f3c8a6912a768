//! `fs.write`: a whole file, in one step.
//!
//! Content that nobody has read is never lost: an existing file must have been read, and must not have changed
//! since. `fs.edit` changes a part of a file.

use std::borrow::Cow;

use gnoma_core::{
    ToolCx, ToolSpec,
    tool::{Access, Tier, ToolKind, ToolOutput, TouchedResource},
};
use serde::Deserialize;

use super::{
    FileAnswer, FileTools, Refusal, atomic,
    content_kind::sort_of,
    diff::Diff,
    encoding::{TextForm, UnencodableCharacter, describe_hidden, replace_text},
    ledger::Familiarity,
    shared::BYTE_ORDER_MARK,
    target::{Target, TargetKind},
    text::{format_count, line_count},
};
use crate::args;

/// The arguments of a call of the tool.
#[derive(Deserialize)]
pub(super) struct WriteArguments {
    path: String,
    content: String,
}

pub(super) fn spec() -> ToolSpec {
    let spec = args::tool_spec(
        "fs.write",
        Access::Edit,
        [TouchedResource::path("path")],
        Tier::Lean,
        "Create or overwrite a file; read an existing one first. Makes folders.",
        r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#,
    );
    ToolSpec { kind: ToolKind::WritesFiles, ..spec }
}

pub(super) fn run(shared: &FileTools, arguments: &WriteArguments, cx: &ToolCx) -> FileAnswer {
    let _lease = shared.lease_file(cx, &arguments.path)?;
    let _sole = shared.sole_writer();
    let plan = PlannedWrite::from_arguments(shared, arguments, cx)?;
    plan.check_known(shared)?;
    plan.keep_hidden()?.write_file(shared, cx)
}

/// The same whatever the file holds: whoever asks for it knows the file by other ways.
pub(super) fn overwrite_file(
    shared: &FileTools,
    arguments: &WriteArguments,
    cx: &ToolCx,
) -> FileAnswer {
    let _sole = shared.sole_writer();
    PlannedWrite::from_arguments(shared, arguments, cx)?.write_file(shared, cx)
}

pub(super) fn preview(
    shared: &FileTools,
    arguments: &WriteArguments,
    cx: &ToolCx,
) -> Result<Option<String>, Refusal> {
    let plan = PlannedWrite::from_arguments(shared, arguments, cx)?;
    plan.check_known(shared)?;
    Ok(plan.keep_hidden()?.diff())
}

pub(super) fn preview_overwrite(
    shared: &FileTools,
    arguments: &WriteArguments,
    cx: &ToolCx,
) -> Result<Option<String>, Refusal> {
    Ok(PlannedWrite::from_arguments(shared, arguments, cx)?.diff())
}

/// The write that a call would do.
struct PlannedWrite<'a> {
    target: Target,
    old: Option<Vec<u8>>,
    new: Cow<'a, [u8]>,
    /// The features of the old file that a model does not see and that were kept.
    kept: Vec<&'static str>,
}

impl<'a> PlannedWrite<'a> {
    fn from_arguments(
        shared: &FileTools,
        arguments: &'a WriteArguments,
        cx: &ToolCx,
    ) -> Result<Self, Refusal> {
        let target = shared.resolve_target(cx, &arguments.path)?;
        let new = arguments.content.as_bytes();
        if new.len() as u64 > shared.max_file_bytes {
            return Err(Refusal::Failed(format!(
                "the content has {} bytes, more than the {} a file may have; nothing was written. \
                 Write less, or make the file with a shell command",
                new.len(),
                shared.max_file_bytes
            )));
        }
        let old = match target.kind()? {
            TargetKind::Missing => None,
            TargetKind::File(_) => Some(target.read_content(shared.max_file_bytes)?),
            TargetKind::Folder => return Err(target.is_folder()),
            TargetKind::Special => return Err(target.is_special()),
        };
        Ok(Self { target, old, new: Cow::Borrowed(new), kept: Vec::new() })
    }

    /// The same with what a model does not see of the old text: its encoding, its line ends.
    fn keep_hidden(mut self) -> Result<Self, Refusal> {
        let name = &self.target.name;
        let Some(old) = self.old.as_deref().filter(|old| sort_of(old).is_text()) else {
            return Ok(self);
        };
        let (form, old_text) = TextForm::decode(old);
        let new =
            String::from_utf8_lossy(self.new.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.new));
        let has_mark = form.has_mark || self.new.starts_with(BYTE_ORDER_MARK);
        let replacement = replace_text(&old_text, &new).map_err(|line| {
            Refusal::Failed(format!(
                "line {line} of the content has `U+FFFD`, which stands for bytes of `{name}` that are not UTF-8; \
                 nothing was written. Leave that line as it is, or change other lines with fs.edit"
            ))
        })?;
        let mut kept = describe_hidden(form, &old_text);
        kept.extend(replacement.final_end);
        let form = TextForm { has_mark, ..form };
        let new = form
            .encode(replacement.text)
            .map_err(|error| unencodable_refusal(name, form, &error))?;
        self.new = Cow::Owned(new);
        self.kept = kept;
        Ok(self)
    }

    fn write_file(&self, shared: &FileTools, cx: &ToolCx) -> FileAnswer {
        if self.old.as_deref() == Some(&*self.new) {
            shared.ledger.record_seen(&self.target.path, &self.new);
            let name = &self.target.name;
            return Ok(ToolOutput::from_text(format!(
                "`{name}` holds exactly this already; nothing was written"
            )));
        }
        let written = atomic::replace_file(&self.target, &self.new, shared, cx)?;
        shared.ledger.record_seen(&self.target.path, &self.new);
        let text = self.summary() + written.note();
        Ok(ToolOutput { diff: self.diff(), ..ToolOutput::from_text(text) })
    }

    /// Refuses to lose content the model has not seen.
    fn check_known(&self, shared: &FileTools) -> Result<(), Refusal> {
        let Some(old) = self.old.as_deref() else {
            return Ok(());
        };
        if old.is_empty() || *old == *self.new {
            return Ok(());
        }
        let name = &self.target.name;
        match shared.ledger.familiarity_of(&self.target.path, old) {
            Familiarity::Current => Ok(()),
            Familiarity::Unseen => Err(Refusal::Failed(format!(
                "`{name}` exists ({}) and was not read; nothing was written. Read it first, so \
                 that nothing unseen is lost, or change part of it with fs.edit",
                format_count(line_count(old), "line")
            ))),
            Familiarity::Changed => Err(Refusal::Failed(format!(
                "`{name}` has changed since it was last read; nothing was written. Read it again first"
            ))),
        }
    }

    fn diff(&self) -> Option<String> {
        Diff::from_contents(&self.target.name, self.old.as_deref(), &self.new).for_people()
    }

    fn summary(&self) -> String {
        let name = &self.target.name;
        match &self.old {
            None => format!("created `{name}` ({})", describe_size(&self.new)),
            Some(old) => {
                let kept = describe_kept(&self.kept);
                format!(
                    "overwrote `{name}` ({}; was {}){kept}",
                    describe_size(&self.new),
                    describe_size(old)
                )
            }
        }
    }
}

/// The refusal for a character that the encoding of the file does not have.
pub(super) fn unencodable_refusal(
    name: &str,
    form: TextForm,
    error: &UnencodableCharacter,
) -> Refusal {
    let encoding = form.encoding_name().unwrap_or("UTF-8");
    let is_in = if form.is_assumed() { "is not UTF-8 and is read as" } else { "is in" };
    Refusal::Failed(format!(
        "`{name}` {is_in} {encoding}, which does not have the `{}` of line {}; nothing was written. Use other \
         characters, or convert the file first with `iconv`",
        error.character, error.line
    ))
}

/// Lists what was kept, to stand behind a summary.
pub(super) fn describe_kept(hidden: &[&str]) -> String {
    if hidden.is_empty() { String::new() } else { format!("; kept: {}", hidden.join(", ")) }
}

fn describe_size(content: &[u8]) -> String {
    format!(
        "{}, {}",
        format_count(line_count(content), "line"),
        format_count(content.len(), "byte")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ToolOptions, fs::testing::Bench};

    #[tokio::test]
    async fn write_creates_parent_folders_and_returns_a_diff() {
        let bench = Bench::new();
        let arguments = json!({"path": "a/b.txt", "content": "one\ntwo\n"});
        let preview = bench.preview("fs.write", &arguments);
        assert!(!bench.path("a").exists(), "a preview changes nothing");
        let output = bench.output("fs.write", arguments).await;
        assert_eq!(bench.get("a/b.txt"), b"one\ntwo\n");
        let diff = "--- /dev/null\n+++ b/a/b.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
        assert_eq!(output.diff.as_deref(), Some(diff));
        assert_eq!(preview.as_deref(), Some(diff));
        let expected = ToolOutput::from_text("created `a/b.txt` (2 lines, 8 bytes)");
        assert_eq!(output.parts, expected.parts);
    }

    #[tokio::test]
    async fn an_unread_file_is_not_overwritten_until_it_was_read() {
        let bench = Bench::new();
        bench.put("a", "precious\n");
        let arguments = json!({"path": "a", "content": "new\n"});
        let refusal = bench.failed("fs.write", arguments.clone()).await;
        assert!(refusal.contains("Read it first"), "{refusal}");
        assert_eq!(bench.get("a"), b"precious\n");
        bench.done("fs.read", json!({"path": "a"})).await;
        let done = bench.done("fs.write", arguments).await;
        assert_eq!(done, "overwrote `a` (1 line, 4 bytes; was 1 line, 9 bytes)");
    }

    #[tokio::test]
    async fn write_or_edit_that_would_fail_is_refused_before_the_permission_question() {
        let bench = Bench::new();
        bench.put("a", "precious\n");
        let write = json!({"path": "a", "content": "new\n"});
        assert!(bench.refusal("fs.write", &write).unwrap().contains("Read it first"));
        let edit = |old: &str| json!({"path": "a", "old_string": old, "new_string": "x"});
        assert!(bench.refusal("fs.edit", &edit("gone")).unwrap().contains("not in `a`"));
        bench.done("fs.read", json!({"path": "a"})).await;
        assert_eq!(bench.refusal("fs.write", &write), None);
        assert_eq!(bench.refusal("fs.edit", &edit("precious")), None);
        bench.put("a", "other\n");
        assert!(bench.refusal("fs.edit", &edit("other")).unwrap().contains("has changed"));
    }

    #[tokio::test]
    async fn a_file_changed_since_it_was_read_is_not_overwritten() {
        let bench = Bench::new();
        bench.put("a", "one\n");
        bench.done("fs.read", json!({"path": "a"})).await;
        bench.put("a", "two\n");
        let refusal = bench.failed("fs.write", json!({"path": "a", "content": "three\n"})).await;
        assert!(refusal.contains("changed since"), "{refusal}");
        assert_eq!(bench.get("a"), b"two\n");
    }

    #[tokio::test]
    async fn write_may_overwrite_a_file_that_it_has_written_itself() {
        let bench = Bench::new();
        bench.put("empty", "");
        for content in ["one", "two", "two"] {
            bench.done("fs.write", json!({"path": "empty", "content": content})).await;
        }
        assert_eq!(bench.get("empty"), b"two");
        assert_eq!(bench.names("."), ["empty"]);
    }

    #[tokio::test]
    async fn write_preserves_bom_line_endings_and_encoding_of_the_file() {
        for (old, content, new, said) in [
            (&b"\xef\xbb\xbfhello\n"[..], "bye\n", &b"\xef\xbb\xbfbye\n"[..], "byte order mark"),
            (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n", "CRLF line ends"),
            (b"a\rb\r", "a\nc\n", b"a\rc\r", "CR line ends"),
            (b"\xef\xbb\xbfa\r\n", "b\n", b"\xef\xbb\xbfb\r\n", "byte order mark, CRLF line ends"),
            (b"\xff\xfea\0\n\0", "\u{e9}\n", b"\xff\xfe\xe9\0\n\0", "UTF-16"),
            (b"caf\xe9\n", "cafés\n", b"caf\xe9s\n", "Windows-1252"),
            (b"a\nb", "a\nc\n", b"a\nc", "no line end at the end"),
            (b"a\r\nb\nc\n", "a\nb\nd\n", b"a\r\nb\nd\n", "mixed line ends"),
        ] {
            let bench = Bench::new();
            bench.put("a", old);
            bench.done("fs.read", json!({"path": "a"})).await;
            let arguments = json!({"path": "a", "content": content});
            let preview = bench.preview("fs.write", &arguments).unwrap();
            assert!(!preview.contains(['\u{feff}', '\u{fffd}']), "{preview}");
            let done = bench.done("fs.write", arguments).await;
            assert_eq!(bench.get("a"), new, "{done}");
            assert!(done.ends_with(&format!("; kept: {said}")), "{done}");
        }
    }

    #[tokio::test]
    async fn write_refuses_a_character_that_the_file_encoding_lacks() {
        let bench = Bench::new();
        bench.put("a", b"caf\xe9\n");
        bench.done("fs.read", json!({"path": "a"})).await;
        let write = |content: &str| json!({"path": "a", "content": content});
        let refused = bench.failed("fs.write", write("café →\n")).await;
        assert!(refused.contains("Windows-1252") && refused.contains('→'), "{refused}");
        assert_eq!(bench.get("a"), b"caf\xe9\n");
    }

    #[tokio::test]
    async fn write_may_replace_a_binary_file_after_a_read_reported_it() {
        let bench = Bench::new();
        bench.put("a.bin", b"\0\x01");
        bench.failed("fs.read", json!({"path": "a.bin"})).await;
        let output = bench.output("fs.write", json!({"path": "a.bin", "content": "text"})).await;
        assert_eq!(output.diff, None);
        assert_eq!(bench.get("a.bin"), b"text");
    }

    #[tokio::test]
    async fn folders_and_oversized_content_are_refused() {
        let bench = Bench::with(&ToolOptions { max_file_bytes: 10, ..ToolOptions::default() });
        bench.put("folder/x", "larger than ten bytes");
        let write =
            |path, content| bench.failed("fs.write", json!({"path": path, "content": content}));
        assert!(write("folder", "x").await.contains("is a folder"));
        assert!(write("new", "eleven bytes").await.contains("12 bytes"));
        assert!(write("folder/x", "y").await.contains("larger than 10"));
        assert!(!bench.path("new").exists());
    }
}

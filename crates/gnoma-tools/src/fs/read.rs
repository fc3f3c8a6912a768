//! `fs.read`: a text file as numbered lines, or an image; for a folder, the output of `fs.ls`.
//!
//! Only what is shown is in memory: a file above the size limit is read line by line. The output need not be byte
//! for byte the file (bad UTF-8 is shown as `U+FFFD`, line ends and a byte order mark are left out); `fs.edit`
//! works on the real bytes.

use std::{
    fs::Metadata,
    io::{self, BufRead, BufReader},
};

use gnoma_core::{
    Image, ResultPart, ToolCx, ToolSpec,
    tool::{Access, Tier, ToolOutput, TouchedResource},
};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    FileAnswer, FileTools, Refusal,
    content_kind::{ContentKind, sort_of},
    encoding::{Encoding, TextForm},
    ls,
    shared::BYTE_ORDER_MARK,
    target::{Target, TargetKind},
    text::{StoppableReader, format_count, line_count, truncate_chars},
};
use crate::args;

/// Lines shown when the call does not say.
const DEFAULT_LINES: u64 = 2000;
/// Bytes of text one call shows.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// Characters of one line that are shown.
const MAX_LINE_CHARS: usize = 2000;
/// Bytes of one line that are kept: enough for the characters shown.
const MAX_LINE_BYTES: usize = MAX_LINE_CHARS * 4 + 4;
/// Largest picture, in bytes.
const MAX_IMAGE_BYTES: u64 = 10 << 20;
/// Bytes by which a file's sort is judged.
const HEAD_BYTES: u64 = 8192;
/// Said of what an editor has and the disk does not: edits work on the disk, and would be lost or lose it.
const UNSAVED: &str = "[This is the text in the editor. Its changes are not saved, and the file cannot be edited until they are: ask for that]";

/// The arguments of a call of the tool.
#[derive(Deserialize)]
pub(super) struct ReadArguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

pub(super) fn spec() -> ToolSpec {
    args::tool_spec(
        "fs.read",
        Access::Read,
        [TouchedResource::path("path")],
        Tier::Lean,
        "Read a file: numbered lines, or an image.",
        r#"{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","description":"lines to skip"},"limit":{"type":"integer","description":"lines to show, default 2000"}},"required":["path"]}"#,
    )
}

pub(super) fn run(shared: &FileTools, arguments: &ReadArguments, cx: &ToolCx) -> FileAnswer {
    let target = shared.resolve_target(cx, &arguments.path)?;
    let metadata = match target.kind()? {
        TargetKind::File(metadata) => metadata,
        TargetKind::Folder => return ls::list_folder(&target),
        TargetKind::Special => return Err(target.is_special()),
        TargetKind::Missing => return Err(target.is_missing()),
    };
    match sort_of(&target.read_head(HEAD_BYTES)?) {
        ContentKind::Text if metadata.len() > shared.max_file_bytes => {
            read_in_pieces(&target, arguments, &cx.stop)
        }
        ContentKind::Text => read_whole(shared, &target, arguments, cx),
        ContentKind::Image(mime) => read_image(shared, &target, mime),
        ContentKind::Utf16 if is_decodable(shared, &target, &metadata) => {
            read_whole(shared, &target, arguments, cx)
        }
        ContentKind::Utf16 => Err(refuse_unreadable(
            shared,
            &target,
            &metadata,
            "is text in UTF-16",
            "convert it with `iconv -f UTF-16`",
        )),
        ContentKind::Utf32 => Err(refuse_unreadable(
            shared,
            &target,
            &metadata,
            "is text in UTF-32",
            "convert it with `iconv -f UTF-32`",
        )),
        ContentKind::Binary => Err(refuse_unreadable(
            shared,
            &target,
            &metadata,
            "is binary",
            "look at it with `file` or `xxd`",
        )),
    }
}

fn read_image(shared: &FileTools, target: &Target, mime: &str) -> FileAnswer {
    let content = target.read_head(MAX_IMAGE_BYTES + 1)?;
    if content.len() as u64 > MAX_IMAGE_BYTES {
        return Err(Refusal::Failed(format!(
            "`{}` is an image of more than {MAX_IMAGE_BYTES} bytes, too large to show; make a smaller copy",
            target.name
        )));
    }
    shared.ledger.record_seen(&target.path, &content);
    let image = Image::from_bytes(mime, &content);
    if image.detected_type().is_none() {
        return Err(Refusal::Failed(format!(
            "`{}` begins as {mime} does and ends before its header ({} bytes): it is damaged, and cannot be shown",
            target.name,
            content.len()
        )));
    }
    Ok(ToolOutput { parts: vec![ResultPart::Image(image)], ..ToolOutput::default() })
}

/// The refusal for a file that is no text. The model knows now what it is, so it may replace it.
fn refuse_unreadable(
    shared: &FileTools,
    target: &Target,
    metadata: &Metadata,
    what: &str,
    remedy: &str,
) -> Refusal {
    if let Ok(content) = target.read_content(shared.max_file_bytes) {
        shared.ledger.record_seen(&target.path, &content);
    }
    Refusal::Failed(format!(
        "`{}` {what} ({} bytes) and cannot be shown as lines; {remedy}",
        target.name,
        metadata.len()
    ))
}

fn read_whole(
    shared: &FileTools,
    target: &Target,
    arguments: &ReadArguments,
    cx: &ToolCx,
) -> FileAnswer {
    let content = target.read_content(shared.max_file_bytes)?;
    // Only of the workspace: what else is open in an editor is nobody's business.
    let is_of_workspace = cx.roots.iter().any(|root| target.path.starts_with(root));
    let unsaved = is_of_workspace.then(|| shared.unsaved_text(&target.path, &content)).flatten();
    if let Some(text) = unsaved {
        return show_text(shared, target, arguments, text.as_bytes(), cx).map(|mut output| {
            output.parts.push(ResultPart::Text { text: UNSAVED.to_owned() });
            output
        });
    }
    show_text(shared, target, arguments, &content, cx)
}

fn show_text(
    shared: &FileTools,
    target: &Target,
    arguments: &ReadArguments,
    content: &[u8],
    cx: &ToolCx,
) -> FileAnswer {
    shared.ledger.record_seen(&target.path, content);
    if content.is_empty() {
        return Ok(ToolOutput::from_text(format!("`{}` is empty", target.name)));
    }
    let (form, text) = TextForm::decode(content);
    let total = line_count(&text) as u64;
    let window = Window::from_reader(&*text, arguments)
        .map_err(|error| read_refusal(target, &cx.stop, &error))?;
    let mut output = window.into_output(target, Some(total))?;
    if let (Some(encoding), Some(ResultPart::Text { text })) =
        (form.encoding_name(), output.parts.first_mut())
    {
        let fact = if form.is_assumed() {
            format!(
                "The file is not UTF-8. It is read as {encoding}, and its bytes stay so when it is changed; letters that make no sense here are in another encoding"
            )
        } else {
            format!("The file is in {encoding} and stays so when it is changed")
        };
        text.push_str(&format!("\n[{fact}]"));
    }
    Ok(output)
}

/// Reports whether a text in UTF-16 can be shown and written back.
fn is_decodable(shared: &FileTools, target: &Target, metadata: &Metadata) -> bool {
    let is_small = metadata.len() <= shared.max_file_bytes;
    let content = if is_small { target.read_content(shared.max_file_bytes).ok() } else { None };
    content.is_some_and(|content| TextForm::decode(&content).0.encoding != Encoding::Utf8)
}

fn read_in_pieces(
    target: &Target,
    arguments: &ReadArguments,
    stop: &CancellationToken,
) -> FileAnswer {
    let window = target
        .open()
        .map(|file| BufReader::new(StoppableReader::new(file, stop)))
        .and_then(|reader| Window::from_reader(reader, arguments))
        .map_err(|error| read_refusal(target, stop, &error))?;
    window.into_output(target, None)
}

fn read_refusal(target: &Target, stop: &CancellationToken, error: &io::Error) -> Refusal {
    if stop.is_cancelled() {
        Refusal::Stopped(String::new())
    } else {
        target.refuse_operation("read", error)
    }
}

/// The lines a call shows.
struct Window {
    text: String,
    skipped: u64,
    shown: u64,
    more: bool,
}

impl Window {
    fn from_reader(mut reader: impl BufRead, arguments: &ReadArguments) -> io::Result<Self> {
        let offset = arguments.offset.unwrap_or(0);
        let limit = arguments.limit.unwrap_or(DEFAULT_LINES).max(1);
        let mut window = Self { text: String::new(), skipped: 0, shown: 0, more: false };
        let mut line = Vec::new();
        while window.skipped < offset {
            if next_line(&mut reader, &mut line, 0)?.is_none() {
                return Ok(window);
            }
            window.skipped += 1;
        }
        while window.shown < limit && window.text.len() < MAX_SHOWN_BYTES {
            let Some(length) = next_line(&mut reader, &mut line, MAX_LINE_BYTES)? else {
                return Ok(window);
            };
            window.append_line(&line, length);
        }
        window.more = !reader.fill_buf()?.is_empty();
        Ok(window)
    }

    fn append_line(&mut self, line: &[u8], length: u64) {
        let number = self.skipped + self.shown + 1;
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if number == 1 => rest,
            _ => line,
        };
        let decoded = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let (kept, was_cut) = truncate_chars(&decoded, MAX_LINE_CHARS);
        self.text.push_str(&format!("{number}\t{kept}"));
        if was_cut {
            self.text.push_str(&format!("… [line cut, {length} bytes in all]"));
        }
        self.text.push('\n');
        self.shown += 1;
    }

    fn into_output(mut self, target: &Target, total: Option<u64>) -> FileAnswer {
        if self.shown == 0 {
            return Err(Refusal::Failed(format!(
                "`{}` has only {}; use a smaller offset",
                target.name,
                format_count(usize::try_from(self.skipped).unwrap_or(usize::MAX), "line"),
            )));
        }
        let next = self.skipped + self.shown;
        if self.more {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            self.text.push_str(&format!(
                "[lines {}–{next}{of}; read on with offset {next}]",
                self.skipped + 1
            ));
        } else {
            self.text.pop();
        }
        Ok(ToolOutput::from_text(self.text))
    }
}

/// Reads one line without its `\n` into `line`, keeping at most `keep` bytes; returns its full length,
/// or `None` at the end of the file.
fn next_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    keep: usize,
) -> io::Result<Option<u64>> {
    line.clear();
    let mut length = 0_u64;
    let mut began = false;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(began.then_some(length));
        }
        began = true;
        let end = memchr::memchr(b'\n', available);
        let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
        let room = keep.saturating_sub(line.len()).min(piece.len());
        line.extend_from_slice(piece.get(..room).unwrap_or_default());
        length += piece.len() as u64;
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use gnoma_core::{ToolOutcome, tool::OpenFiles};
    use serde_json::json;

    use super::*;
    use crate::{ToolOptions, fs::testing::Bench};

    #[tokio::test]
    async fn lines_are_numbered_from_one() {
        let bench = Bench::new();
        bench.put("a.txt", "one\n\nthree\n");
        let whole = bench.done("fs.read", json!({"path": "a.txt"})).await;
        assert_eq!(whole, "1\tone\n2\t\n3\tthree");
    }

    /// An editor with one text for every file.
    #[derive(Debug)]
    struct Editor(&'static str);

    impl OpenFiles for Editor {
        fn file_text(&self, session: &str, path: &Path) -> Option<String> {
            assert_eq!((session, path.is_absolute()), ("s", true));
            Some(self.0.to_owned()).filter(|text| !text.is_empty())
        }
    }

    fn with_editor(text: &'static str) -> Bench {
        let editor: Arc<dyn OpenFiles> = Arc::new(Editor(text));
        Bench::with(&ToolOptions {
            editor: Some((editor, "s".to_owned())),
            ..ToolOptions::default()
        })
    }

    #[tokio::test]
    async fn read_returns_unsaved_editor_text_and_edits_do_not_overwrite_it() {
        let bench = with_editor("new\ntext\n");
        bench.put("a.txt", "old\ntext\n");
        let output = bench.output("fs.read", json!({"path": "a.txt"})).await;
        let text = |at: usize| match &output.parts[at] {
            ResultPart::Text { text } => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!((text(0).as_str(), text(1).as_str()), ("1\tnew\n2\ttext", UNSAVED));
        let edit = json!({"path": "a.txt", "old": "text", "new": "words"});
        let refused = bench.failed("fs.edit", edit).await;
        assert!(refused.contains("changed"), "{refused}");
        assert_eq!(bench.get("a.txt"), b"old\ntext\n");
        // Once it is saved, it is the same, and can be edited.
        bench.put("a.txt", "new\r\ntext");
        let read = bench.done("fs.read", json!({"path": "a.txt"})).await;
        assert_eq!(read, "1\tnew\n2\ttext");
    }

    #[tokio::test]
    async fn read_ignores_editor_text_that_is_empty_or_too_large() {
        let bench = with_editor("");
        bench.put("a.txt", "old\n");
        assert_eq!(bench.done("fs.read", json!({"path": "a.txt"})).await, "1\told");
        let editor: Arc<dyn OpenFiles> = Arc::new(Editor("more than ten bytes"));
        let editor = Some((editor, "s".to_owned()));
        let bench =
            Bench::with(&ToolOptions { max_file_bytes: 10, editor, ..ToolOptions::default() });
        bench.put("a.txt", "old\n");
        assert_eq!(bench.done("fs.read", json!({"path": "a.txt"})).await, "1\told");
    }

    #[tokio::test]
    async fn read_offset_and_limit_select_lines_and_name_the_next_offset() {
        let bench = Bench::new();
        bench.put("a.txt", "1\n2\n3\n4\n5");
        let part = bench.done("fs.read", json!({"path": "a.txt", "offset": 1, "limit": 2})).await;
        assert_eq!(part, "2\t2\n3\t3\n[lines 2–3 of 5; read on with offset 3]");
        let end = bench.done("fs.read", json!({"path": "a.txt", "offset": 3, "limit": null})).await;
        assert_eq!(end, "4\t4\n5\t5");
        let past = bench.failed("fs.read", json!({"path": "a.txt", "offset": 9})).await;
        assert!(past.contains("only 5 lines"), "{past}");
    }

    #[tokio::test]
    async fn read_shows_bom_crlf_and_non_utf8_files_as_text() {
        let bench = Bench::new();
        bench.put("bom.txt", "\u{feff}a\r\nb\r\n");
        bench.put("latin.txt", b"caf\xe9\n");
        bench.put("empty.txt", "");
        let read = |name| bench.done("fs.read", json!({ "path": name }));
        assert_eq!(read("bom.txt").await, "1\ta\n2\tb");
        bench.put("mac.csv", "one\rtwo\r");
        assert_eq!(read("mac.csv").await, "1\tone\n2\ttwo");
        bench.put("mixed.txt", b"caf\xe9 caf\xc3\xa9\n");
        let latin = "1\tcafé\n[The file is not UTF-8. It is read as Windows-1252, and its bytes stay so when it is changed; letters that make no sense here are in another encoding]";
        assert_eq!(read("latin.txt").await, latin);
        assert_eq!(read("mixed.txt").await, "1\tcaf\u{fffd} café");
        assert_eq!(read("empty.txt").await, "`empty.txt` is empty");
    }

    #[tokio::test]
    async fn read_truncates_long_lines_and_long_files_with_a_note() {
        let bench = Bench::new();
        bench.put("wide.txt", "ä".repeat(MAX_LINE_CHARS + 10));
        bench.put("long.txt", "0123456789\n".repeat(10_000));
        let wide = bench.done("fs.read", json!({"path": "wide.txt"})).await;
        assert!(wide.ends_with("ä… [line cut, 4020 bytes in all]"));
        let long = bench.done("fs.read", json!({"path": "long.txt", "limit": 10_000})).await;
        assert!(long.len() < MAX_SHOWN_BYTES + MAX_LINE_BYTES);
        let shown = long.lines().count() - 1;
        let rest = format!("[lines 1–{shown} of 10000; read on with offset {shown}]");
        assert!(long.ends_with(&rest), "{:?}", long.lines().last());
    }

    #[tokio::test]
    async fn a_file_above_the_size_limit_is_read_in_pieces() {
        let bench = Bench::with(&ToolOptions { max_file_bytes: 100, ..ToolOptions::default() });
        let lines: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        bench.put("big.txt", lines);
        let part =
            bench.done("fs.read", json!({"path": "big.txt", "offset": 89, "limit": 2})).await;
        assert_eq!(part, "90\tline 90\n91\tline 91\n[lines 90–91; read on with offset 91]");
        let past = bench.failed("fs.read", json!({"path": "big.txt", "offset": 200})).await;
        assert!(past.contains("only 100 lines"), "{past}");
    }

    #[tokio::test]
    async fn read_returns_images_as_images() {
        let bench = Bench::new();
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01rest";
        bench.put("misnamed.txt", png);
        let output = bench.output("fs.read", json!({"path": "misnamed.txt"})).await;
        let expected = ResultPart::Image(Image::from_bytes("image/png", png));
        assert_eq!(output.parts, [expected]);
        bench.put("cut.png", &png[..8]);
        let why = bench.failed("fs.read", json!({"path": "cut.png"})).await;
        assert!(why.contains("(8 bytes): it is damaged"), "{why}");
    }

    #[tokio::test]
    async fn read_of_a_binary_file_names_its_size() {
        let bench = Bench::new();
        bench.put("a.bin", b"\x7fELF\0\0");
        bench.put("huge.png", {
            let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
            png.resize(usize::try_from(MAX_IMAGE_BYTES).unwrap() + 1, 0);
            png
        });
        let read = |name| bench.failed("fs.read", json!({ "path": name }));
        assert!(read("a.bin").await.contains("binary (6 bytes)"));
        assert!(read("huge.png").await.contains("smaller copy"));
        assert!(read("a.bim").await.contains("similar names: `a.bin`"));
    }

    #[tokio::test]
    async fn read_of_a_folder_lists_it() {
        let bench = Bench::new();
        bench.put("folder/x", "");
        let listed = bench.done("fs.read", json!({ "path": "folder" })).await;
        assert_eq!(listed, bench.done("fs.ls", json!({ "path": "folder" })).await);
    }

    #[tokio::test]
    async fn read_of_a_named_pipe_is_refused() {
        let bench = Bench::new();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            bench.path("pipe"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        let refusal = bench.failed("fs.read", json!({"path": "pipe"})).await;
        assert!(refusal.contains("pipe"), "{refusal}");
    }

    #[tokio::test]
    async fn a_cancelled_read_of_a_big_file_ends() {
        let bench = Bench::with(&ToolOptions { max_file_bytes: 10, ..ToolOptions::default() });
        bench.put("big.txt", "x\n".repeat(100));
        bench.stop.cancel();
        let outcome = bench.outcome("fs.read", json!({"path": "big.txt"})).await;
        assert!(matches!(outcome, ToolOutcome::Interrupted(_)));
    }
}

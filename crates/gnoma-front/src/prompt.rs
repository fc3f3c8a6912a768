//! The prompt of a run without a screen: arguments and standard input.

use std::{
    io::{self, IsTerminal as _, Read as _},
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use gnoma_core::{Content, Image};
use gnoma_host::HostError;

use crate::report;

/// Most that is read from standard input.
const MAX_STDIN_BYTES: usize = 16 << 20;
/// The time that standard input may take before a note says that the program waits for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Largest image that is sent along.
const MAX_IMAGE_BYTES: u64 = 10 << 20;
/// Begins a text as some editors and Windows programs write it.
const BYTE_ORDER_MARK: char = '\u{FEFF}';
/// Marks an image in a prompt: `[Image: /absolute/path]`.
const IMAGE_MARK: &str = "[Image: ";

/// Reads the user's message from `words` of the command line and from standard input, with the images that it names;
/// `None` if both are empty.
///
/// # Errors
/// Standard input or an image cannot be read or is too large.
pub fn read_user_content(words: &[String]) -> Result<Option<Vec<Content>>> {
    // As other programs have it, a line alone means standard input.
    let asked = if words == ["-"] { String::new() } else { words.join(" ") };
    let piped = decode_piped_text(read_piped_stdin().context("cannot read standard input")?)?;
    let (prompt, context) = match (asked.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => return Ok(None),
        (false, true) => (asked, None),
        (true, false) => (piped, None),
        (false, false) => (asked, Some(piped)),
    };
    // Only what was said names images: context may come from anywhere.
    let images = load_marked_images(&prompt)?;
    let text = match context {
        None => prompt,
        Some(context) => format!("{prompt}\n\n<stdin>\n{}\n</stdin>", context.trim_end()),
    };
    let mut content = vec![Content::from_text(text)];
    content.extend(images);
    Ok(Some(content))
}

/// Standard input, when something is connected that is no terminal.
fn read_piped_stdin() -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(Vec::new());
    }
    let (_read, reading) = mpsc::channel::<()>();
    thread::spawn(move || {
        if reading.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            report::print_line(
                "gnoma: waiting for standard input to end; `< /dev/null` gives none",
            );
        }
    });
    let mut bytes = Vec::new();
    stdin.lock().take(MAX_STDIN_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Converts the bytes piped into standard input to text.
fn decode_piped_text(bytes: Vec<u8>) -> Result<String, HostError> {
    let refused = |what: &str| {
        let remedy = "write it to a file and name that in the prompt";
        Err(HostError::usage(format!("standard input {what}; {remedy}")))
    };
    if bytes.len() > MAX_STDIN_BYTES {
        return refused(&format!("has more than {} MiB", MAX_STDIN_BYTES >> 20));
    }
    if bytes.contains(&0) {
        return refused("is not text");
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        report::print_line(
            "warning: standard input is not all UTF-8; the rest is shown as \u{FFFD}",
        );
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    Ok(text.strip_prefix(BYTE_ORDER_MARK).map_or_else(|| text.clone(), str::to_owned))
}

fn load_marked_images(text: &str) -> Result<Vec<Content>> {
    let marked = text.match_indices(IMAGE_MARK).filter_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        Some(Path::new(&rest[..rest.find(']')?]))
    });
    marked.filter(|path| path.is_absolute()).map(load_image).collect()
}

/// Reads a PNG, JPEG, GIF or WebP image.
///
/// # Errors
/// The file cannot be read, has more than 10 MiB, or is no such image.
pub fn load_image(path: &Path) -> Result<Content> {
    let shown = path.display();
    let size =
        std::fs::metadata(path).with_context(|| format!("cannot read the image {shown}"))?.len();
    if size > MAX_IMAGE_BYTES {
        let text =
            format!("the image {shown} is too large: {size} bytes, the limit is {MAX_IMAGE_BYTES}");
        return Err(HostError::usage(text).into());
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the image {shown}"))?;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => {
            return Err(
                HostError::usage(format!("{shown} is not a PNG, JPEG, GIF or WebP image")).into()
            );
        }
    };
    Ok(Content::Image(Image::from_bytes(mime, &bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_or_binary_stdin_is_refused() {
        let refusal = |bytes: Vec<u8>| decode_piped_text(bytes).unwrap_err().cause;
        assert!(refusal(vec![b'a'; MAX_STDIN_BYTES + 1]).contains("more than 16 MiB"));
        assert!(refusal(b"\x7fELF\x02\x00".to_vec()).contains("is not text"));
        assert_eq!(decode_piped_text(b"caf\xe9".to_vec()).unwrap(), "caf\u{FFFD}");
        assert_eq!(decode_piped_text(b"\xef\xbb\xbfhello".to_vec()).unwrap(), "hello");
    }
}

//! What the user says, from words on the command line and from standard input.

use std::{
    io::{IsTerminal as _, Read as _},
    path::Path,
};

use anyhow::{Context as _, Result};
use gnoma_core::{Content, Image};

use crate::report::Misuse;

/// Most that is read from standard input.
const MAX_STDIN_BYTES: u64 = 16 << 20;
/// Largest image that is sent along.
const MAX_IMAGE_BYTES: u64 = 10 << 20;
/// Marks an image in a prompt: `[Image: /absolute/path]`.
const IMAGE_MARK: &str = "[Image: ";

/// The content of the user's message; `None` when nothing was said.
pub(crate) fn content(words: &[String]) -> Result<Option<Vec<Content>>> {
    let asked = words.join(" ");
    let piped = piped().context("cannot read standard input")?;
    let text = match (asked.trim().is_empty(), piped.trim().is_empty()) {
        (true, true) => return Ok(None),
        (false, true) => asked,
        (true, false) => piped,
        (false, false) => format!("{asked}\n\n<stdin>\n{}\n</stdin>", piped.trim_end()),
    };
    let mut content = images(&text)?;
    content.insert(0, Content::text(text));
    Ok(Some(content))
}

/// Standard input, when something is connected that is no terminal.
fn piped() -> std::io::Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    match stdin.lock().take(MAX_STDIN_BYTES).read_to_end(&mut bytes) {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        // A daemon's standard input may be closed altogether.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
            Ok(String::new())
        }
        Err(error) => Err(error),
    }
}

fn images(text: &str) -> Result<Vec<Content>> {
    let marked = text.match_indices(IMAGE_MARK).filter_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        Some(Path::new(&rest[..rest.find(']')?]))
    });
    marked.filter(|path| path.is_absolute()).map(image).collect()
}

fn image(path: &Path) -> Result<Content> {
    let shown = path.display();
    let size =
        std::fs::metadata(path).with_context(|| format!("cannot read the image {shown}"))?.len();
    if size > MAX_IMAGE_BYTES {
        let text =
            format!("the image {shown} has {size} bytes; at most {MAX_IMAGE_BYTES} are sent");
        return Err(Misuse(text).into());
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the image {shown}"))?;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => {
            return Err(Misuse(format!("{shown} is no PNG, JPEG, GIF or WebP image")).into());
        }
    };
    Ok(Content::Image(Image::from_bytes(mime, &bytes)))
}

//! Standard input, line by line, on a thread of its own.

use std::{
    io::{self, BufRead as _, Read as _},
    thread,
};

use tokio::sync::mpsc;

/// Longest line.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// Lines that may wait.
const MAX_WAITING: usize = 64;

/// The lines of standard input; the channel ends with it.
pub(super) fn lines() -> mpsc::Receiver<Result<String, String>> {
    let (say, lines) = mpsc::channel(MAX_WAITING);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let line = match line(&mut input) {
                Ok(None) => return,
                Ok(Some(line)) => Ok(line),
                Err(error) => Err(error.to_string()),
            };
            let is_over = line.is_err();
            if say.blocking_send(line).is_err() || is_over {
                return;
            }
        }
    });
    lines
}

/// The next line; `None` at the end.
fn line(input: &mut impl io::BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() != Some(&b'\n') && bytes.len() as u64 == MAX_LINE_BYTES {
        return Err(io::Error::other(format!("a line has more than {MAX_LINE_BYTES} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_the_input() {
        let mut input = "a\n\nb".as_bytes();
        let mut next = || line(&mut input).unwrap();
        assert_eq!(next().as_deref(), Some("a\n"));
        assert_eq!(next().as_deref(), Some("\n"));
        assert_eq!((next().as_deref(), next()), (Some("b"), None));
    }
}

//! Standard input, line by line, on a thread of its own.

use std::{
    io::{self, BufRead},
    thread,
};

use gnoma_core::lines::{Line, LineReader};
use tokio::sync::mpsc;

/// The length of the longest line that is read, in bytes.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Lines that may wait.
const MAX_WAITING: usize = 64;

/// The lines of standard input; the channel ends with it.
pub(super) fn stdin_lines() -> mpsc::Receiver<io::Result<String>> {
    let (say, lines) = mpsc::channel(MAX_WAITING);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let reader = LineReader::new(MAX_LINE_BYTES);
        let read = forward_lines(&mut input, reader, |line| say.blocking_send(Ok(line)).is_ok());
        if let Err(error) = read {
            let _nobody_reads = say.blocking_send(Err(error));
        }
    });
    lines
}

/// Hands each line on, until the input ends or nobody wants more.
fn forward_lines(
    input: &mut impl BufRead,
    mut reader: LineReader,
    mut wants: impl FnMut(String) -> bool,
) -> io::Result<()> {
    loop {
        let piece = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        let count = piece.len();
        // The last line needs no end.
        let lines = reader.push(if count == 0 { b"\n" } else { piece });
        input.consume(count);
        for line in lines {
            match line {
                Line::Whole(bytes) if wants(String::from_utf8_lossy(&bytes).into_owned()) => (),
                Line::Whole(_) => return Ok(()),
                Line::TooLong => return Err(io::Error::other("a line is too long")),
            }
        }
        if count == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, most: usize) -> (Vec<String>, bool) {
        let (mut input, mut lines) = (text.as_bytes(), Vec::new());
        let read = forward_lines(&mut input, LineReader::new(most), |line| {
            lines.push(line);
            lines.len() < 3
        });
        (lines, read.is_ok())
    }

    #[test]
    fn input_lines_end_at_eof_and_too_long_ones_stop_reading() {
        assert_eq!(read("a\n\nb", 9), (vec!["a".to_owned(), "b".to_owned()], true));
        assert_eq!(read("1\n2\n3\n4\n", 9).0.len(), 3);
        assert_eq!(read("a\nlong line\n", 4), (vec!["a".to_owned()], false));
    }
}

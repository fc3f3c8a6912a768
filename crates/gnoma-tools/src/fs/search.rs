//! Finds the lines of a file that match a pattern.
//!
//! A file is searched in blocks of whole lines. One with a zero byte is binary, and is searched up to the block with
//! that byte. UTF-16 is decoded as its byte order mark says; bytes in other encodings are searched as they are.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memrchr};

use super::{encoding::decode_utf16_lossy, shared::BYTE_ORDER_MARK};
use crate::line_pattern::LinePattern;

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 64 * 1024;
/// A longer line ends the search of its file.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Takes a matching line with its number and the pattern, and says whether the search goes on.
pub(super) type LineCallback<'a> = &'a mut dyn FnMut(&LinePattern, u64, &[u8]) -> bool;

/// Searches files one after the other.
pub(super) struct LineSearch {
    pattern: LinePattern,
    /// Largest file in UTF-16 that is searched.
    max_decoded_bytes: u64,
    buffer: Vec<u8>,
}

impl LineSearch {
    pub(super) fn new(pattern: LinePattern, max_decoded_bytes: u64) -> Self {
        Self { pattern, max_decoded_bytes, buffer: Vec::new() }
    }

    /// Calls `on_line` with each line that matches, until it returns `false`.
    ///
    /// # Errors
    /// The file cannot be read, has a line of more than `MAX_LINE_BYTES`, or is UTF-16 and too large.
    pub(super) fn search(
        &mut self,
        mut file: impl Read,
        on_line: LineCallback<'_>,
    ) -> io::Result<()> {
        let mut head = Vec::with_capacity(BYTE_ORDER_MARK.len());
        file.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut head)?;
        let (mark, rest) = head.split_at(head.len().min(2));
        if head == BYTE_ORDER_MARK {
            self.search_text(&mut file, on_line)
        } else if matches!(mark, b"\xff\xfe" | b"\xfe\xff") {
            let mut bytes = Vec::new();
            rest.chain(file).take(self.max_decoded_bytes + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > self.max_decoded_bytes {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let text = decode_utf16_lossy(&bytes, mark == b"\xff\xfe");
            self.search_text(&mut text.as_bytes(), on_line)
        } else {
            self.search_text(&mut head.chain(file), on_line)
        }
    }

    fn search_text(&mut self, file: &mut dyn Read, on_line: LineCallback<'_>) -> io::Result<()> {
        let mut blocks = Blocks { file, buffer: &mut self.buffer, len: 0, block_len: 0 };
        let mut number = 1;
        while let Some(mut block) = blocks.next_block()? {
            while let Some(line) = self.pattern.find_line(block) {
                let (before, rest) = block.split_at(line.start);
                let (line, rest) = rest.split_at(line.len());
                number += count_lines(before);
                if !on_line(&self.pattern, number, line) {
                    return Ok(());
                }
                number += 1;
                block = rest;
            }
            number += count_lines(block);
        }
        Ok(())
    }
}

fn count_lines(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

/// A text in blocks of whole lines.
struct Blocks<'a> {
    file: &'a mut dyn Read,
    buffer: &'a mut Vec<u8>,
    /// The number of bytes of the buffer that have been read, and the number of these in the current block.
    len: usize,
    block_len: usize,
}

impl Blocks<'_> {
    /// The next lines, if there are any before the end or a zero byte.
    fn next_block(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.block_len..self.len, 0);
        self.len -= self.block_len;
        loop {
            let new = self.read_more()?;
            if memchr(0, new).is_some() {
                return Ok(None);
            }
            let behind_lines = memrchr(b'\n', new).map_or(new.len(), |end| new.len() - end - 1);
            let is_end = new.is_empty();
            if is_end || behind_lines < new.len() {
                self.block_len = self.len - behind_lines;
                return Ok(self.buffer.get(..self.block_len).filter(|block| !block.is_empty()));
            }
        }
    }

    /// Reads more into the buffer; gives the new bytes, none at the end of the file.
    fn read_more(&mut self) -> io::Result<&[u8]> {
        if self.len == self.buffer.len() {
            if self.len >= MAX_LINE_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.buffer.resize(BLOCK_BYTES.max(self.len * 2), 0);
        }
        let start = self.len;
        self.len += self.file.read(self.buffer.get_mut(start..).unwrap_or_default())?;
        Ok(self.buffer.get(start..self.len).unwrap_or_default())
    }
}

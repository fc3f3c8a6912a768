//! Texts that come in pieces, judged as if they had come at once.
//!
//! Holds at most one window with its surroundings. What is found is told as soon as nothing that comes
//! later can change it.

use std::{ops::Range, sync::Arc};

use crate::scanner::{
    Finding, OVERLAP_BYTES, RawFinding, Scanner, WINDOW_BYTES, merge_overlaps, seen_by,
};

/// Scans a text that comes in pieces. Findings are the same wherever it is cut.
#[derive(Debug)]
pub struct StreamScanner {
    scanner: Arc<Scanner>,
    /// The part of the text that is still needed.
    held: Vec<u8>,
    /// Offset of the first held byte.
    offset: usize,
    /// The range that the next window is responsible for.
    core: Range<usize>,
    /// Found, but a later window may add to it.
    open: Vec<RawFinding>,
}

impl StreamScanner {
    /// A stream at its start.
    pub fn new(scanner: Arc<Scanner>) -> Self {
        Self { scanner, held: Vec::new(), offset: 0, core: 0..WINDOW_BYTES, open: Vec::new() }
    }

    /// Takes the next piece and returns what is certain by now, with offsets in the whole text.
    pub fn push(&mut self, mut piece: &[u8]) -> Vec<Finding> {
        let mut found = Vec::new();
        while !piece.is_empty() {
            let wanted = self.core.end + OVERLAP_BYTES - self.offset - self.held.len();
            let (now, later) = piece.split_at(wanted.min(piece.len()));
            self.held.extend_from_slice(now);
            piece = later;
            if self.offset + self.held.len() == self.core.end + OVERLAP_BYTES {
                self.scan_window();
                self.flush_complete(&mut found);
            }
        }
        found
    }

    /// The text has ended: returns the rest of what was found.
    pub fn finish(mut self) -> Vec<Finding> {
        while self.core.start < self.offset + self.held.len() {
            self.scan_window();
        }
        merge_overlaps(&mut self.open);
        let scanner = &self.scanner;
        self.open.drain(..).map(|raw| scanner.make_finding(&raw)).collect()
    }

    /// Judges the window that is held and moves on to the next.
    fn scan_window(&mut self) {
        let seen = seen_by(&self.core, self.offset + self.held.len());
        let window = self.held.get(seen.start - self.offset..seen.end - self.offset);
        self.scanner.scan_window(
            window.unwrap_or_default(),
            seen.start,
            &self.core,
            &mut self.open,
        );
        self.core = self.core.end..self.core.end + WINDOW_BYTES;
        let needed = self.core.start.saturating_sub(OVERLAP_BYTES).max(self.offset);
        self.held.drain(..self.held.len().min(needed - self.offset));
        self.offset = needed;
    }

    /// Tells what ends before anything that the next window sees; the rest may grow.
    fn flush_complete(&mut self, found: &mut Vec<Finding>) {
        merge_overlaps(&mut self.open);
        let certain = self.open.iter().take_while(|raw| raw.span.end <= self.offset).count();
        found.extend(self.open.drain(..certain).map(|raw| self.scanner.make_finding(&raw)));
    }
}

//! The prompt editor: several lines, readline's keys, undo, a ring of deleted texts, optional vim keys, and chips
//! for what is too large to show. It edits, and reports what else a key means; it knows nothing of files, the
//! clipboard and the session.
//!
//! Nothing written is lost: undo reverts taking, clearing and restoring, too. A key costs the line that it touches,
//! and a paste its length once, whatever else there is.

mod buffer;
mod chips;
mod draft;
mod edit;
mod kills;
mod layout;
mod mode;
mod motion;
mod paste;
mod undo;
mod view;
mod vim;

use std::ops::Range;

use gnoma_core::Image;

use self::{
    buffer::{Buffer, BufferPosition},
    chips::{Chips, Content},
    kills::KillRing,
    layout::ScreenRow,
    mode::Vim,
    undo::{EditKind, Undo},
};
use crate::keymap::{Action, Context, Key, Keymap};

pub use draft::{Draft, Fold};
pub use mode::Mode;
pub use paste::PasteOutcome;

/// The width until one is known.
const FIRST_WIDTH: usize = 80;

/// The result of a key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The key changed the text.
    Changed,
    /// The cursor moved, or the mode changed.
    Moved,
    /// The key asks for something that is not editing.
    Wanted(Action),
    /// The key means nothing here.
    Ignored,
}

/// The effect of the previous key, where the next one continues with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastEdit {
    #[default]
    Other,
    /// The key deleted text into the ring.
    Kill,
    /// The key inserted text from the ring here.
    Yank(BufferPosition),
    /// The cursor went up or down and wants to stay in this column.
    Vertical(usize),
}

/// The editor for the text that a person writes.
#[derive(Clone, Debug)]
pub struct Composer {
    buffer: Buffer,
    cursor: BufferPosition,
    chips: Chips,
    undo: Undo,
    kills: KillRing,
    last: LastEdit,
    width: usize,
    top: ScreenRow,
    vim: Option<Vim>,
}

impl Default for Composer {
    fn default() -> Self {
        Self {
            buffer: Buffer::default(),
            cursor: BufferPosition::default(),
            chips: Chips::default(),
            undo: Undo::default(),
            kills: KillRing::default(),
            last: LastEdit::default(),
            width: FIRST_WIDTH,
            top: ScreenRow::default(),
            vim: None,
        }
    }
}

impl Composer {
    /// Does what a key asks for.
    pub fn press(&mut self, key: Key, keymap: &Keymap) -> KeyOutcome {
        if self.mode() == Some(Mode::Normal) {
            return self.press_normal(key, keymap);
        }
        match keymap.action(Context::Composer, key) {
            Some(Action::Stop) if self.vim.is_some() => self.enter_normal(),
            Some(action) => self.apply_action(action),
            None => match key.typed_char() {
                Some(c) => self.type_char(c),
                None => KeyOutcome::Ignored,
            },
        }
    }

    /// Takes in what was pasted or dropped, whatever its size.
    pub fn paste(&mut self, text: String) -> PasteOutcome {
        let text = paste::normalize_paste(text);
        self.last = LastEdit::Other;
        self.undo.close_step();
        let pasted = if let Some(path) = paste::image_path(&text) {
            let text = text.trim().to_owned();
            self.insert(&text);
            PasteOutcome::Path { path, text }
        } else if paste::is_chip(&text) {
            self.make_room(text.len());
            let Some(chip) = self.chips.add_text(text) else { return PasteOutcome::Full };
            self.replace(EditKind::Other, self.cursor..self.cursor, chip.encode_utf8(&mut [0; 4]));
            PasteOutcome::Chip
        } else {
            self.insert(&text);
            PasteOutcome::Inserted
        };
        self.undo.close_step();
        pasted
    }

    /// Inserts a text at the cursor as it is.
    pub fn insert(&mut self, text: &str) {
        let text = self.escape_reserved(text);
        self.replace(EditKind::Other, self.cursor..self.cursor, &text);
    }

    /// Puts `text` where this range of bytes of the cursor's line was, for completion. A range that
    /// is not one of the line changes nothing.
    pub fn replace_in_line(&mut self, range: Range<usize>, text: &str) {
        if self.current_line().get(range.clone()).is_none() {
            return;
        }
        let line = self.cursor.line;
        let text = self.escape_reserved(text);
        let range =
            BufferPosition { line, byte: range.start }..BufferPosition { line, byte: range.end };
        self.replace(EditKind::Other, range, &text);
    }

    /// Inserts an image as a chip; `name` is shown and may be empty. Returns false and changes nothing if there are
    /// too many chips.
    pub fn attach(&mut self, image: Image, name: &str) -> bool {
        self.attach_instead("", image, name)
    }

    /// Replaces `text` by an image, if the text is still directly before the cursor.
    pub fn attach_instead(&mut self, text: &str, image: Image, name: &str) -> bool {
        self.make_room(image.base64.len());
        let Some(chip) = self.chips.add_image(image, name) else { return false };
        let before = self.current_line().get(..self.cursor.byte).unwrap_or_default();
        let replaced = if before.ends_with(text) { text.len() } else { 0 };
        let start = BufferPosition { byte: self.cursor.byte - replaced, ..self.cursor };
        self.undo.close_step();
        self.replace(EditKind::Other, start..self.cursor, chip.encode_utf8(&mut [0; 4]));
        true
    }

    /// Returns the written text as a draft.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let mut draft = Draft::default();
        for line in 0..=self.buffer.last_line() {
            if line > 0 {
                draft.text.push('\n');
            }
            for c in self.buffer.line(line).chars() {
                self.add_to_draft(&mut draft, c);
            }
        }
        draft
    }

    /// Returns what is written and removes it from the editor; undo brings it back.
    pub fn take_draft(&mut self) -> Draft {
        let draft = self.draft();
        self.clear();
        draft
    }

    /// Writes on with a draft in the place of what is written, which undo brings back.
    pub fn restore_draft(&mut self, draft: Draft) {
        let text = self.fold_draft(draft);
        self.undo.close_step();
        self.replace(EditKind::Other, BufferPosition::default()..self.buffer.end(), &text);
        self.undo.close_step();
        self.last = LastEdit::Other;
        self.stay_on_text();
    }

    /// Removes everything; undo brings it back.
    pub fn clear(&mut self) {
        if !self.buffer.is_empty() {
            self.undo.close_step();
            self.replace(EditKind::Other, BufferPosition::default()..self.buffer.end(), "");
            self.undo.close_step();
        }
        self.last = LastEdit::Other;
        self.chips.number_anew();
    }

    /// Reports whether nothing is written, not even spaces.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Reports whether nothing is written but spaces, so that there is nothing to send.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        (0..=self.buffer.last_line()).all(|line| self.chips.is_blank(self.buffer.line(line)))
    }

    /// The line with the cursor. Characters of the last private plane represent chips.
    #[must_use]
    pub fn current_line(&self) -> &str {
        self.buffer.line(self.cursor.line)
    }

    /// Bytes of that line before the cursor.
    #[must_use]
    pub fn cursor_byte(&self) -> usize {
        self.cursor.byte
    }

    /// Lines before that line.
    #[must_use]
    pub fn line_number(&self) -> usize {
        self.cursor.line
    }

    /// The first line, which tells commands and shell lines from prompts.
    #[must_use]
    pub fn first_line(&self) -> &str {
        self.buffer.line(0)
    }

    /// Returns the number of written lines, before any wrapping.
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.buffer.last_line() + 1
    }

    fn add_to_draft(&self, draft: &mut Draft, c: char) {
        let start = draft.text.len();
        let image = match self.chips.content(c) {
            None => return draft.text.push(c),
            Some(Content::Text(text)) => {
                draft.text.push_str(text);
                None
            }
            Some(Content::Image(image)) => {
                draft.text.push_str(self.chips.label(c).unwrap_or_default());
                draft.images.push(image.clone());
                Some(draft.images.len() - 1)
            }
        };
        draft.folds.push(Fold { start, end: draft.text.len(), image });
    }

    /// The text of a draft with chips for its folds. Folds that do not fit the text are passed over;
    /// images that no fold speaks of come at the end.
    fn fold_draft(&mut self, draft: Draft) -> String {
        let Draft { text, images, folds, session: _ } = draft;
        let of_images: usize = images.iter().map(|image| image.base64.len()).sum();
        self.make_room(text.len() + of_images);
        let mut images: Vec<Option<Image>> = images.into_iter().map(Some).collect();
        let mut folded = String::new();
        let mut done = 0;
        for Fold { start, end, image } in folds {
            let (Some(before), Some(content)) = (text.get(done..start), text.get(start..end))
            else {
                continue;
            };
            let chip = match image {
                None => self.chips.add_text(content.to_owned()),
                Some(index) => {
                    let image = images.get_mut(index).and_then(Option::take);
                    image.and_then(|image| self.chips.add_image(image, name_in(content)))
                }
            };
            let Some(chip) = chip else { continue };
            folded.push_str(&self.chips.escape_reserved(before));
            folded.push(chip);
            done = end;
        }
        folded.push_str(&self.chips.escape_reserved(text.get(done..).unwrap_or_default()));
        for image in images.into_iter().flatten() {
            folded.extend(self.chips.add_image(image, ""));
        }
        folded
    }

    /// The text with chips in the place of characters that would be taken for chips.
    fn escape_reserved(&mut self, text: &str) -> String {
        if text.chars().any(Chips::is_reserved) {
            self.make_room(text.len());
        }
        self.chips.escape_reserved(text)
    }

    /// Lets go of what could be brought back where that has become too much. Chips that are not in
    /// the text yet are let go too, so this comes before they are made.
    fn make_room(&mut self, bytes: usize) {
        if !self.chips.is_full(bytes) {
            return;
        }
        let of_lines = (0..=self.buffer.last_line()).map(|line| self.buffer.line(line));
        self.chips.keep_only(of_lines.chain(self.undo.texts()).chain(self.kills.texts()));
        if self.chips.is_full(bytes) {
            self.undo = Undo::default();
            self.kills.clear();
            let of_lines = (0..=self.buffer.last_line()).map(|line| self.buffer.line(line));
            self.chips.keep_only(of_lines);
        }
    }

    /// The one way in which the text changes. The cursor is then after the new text.
    fn replace(&mut self, kind: EditKind, range: Range<BufferPosition>, text: &str) -> String {
        let start = range.start;
        let (removed, end) = self.buffer.replace(range, text);
        self.undo.record(kind, self.cursor, start, removed.clone(), text);
        self.cursor = self.buffer.snap_to_grapheme(end);
        removed
    }
}

/// The name in the label of an image.
fn name_in(label: &str) -> &str {
    let inner = label.strip_prefix("[Image #").and_then(|label| label.strip_suffix(']'));
    inner.and_then(|inner| inner.split_once(' ')).map_or("", |(_, name)| name)
}

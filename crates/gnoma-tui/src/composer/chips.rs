//! Pasted texts and images, each of which is one character in the text: however large they are, editing around them
//! costs nothing. The characters are from the last private plane and mean nothing to anyone; texts that contain
//! such characters become chips themselves, so that nothing typed can be mistaken for one.

use gnoma_core::Image;

/// The characters that represent chips.
const FIRST: u32 = 0x10_f000;
/// The most chips that there can be at once, including those that undo could bring back.
const MAX_CHIPS: usize = 4_000;
/// Bytes of all contents from which on those are let go that only undo could bring back.
const MAX_BYTES: usize = 16 << 20;

/// The content of a chip.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// A text that was pasted.
    Text(String),
    /// An image; the label is what the text says of it.
    Image(Image),
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image(image) => image.base64.len(),
        }
    }
}

#[derive(Clone, Debug)]
struct Chip {
    label: String,
    content: Content,
}

/// All chips of a composer.
#[derive(Clone, Debug, Default)]
pub(super) struct Chips {
    slots: Vec<Option<Chip>>,
    bytes: usize,
    texts: usize,
    images: usize,
}

impl Chips {
    /// Reports whether a character is one of those that represent chips.
    pub(super) fn is_reserved(c: char) -> bool {
        slot_of(c).is_some()
    }

    /// The label of the chip that a character represents.
    pub(super) fn label(&self, c: char) -> Option<&str> {
        self.chip(c).map(|chip| chip.label.as_str())
    }

    /// The content of the chip that a character represents.
    pub(super) fn content(&self, c: char) -> Option<&Content> {
        self.chip(c).map(|chip| &chip.content)
    }

    /// Keeps a text; returns the character that represents it, `None` if there are too many.
    pub(super) fn add_text(&mut self, text: String) -> Option<char> {
        self.texts += 1;
        let breaks = text.matches('\n').count();
        let size = match breaks {
            0 => format!("{} characters", text.chars().count()),
            1 => "+1 line".to_owned(),
            breaks => format!("+{breaks} lines"),
        };
        let label = format!("[Pasted text #{} {size}]", self.texts);
        self.add(Chip { label, content: Content::Text(text) })
    }

    /// Keeps an image; `name` may be empty.
    pub(super) fn add_image(&mut self, image: Image, name: &str) -> Option<char> {
        self.images += 1;
        let name = name.replace(char::is_control, "\u{fffd}");
        let space = if name.is_empty() { "" } else { " " };
        let label = format!("[Image #{}{space}{name}]", self.images);
        self.add(Chip { label, content: Content::Image(image) })
    }

    /// Reports whether a line is nothing but spaces, in its chips too.
    pub(super) fn is_blank(&self, line: &str) -> bool {
        line.chars().all(|c| match self.content(c) {
            None => c.is_whitespace(),
            Some(Content::Text(text)) => text.trim_start().is_empty(),
            Some(Content::Image(_)) => false,
        })
    }

    /// The text with chips in the place of characters that would be taken for chips.
    pub(super) fn escape_reserved(&mut self, text: &str) -> String {
        if !text.chars().any(Self::is_reserved) {
            return text.to_owned();
        }
        let mut guarded = String::with_capacity(text.len());
        for c in text.chars() {
            guarded.push(if Self::is_reserved(c) {
                self.add_text(c.to_string()).unwrap_or(char::REPLACEMENT_CHARACTER)
            } else {
                c
            });
        }
        guarded
    }

    /// Reports whether it is time to drop the chips that only undo could bring back.
    pub(super) fn is_full(&self, coming: usize) -> bool {
        self.bytes + coming > MAX_BYTES || self.slots.iter().flatten().count() >= MAX_CHIPS
    }

    /// Lets go of all chips that are not in these texts.
    pub(super) fn keep_only<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let mut used = vec![false; self.slots.len()];
        for slot in texts.flat_map(str::chars).filter_map(slot_of) {
            if let Some(used) = used.get_mut(slot) {
                *used = true;
            }
        }
        for (slot, used) in self.slots.iter_mut().zip(used) {
            if !used && let Some(chip) = slot.take() {
                self.bytes -= chip.content.bytes();
            }
        }
    }

    /// The next chips are the first ones of a new text.
    pub(super) fn number_anew(&mut self) {
        (self.texts, self.images) = (0, 0);
    }

    fn chip(&self, c: char) -> Option<&Chip> {
        self.slots.get(slot_of(c)?)?.as_ref()
    }

    fn add(&mut self, chip: Chip) -> Option<char> {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let c = char_of(slot)?;
        self.bytes += chip.content.bytes();
        match self.slots.get_mut(slot) {
            Some(free) => *free = Some(chip),
            None => self.slots.push(Some(chip)),
        }
        Some(c)
    }
}

fn slot_of(c: char) -> Option<usize> {
    let slot = usize::try_from(u32::from(c).checked_sub(FIRST)?).ok()?;
    (slot < MAX_CHIPS).then_some(slot)
}

fn char_of(slot: usize) -> Option<char> {
    if slot >= MAX_CHIPS {
        return None;
    }
    char::from_u32(FIRST + u32::try_from(slot).ok()?)
}

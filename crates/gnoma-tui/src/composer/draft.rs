//! What is written, as a value that can be sent, queued, kept in a file and written on.

use gnoma_core::{Content, Image, Text};
use serde::{Deserialize, Serialize};

/// A text with the images that it speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// All of the text: pasted texts in full, images as their labels.
    pub text: String,
    /// The images in the order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Parts of the text that an editor shows as chips, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folds: Vec<Fold>,
    /// The session that it was queued for, where it was saved while it waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A part of a text that an editor shows as a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    /// Bytes of the text before it.
    pub start: usize,
    /// Bytes of the text up to its end.
    pub end: usize,
    /// The number of the image, from 0, whose label the part is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<usize>,
}

impl Draft {
    /// Reports whether nothing is written but spaces.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.images.is_empty() && self.text.trim().is_empty()
    }

    /// Returns the content to send: the text, if there is any, and the images.
    #[must_use]
    pub fn into_content(self) -> Vec<Content> {
        let mut content = Vec::with_capacity(1 + self.images.len());
        if !self.text.trim().is_empty() {
            content.push(Content::Text(Text { text: self.text, signature: None }));
        }
        content.extend(self.images.into_iter().map(Content::Image));
        content
    }
}

impl From<String> for Draft {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Draft {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

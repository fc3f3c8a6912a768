//! The two forms of every `content`: a string, or a list of parts.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, SeqAccessDeserializer},
    },
};

use crate::lenient_values::{SmallList, Text};

/// Text, or a list of parts that hold text. A stream may change from one to the other.
#[derive(Debug)]
pub(crate) enum ContentText<'a, P> {
    /// A plain text without parts.
    Text(Text<'a>),
    /// A list of typed parts.
    Parts(SmallList<P>),
}

impl<P> Default for ContentText<'_, P> {
    fn default() -> Self {
        Self::Text(Text::default())
    }
}

impl<'de: 'a, 'a, P: Deserialize<'de>> Deserialize<'de> for ContentText<'a, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentTextVisitor(PhantomData))
    }
}

struct ContentTextVisitor<'a, P>(PhantomData<(&'a (), P)>);

impl<'de: 'a, 'a, P: Deserialize<'de>> Visitor<'de> for ContentTextVisitor<'a, P> {
    type Value = ContentText<'a, P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Text::deserialize(BorrowedStrDeserializer::new(text)).map(ContentText::Text)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Text::deserialize(text.into_deserializer()).map(ContentText::Text)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(ContentText::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        SmallList::deserialize(SeqAccessDeserializer::new(list)).map(ContentText::Parts)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ContentText::default())
    }
}

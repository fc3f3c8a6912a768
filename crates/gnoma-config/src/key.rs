//! Names of settings: paths through the tables of a configuration.

use std::fmt;

use crate::text::quote_toml;

/// One step of a [`KeyPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Segment {
    /// A table's key, or the name of an entry in a list whose entries have names.
    Name(String),
    /// The position in a list whose entries have no names.
    Index(usize),
}

impl Segment {
    /// The name, where it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Index(_) => None,
        }
    }
}

/// The path of a value in the configuration, such as `provider.api_keys.mistral` or `hooks.0.exec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyPath(Vec<Segment>);

impl KeyPath {
    /// Reads a dotted key. Names that hold a dot themselves cannot be written this way.
    pub(crate) fn from_dotted(key: &str) -> Self {
        Self(key.split('.').map(|name| Segment::Name(name.to_owned())).collect())
    }

    /// This path and one more name.
    pub(crate) fn with_name(&self, name: &str) -> Self {
        self.with_segment(Segment::Name(name.to_owned()))
    }

    /// This path and one more position.
    pub(crate) fn with_index(&self, index: usize) -> Self {
        self.with_segment(Segment::Index(index))
    }

    fn with_segment(&self, segment: Segment) -> Self {
        let mut longer = self.clone();
        longer.0.push(segment);
        longer
    }

    /// Returns the steps of this path.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The last step, when it is a name.
    pub(crate) fn last_name(&self) -> Option<&str> {
        self.0.last().and_then(Segment::name)
    }

    /// The first `length` steps.
    pub(crate) fn prefix(&self, length: usize) -> Self {
        Self(self.0.iter().take(length).cloned().collect())
    }

    /// Everything but the last step.
    pub(crate) fn parent(&self) -> Self {
        self.prefix(self.0.len().saturating_sub(1))
    }

    /// Reports whether this path is `other` or stands below it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The number of steps up to the first position in a list, and that position.
    pub(crate) fn first_index(&self) -> Option<(usize, usize)> {
        self.0.iter().enumerate().find_map(|(depth, segment)| match segment {
            Segment::Index(index) => Some((depth, *index)),
            Segment::Name(_) => None,
        })
    }

    /// This path with its first position moved on by `count`.
    pub(crate) fn shift_first_index(mut self, count: usize) -> Self {
        let first = self.0.iter_mut().find_map(|segment| match segment {
            Segment::Index(index) => Some(index),
            Segment::Name(_) => None,
        });
        if let Some(index) = first {
            *index += count;
        }
        self
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.0.iter().enumerate() {
            if depth > 0 {
                f.write_str(".")?;
            }
            match segment {
                Segment::Name(name) if is_bare(name) => f.write_str(name)?,
                Segment::Name(name) => f.write_str(&quote_toml(name))?,
                Segment::Index(index) => write!(f, "{index}")?,
            }
        }
        Ok(())
    }
}

/// Reports whether TOML accepts `name` as a key without quotes.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_path_displays_as_a_toml_key() {
        let path = KeyPath::from_dotted("arms").with_name("mistral/large").with_name("cost_weight");
        assert_eq!(path.to_string(), r#"arms."mistral/large".cost_weight"#);
        assert_eq!(
            KeyPath::from_dotted("hooks").with_index(2).with_name("exec").to_string(),
            "hooks.2.exec"
        );
        assert_eq!(
            KeyPath::from_dotted("a").with_name("\u{1b}[2J").to_string(),
            r#"a."\u001b[2J""#
        );
    }
}

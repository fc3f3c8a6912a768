//! Fields from YAML, within limits: a parser gives events, and what they build here cannot grow.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

/// Most texts, lists and maps in the fields, those that aliases repeat included.
pub(super) const MAX_NODES: usize = 2000;
/// Most lists and maps inside each other.
pub(super) const MAX_DEPTH: usize = 16;
/// Most references to other parts of the fields.
pub(super) const MAX_ALIASES: usize = 20;

/// A part of the fields.
#[derive(Clone, Debug)]
pub(super) enum YamlNode {
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl YamlNode {
    /// On one line: what is nested deeper than fields are read.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::List(items) => {
                items.into_iter().map(Self::into_text).collect::<Vec<_>>().join(", ")
            }
            Self::Map(fields) => {
                let field =
                    |(name, value): (String, Self)| format!("{name}: {}", value.into_text());
                fields.into_iter().map(field).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Returns the number of parts of this node, itself included.
    fn count_nodes(&self) -> usize {
        1 + match self {
            Self::Text(_) => 0,
            Self::List(items) => items.iter().map(Self::count_nodes).sum::<usize>(),
            Self::Map(fields) => fields.iter().map(|(_, value)| value.count_nodes()).sum(),
        }
    }
}

/// Fields that were read.
#[derive(Debug, Default)]
pub(super) struct ParsedFields {
    pub(super) fields: Vec<(String, YamlNode)>,
    pub(super) lenient: Vec<String>,
}

/// The place in a text that cannot be read as fields.
#[derive(Debug)]
pub(super) struct YamlFault {
    /// The number of the line, from 0.
    pub(super) line: usize,
    /// The error in that line.
    pub(super) error: YamlError,
}

/// The reason why a text cannot be read as fields.
#[derive(thiserror::Error)]
pub(super) enum YamlError {
    /// The text is not YAML, in the words of the parser.
    #[error("{0}")]
    Syntax(String),
    #[error("it needs `name: value`")]
    NoFields,
    #[error("it has a second document")]
    SecondDocument,
    #[error("it is nested too deep")]
    TooDeep,
    #[error("it has too many parts")]
    TooManyParts,
    #[error("it has too many references")]
    TooManyAliases,
    #[error("it refers to something that is not there")]
    UnknownAnchor,
    #[error("a list or map is no name")]
    NameNotText,
}

gnoma_core::debug_as_display!(YamlError);

/// A list or map that is being read.
#[derive(Debug)]
enum YamlOpen {
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>, Option<String>),
}

/// Reads a map of fields.
pub(super) fn parse_fields(text: &str) -> Result<ParsedFields, YamlFault> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = YamlReader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlFault {
            line: error.marker().line().saturating_sub(1),
            error: YamlError::Syntax(error.info().to_owned()),
        })?;
        let is_flow = matches!(letters.get(span.start.index()), Some('[' | '{'));
        let line = span.start.line().saturating_sub(1);
        reader.on_event(event, is_flow).map_err(|error| YamlFault { line, error })?;
    }
    match reader.root {
        Some(YamlNode::Map(fields)) => Ok(ParsedFields { fields, lenient: reader.lenient }),
        // Each field is an item of its own.
        Some(YamlNode::List(items))
            if items.iter().all(|item| matches!(item, YamlNode::Map(_))) =>
        {
            let maps = items.into_iter().filter_map(|item| match item {
                YamlNode::Map(fields) => Some(fields),
                YamlNode::Text(_) | YamlNode::List(_) => None,
            });
            let fields: Vec<_> = maps.flatten().collect();
            let mut lenient = reader.lenient;
            lenient.extend((!fields.is_empty()).then(|| "its fields are a list".to_owned()));
            Ok(ParsedFields { fields, lenient })
        }
        // Only comments.
        None => Ok(ParsedFields::default()),
        Some(YamlNode::Text(_) | YamlNode::List(_)) => {
            Err(YamlFault { line: 0, error: YamlError::NoFields })
        }
    }
}

/// Builds fields from a parser's events.
#[derive(Debug, Default)]
struct YamlReader {
    open: Vec<(YamlOpen, usize)>,
    root: Option<YamlNode>,
    anchors: HashMap<usize, YamlNode>,
    nodes: usize,
    aliases: usize,
    lenient: Vec<String>,
}

impl YamlReader {
    fn on_event(&mut self, event: Event<'_>, is_flow: bool) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.note_leniency(anchor > 0 || tag.is_some());
                let text = scalar_text(text, style, tag.as_deref());
                self.add_node(YamlNode::Text(text), anchor)
            }
            Event::Alias(anchor) => self.add_alias(anchor),
            Event::SequenceStart(anchor, tag) => {
                self.note_leniency(is_flow || anchor > 0 || tag.is_some());
                self.open_collection(YamlOpen::List(Vec::new()), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.note_leniency(is_flow || anchor > 0 || tag.is_some());
                self.open_collection(YamlOpen::Map(Vec::new(), None), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((YamlOpen::List(items), anchor)) => {
                    self.add_node(YamlNode::List(items), anchor)
                }
                Some((YamlOpen::Map(fields, _), anchor)) => {
                    self.add_node(YamlNode::Map(fields), anchor)
                }
                None => Ok(()),
            },
            Event::DocumentStart(_) if self.root.is_some() => Err(YamlError::SecondDocument),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn open_collection(&mut self, open: YamlOpen, anchor: usize) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::TooDeep);
        }
        self.open.push((open, anchor));
        Ok(())
    }

    /// Adds a copy of the part that an alias refers to.
    fn add_alias(&mut self, anchor: usize) -> Result<(), YamlError> {
        self.note_leniency(true);
        self.aliases += 1;
        if self.aliases > MAX_ALIASES {
            return Err(YamlError::TooManyAliases);
        }
        let node = self.anchors.get(&anchor).cloned();
        let node = node.ok_or(YamlError::UnknownAnchor)?;
        self.nodes += node.count_nodes();
        self.add_node(node, 0)
    }

    fn add_node(&mut self, node: YamlNode, anchor: usize) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(YamlError::TooManyParts);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((YamlOpen::List(items), _)) => items.push(node),
            Some((YamlOpen::Map(fields, name), _)) => match (name.take(), node) {
                (Some(name), node) => fields.push((name, node)),
                (None, YamlNode::Text(text)) => *name = Some(text),
                (None, YamlNode::List(_) | YamlNode::Map(_)) => {
                    return Err(YamlError::NameNotText);
                }
            },
        }
        Ok(())
    }

    /// Notes what is YAML and not of the plain kind.
    fn note_leniency(&mut self, is_odd: bool) {
        let field = self.open.iter().find_map(|(open, _)| match open {
            YamlOpen::Map(_, name) => name.as_deref(),
            YamlOpen::List(_) => None,
        });
        if let Some(name) = field.filter(|_| is_odd) {
            self.lenient.push(needs_quotes(name));
        }
    }
}

/// Returns the text of a scalar as fields have it: without the line break behind several lines, and empty for null.
fn scalar_text(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> String {
    let is_plain = style == ScalarStyle::Plain;
    let text = if is_plain { with_local_tag(text, tag) } else { text };
    let is_nothing = is_plain && matches!(&*text, "~" | "null" | "Null" | "NULL");
    if is_nothing { String::new() } else { text.trim_end().to_owned() }
}

/// A plain text with the tag before it, where that is none of YAML's own: a text that begins with `!` is meant.
fn with_local_tag<'a>(text: Cow<'a, str>, tag: Option<&Tag>) -> Cow<'a, str> {
    match tag.filter(|tag| matches!(tag.handle.as_str(), "" | "!")) {
        Some(tag) => format!("!{} {text}", tag.suffix.trim_start_matches('!')).into(),
        None => text,
    }
}

/// The remark on a value that is no plain text.
pub(super) fn needs_quotes(name: &str) -> String {
    format!("the value of `{name}` begins with a character that needs quotes")
}

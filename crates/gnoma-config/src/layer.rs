//! Layers of entries, and how a later layer goes over the earlier ones.
//!
//! A single value replaces, tables merge key by key, lists of tables are appended to. A named entry
//! (an arm, an MCP server) and the sections `security` and `plugins` are replaced as one, so that
//! what a file says about them is all there is.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    finding::{Origin, Place},
    key::{KeyPath, Segment},
    money::{DOLLAR, Money, RATES},
    schema,
    value::Value,
};

/// A checked value and who set it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    pub(crate) place: Place,
    /// The variable that the value reads, in a file.
    pub(crate) variable: Option<String>,
}

/// The settings that one file, the environment or the command line makes.
pub(crate) type Layer = BTreeMap<KeyPath, Entry>;

/// All layers in one.
#[derive(Default)]
pub(crate) struct MergedLayers(BTreeMap<KeyPath, Entry>);

impl MergedLayers {
    /// Puts `layer`, which wins, over what is there.
    pub(crate) fn add_layer(&mut self, mut layer: Layer) {
        add_features(&mut layer);
        for unit in replaced_units(&layer) {
            self.0.retain(|path, _| !path.is_within(&unit));
        }
        let offsets = self.list_lengths();
        for (path, entry) in layer {
            let count = path.first_index().and_then(|(depth, _)| offsets.get(&path.prefix(depth)));
            self.0.insert(path.shift_first_index(count.copied().unwrap_or(0)), entry);
        }
    }

    fn list_lengths(&self) -> BTreeMap<KeyPath, usize> {
        let mut lengths = BTreeMap::new();
        for path in self.0.keys() {
            if let Some((depth, index)) = path.first_index() {
                let length = lengths.entry(path.prefix(depth)).or_insert(0);
                *length = (index + 1).max(*length);
            }
        }
        lengths
    }

    /// Everything that a layer set, by key.
    pub(crate) fn entries(&self) -> &BTreeMap<KeyPath, Entry> {
        &self.0
    }

    /// Returns the value that `path` is set to, or its built-in value.
    pub(crate) fn value_at(&self, path: &KeyPath) -> Option<Value> {
        match self.0.get(path) {
            Some(entry) => Some(entry.value.clone()),
            None => schema::find_row(path).and_then(schema::Row::default_value),
        }
    }

    /// The entries of a table whose keys the user chooses, such as `provider.endpoints`.
    pub(crate) fn table_entries(&self, key: &str) -> impl Iterator<Item = (&str, &Value)> {
        let table = KeyPath::from_dotted(key);
        let length = table.segments().len();
        self.0.iter().filter_map(move |(path, entry)| {
            let inside = path.is_within(&table) && path.segments().len() == length + 1;
            Some((path.last_name().filter(|_| inside)?, &entry.value))
        })
    }

    /// The names that are set in a table of tables, such as `rate_limits`.
    pub(crate) fn table_names(&self, key: &str) -> BTreeSet<&str> {
        let table = KeyPath::from_dotted(key);
        let inside = self.0.keys().filter(|path| path.is_within(&table));
        let next = inside.filter_map(|path| path.segments().get(table.segments().len()));
        next.filter_map(Segment::name).collect()
    }

    /// Returns the entry that was set first, in the order of its file, among all those at or below `path`.
    pub(crate) fn first_within(&self, path: &KeyPath) -> Option<&Entry> {
        let inside = self.0.range(path.clone()..).take_while(|(inner, _)| inner.is_within(path));
        inside.map(|(_, entry)| entry).min_by_key(|entry| entry.place.position())
    }

    /// The number of entries in a list that is appended to.
    pub(crate) fn list_length(&self, key: &str) -> usize {
        self.list_lengths().get(&KeyPath::from_dotted(key)).copied().unwrap_or(0)
    }

    /// Returns the value of `key` if it is a text.
    pub(crate) fn text_at(&self, key: &str) -> Option<String> {
        self.value_at(&KeyPath::from_dotted(key)).and_then(Value::into_text)
    }

    /// A list of texts; empty where none is set.
    pub(crate) fn texts_at(&self, key: &str) -> Vec<String> {
        self.value_at(&KeyPath::from_dotted(key)).map(Value::into_texts).unwrap_or_default()
    }

    /// A whole number that fits 32 bits, as the schema sees to.
    pub(crate) fn count_at(&self, key: &str) -> u32 {
        match self.value_at(&KeyPath::from_dotted(key)) {
            Some(Value::Integer(number)) => u32::try_from(number).unwrap_or(u32::MAX),
            _ => 0,
        }
    }

    /// Returns the dollars that a value stands for; `None` where it is no amount, or in a currency without a rate.
    pub(crate) fn to_dollars(&self, value: &Value) -> Option<f64> {
        match value {
            Value::Number(number) => Some(*number),
            Value::Text(text) => {
                let Money { amount, currency } = Money::parse(text)?;
                Some(amount * self.exchange_rate(&currency)?)
            }
            _ => None,
        }
    }

    /// Dollars for one unit of a currency.
    pub(crate) fn exchange_rate(&self, currency: &str) -> Option<f64> {
        if currency == DOLLAR {
            return Some(1.0);
        }
        let rate = self.table_entries(RATES).find(|(code, _)| code.eq_ignore_ascii_case(currency));
        match rate?.1 {
            Value::Number(rate) => Some(*rate),
            _ => None,
        }
    }

    pub(crate) fn number_at(&self, key: &str) -> Option<f32> {
        match self.value_at(&KeyPath::from_dotted(key)) {
            #[expect(clippy::cast_possible_truncation, reason = "no setting is that precise")]
            Some(Value::Number(number)) => Some(number as f32),
            _ => None,
        }
    }

    /// Returns the value of `key` as a time.
    pub(crate) fn duration_at(&self, key: &str) -> Duration {
        match self.value_at(&KeyPath::from_dotted(key)) {
            Some(Value::Duration(time)) => time,
            _ => Duration::ZERO,
        }
    }

    /// A size in bytes.
    pub(crate) fn bytes_at(&self, key: &str) -> u64 {
        match self.value_at(&KeyPath::from_dotted(key)) {
            Some(Value::Bytes(count)) => count,
            _ => 0,
        }
    }

    /// Reports whether the switch `key` is on.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        matches!(self.value_at(&KeyPath::from_dotted(key)), Some(Value::Bool(true)))
    }
}

/// Adds the settings that a layer's switches of features stand for. A setting that the layer has by its own name wins.
fn add_features(layer: &mut Layer) {
    for feature in &schema::FEATURES {
        let Some(entry) = layer.get(&KeyPath::from_dotted(feature.key)) else { continue };
        let value = match (feature.words, &entry.value) {
            (Some(words), Value::Bool(is_on)) => {
                Value::Text(Cow::Borrowed(words[usize::from(*is_on)]))
            }
            (_, value) => value.clone(),
        };
        let entry = Entry { value, ..entry.clone() };
        if !feature.setting.is_empty() {
            layer.entry(KeyPath::from_dotted(feature.setting)).or_insert(entry);
        }
    }
}

/// The parts that `layer` replaces as one. Variables and flags set single values only.
fn replaced_units(layer: &Layer) -> BTreeSet<KeyPath> {
    let from_files = layer.iter().filter(|(_, entry)| entry.origin <= Origin::Project);
    from_files
        .map(|(path, _)| (schema::unit_length(path), path))
        .filter(|(length, path)| *length < path.segments().len())
        .map(|(length, path)| path.prefix(length))
        .collect()
}

//! Lists of a server, page by page: what is sound is taken, and what is not is left out and named. Pure.

use std::collections::HashSet;

use serde_json::Value;

use super::limits::{MAX_FAULTS, MAX_PAGES};

/// The reason why an element of a list is left out.
#[derive(thiserror::Error)]
pub(super) enum ListElementError {
    /// The element has no fields.
    #[error("it is no object")]
    NoObject,
    /// The field that identifies the element is missing.
    #[error("it has no `{0}`")]
    NoField(&'static str),
    /// The field that identifies the element is empty.
    #[error("its `{0}` is empty")]
    EmptyField(&'static str),
    /// The field that identifies the element is too long.
    #[error("its `{field}` is longer than {limit} bytes")]
    LongField {
        /// The name of the field.
        field: &'static str,
        /// The most bytes that it may have.
        limit: usize,
    },
    /// The field that identifies the element is not a text.
    #[error("its `{0}` is no text")]
    NoText(&'static str),
    /// The schema of a tool is not an object.
    #[error("the schema of its arguments is no object")]
    NoSchema,
    /// The schema of a tool is too large.
    #[error("the schema of its arguments is larger than {limit} bytes")]
    LargeSchema {
        /// The most bytes that it may have.
        limit: usize,
    },
}

gnoma_core::debug_as_display!(ListElementError);

/// An element of a list.
pub(super) trait ListElement: PartialEq + Sized {
    /// The field that the list is in.
    const FIELD: &'static str;
    /// The word for an element of the list, such as `tool`.
    const KIND: &'static str;
    /// Most elements that are taken.
    const MAX: usize;

    /// Reads one, and perhaps what is odd about it.
    ///
    /// # Errors
    /// The element cannot be used.
    fn from_value(value: &Value) -> Result<(Self, Option<String>), ListElementError>;

    /// Returns the text that tells this element from the others.
    fn identity(&self) -> &str;
}

/// The elements of a list so far.
#[derive(Debug)]
pub(super) struct Collector<T> {
    pub(super) elements: Vec<T>,
    /// The sentences about what is left out or odd.
    faults: Vec<String>,
    /// The number of further sentences that are not stored.
    unsaid: usize,
    /// The first element that there is no room for, and how many there are.
    excess: Option<(String, usize)>,
    names: HashSet<String>,
    cursors: HashSet<String>,
    seen: usize,
    doubles: usize,
    pages: usize,
}

impl<T: ListElement> Collector<T> {
    pub(super) fn new() -> Self {
        Self {
            elements: Vec::new(),
            faults: Vec::new(),
            unsaid: 0,
            excess: None,
            names: HashSet::new(),
            cursors: HashSet::new(),
            seen: 0,
            doubles: 0,
            pages: 0,
        }
    }

    /// Takes in a page, and gives the cursor of the next one; `None` at the end.
    ///
    /// The list ends at a cursor that was there before, at a page that brings nothing new, and where it is longer
    /// than any list should be. An empty cursor is a cursor: for some servers it is the end, which then shows in one
    /// of these ways.
    pub(super) fn add_page(&mut self, page: &Value) -> Option<String> {
        let (seen, doubles) = (self.seen, self.doubles);
        self.pages += 1;
        match page.get(T::FIELD) {
            Some(Value::Array(all)) => all.iter().for_each(|value| self.add_element(value)),
            None | Some(Value::Null) if page.is_object() => {
                // After the first page a server may have nothing more to list.
                if self.pages == 1 {
                    let what =
                        if page.get(T::FIELD).is_none() { "no list" } else { "`null` as its list" };
                    self.add_fault(format!("its answer has {what} `{}`", T::FIELD));
                }
            }
            _ => self.add_fault(format!("its list `{}` is no list", T::FIELD)),
        }
        let next = match page.get("nextCursor")? {
            Value::String(cursor) => cursor.clone(),
            Value::Number(cursor) => cursor.to_string(),
            Value::Null => return None,
            _ => {
                self.add_fault("where its list goes on cannot be read".to_owned());
                return None;
            }
        };
        let is_new = self.cursors.insert(next.clone());
        let came = self.seen - seen;
        let has_brought = came == 0 || self.doubles - doubles < came;
        if !is_new || !has_brought {
            return None;
        }
        if self.elements.len() >= T::MAX {
            self.add_fault(format!("its list has more than {} elements", T::MAX));
            return None;
        }
        if self.pages >= MAX_PAGES {
            self.add_fault(format!("its list has more than {MAX_PAGES} pages"));
            return None;
        }
        Some(next)
    }

    /// The next page did not come; why.
    pub(super) fn break_off(&mut self, after: &str, why: &str) {
        // For such a server it was the end.
        if !after.is_empty() {
            self.add_fault(format!("the rest of its list did not come: {why}"));
        }
    }

    fn add_element(&mut self, value: &Value) {
        self.seen += 1;
        let (kind, number) = (T::KIND, self.seen);
        let (element, odd) = match T::from_value(value) {
            Ok(read) => read,
            Err(why) => return self.add_fault(format!("{}: {why}", name_of(value, kind, number))),
        };
        if self.names.contains(element.identity()) {
            self.doubles += 1;
            if !self.elements.contains(&element) {
                let name = element.identity();
                self.add_fault(format!("`{name}`: another {kind} of the same name"));
            }
            return;
        }
        if self.elements.len() >= T::MAX {
            let (_, count) = self.excess.get_or_insert_with(|| (element.identity().to_owned(), 0));
            *count += 1;
            self.names.insert(element.identity().to_owned());
            return;
        }
        if let Some(odd) = odd {
            self.add_fault(format!("`{}`: {odd}", element.identity()));
        }
        self.names.insert(element.identity().to_owned());
        self.elements.push(element);
    }

    fn add_fault(&mut self, fault: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        } else {
            self.unsaid += 1;
        }
    }

    /// Returns the sentences about what is left out or odd. The first ones say how much there is that is not named.
    pub(super) fn describe_faults(&self) -> Vec<String> {
        let excess = self.excess.as_ref().map(|(first, count)| {
            let others = match count - 1 {
                0 => String::new(),
                others => format!(" and {others} after it"),
            };
            format!("`{first}`{others}: more than {} of them", T::MAX)
        });
        let unsaid = (self.unsaid > 0).then(|| {
            let all = self.unsaid + self.faults.len();
            format!("its list `{}` has {all} faults, of which {MAX_FAULTS} are named", T::FIELD)
        });
        excess.into_iter().chain(unsaid).chain(self.faults.iter().cloned()).collect()
    }
}

/// Returns the name by which messages refer to an element that cannot be read.
fn name_of(value: &Value, kind: &str, number: usize) -> String {
    /// Longest name that is shown, in bytes.
    const MAX_SHOWN_BYTES: usize = 80;
    let field = |key: &str| value.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
    match field("name").or_else(|| field("uri")) {
        Some(name) => {
            format!("`{}`", gnoma_core::text_truncation::word_prefix(name, MAX_SHOWN_BYTES))
        }
        None => format!("the {kind} number {number}"),
    }
}

/// The text of a field, and a word where it is none.
pub(super) fn text_field(value: &Value, key: &str) -> (String, Option<String>) {
    match value.get(key) {
        Some(Value::String(text)) => (text.clone(), None),
        None | Some(Value::Null) => (String::new(), None),
        Some(_) => (String::new(), Some(format!("its `{key}` is no text"))),
    }
}

/// A name that identifies an element.
///
/// # Errors
/// There is none, or it cannot be one.
pub(super) fn identity_field(value: &Value, key: &'static str) -> Result<String, ListElementError> {
    /// Longest name, in bytes.
    const MAX_BYTES: usize = 4096;
    if !value.is_object() {
        return Err(ListElementError::NoObject);
    }
    match value.get(key) {
        Some(Value::String(name)) if name.is_empty() => Err(ListElementError::EmptyField(key)),
        Some(Value::String(name)) if name.len() > MAX_BYTES => {
            Err(ListElementError::LongField { field: key, limit: MAX_BYTES })
        }
        Some(Value::String(name)) => Ok(name.clone()),
        None => Err(ListElementError::NoField(key)),
        Some(_) => Err(ListElementError::NoText(key)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Word(String, Value);

    impl ListElement for Word {
        const FIELD: &'static str = "words";
        const KIND: &'static str = "word";
        const MAX: usize = 10;

        fn from_value(value: &Value) -> Result<(Self, Option<String>), ListElementError> {
            let word = identity_field(value, "name")?;
            Ok((Self(word, value.clone()), text_field(value, "about").1))
        }

        fn identity(&self) -> &str {
            &self.0
        }
    }

    /// Takes pages until there is no next one; the pages that were asked for after the first.
    fn pages(page: impl Fn(&str) -> Value) -> (Collector<Word>, Vec<String>) {
        let (mut all, mut asked) = (Collector::new(), Vec::new());
        let mut next = all.add_page(&page("first"));
        while let Some(cursor) = next {
            asked.push(cursor.clone());
            next = all.add_page(&page(&cursor));
        }
        (all, asked)
    }

    fn names(all: &Collector<Word>) -> Vec<&str> {
        all.elements.iter().map(|word| word.0.as_str()).collect()
    }

    #[test]
    fn mcp_list_pagination_ends_at_a_repeated_cursor_without_duplicates() {
        for cursor in [json!(""), json!("x"), json!(0)] {
            let page = json!({"words": [{"name": "a"}, {"name": "b"}], "nextCursor": cursor});
            let (all, asked) = pages(|_| page.clone());
            assert_eq!((names(&all), asked.len()), (vec!["a", "b"], 1), "{cursor}");
            assert!(all.describe_faults().is_empty(), "{:?}", all.describe_faults());
        }
        // Two that point at each other, and one that counts on for ever.
        let (all, asked) = pages(|at| {
            let next = if at == "1" { "2" } else { "1" };
            json!({"words": [{"name": "a"}], "nextCursor": next})
        });
        assert!(names(&all) == ["a"] && asked.len() <= 2, "{asked:?}");
        let (all, asked) = pages(|at| json!({"words": [], "nextCursor": format!("{at}+")}));
        assert_eq!((all.describe_faults().len(), asked.len()), (1, MAX_PAGES - 1));
    }

    #[test]
    fn mcp_list_pagination_continues_with_an_empty_cursor() {
        let (all, asked) = pages(|at| match at {
            "first" => json!({"words": [{"name": "a"}], "nextCursor": ""}),
            "" => json!({"words": [{"name": "b"}], "nextCursor": "2"}),
            _ => json!({"words": [{"name": "c"}], "nextCursor": null}),
        });
        assert_eq!((names(&all), asked.len()), (vec!["a", "b", "c"], 2));
    }

    #[test]
    fn invalid_mcp_list_element_is_skipped_and_reported() {
        let broken = [
            json!(null),
            json!("b"),
            json!({}),
            json!({"name": 1}),
            json!({"name": ""}),
            json!({"name": "a", "about": "other"}),
        ];
        for element in broken {
            let page = json!({"words": [{"name": "a"}, element, {"name": "c"}]});
            let (all, _) = pages(|_| page.clone());
            assert_eq!(
                (names(&all), all.describe_faults().len()),
                (vec!["a", "c"], 1),
                "{element}"
            );
        }
        let odd = json!({"words": [{"name": "a", "about": 1}]});
        let (all, _) = pages(|_| odd.clone());
        assert_eq!(
            (names(&all), &all.describe_faults()[..]),
            (vec!["a"], &["`a`: its `about` is no text".to_owned()][..])
        );
        for page in [
            json!({}),
            json!({"words": null}),
            json!({"words": 1}),
            json!({"words": {}}),
            json!(null),
            json!([]),
        ] {
            let (all, _) = pages(|_| page.clone());
            assert_eq!((all.elements.len(), all.describe_faults().len()), (0, 1), "{page}");
        }
    }

    #[test]
    fn omitted_mcp_list_elements_are_counted() {
        let more = Word::MAX + 20;
        let words: Vec<_> = (0..more).map(|at| json!({"name": format!("w{at}")})).collect();
        let (all, _) = pages(|_| json!({ "words": words }));
        assert_eq!(all.elements.len(), Word::MAX);
        let first = Word::MAX;
        assert_eq!(
            all.describe_faults(),
            [format!("`w{first}` and 19 after it: more than {first} of them")]
        );
        let broken = vec![json!({}); MAX_FAULTS + 50];
        let (all, _) = pages(|_| json!({ "words": broken }));
        let said = all.describe_faults();
        assert_eq!(said.len(), MAX_FAULTS + 1);
        let count = MAX_FAULTS + 50;
        assert_eq!(
            said[0],
            format!("its list `words` has {count} faults, of which {MAX_FAULTS} are named")
        );
        // A list that has ended says so in many ways.
        let (all, _) = pages(|at| match at {
            "first" => json!({"words": [{"name": "a"}], "nextCursor": "2"}),
            _ => json!({"words": null}),
        });
        assert!(all.describe_faults().is_empty());
    }
}

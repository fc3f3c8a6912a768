//! The list's format, read in place once it is unpacked.
//!
//! Lines: `#` comment (`# made 2026-11-11` among them); `@provider` opens a section, and
//! `@provider<TAB>=other` says that it sells what another does. In a section, sorted by id, a model a
//! line, columns parted by tabs, empty ones at the end left out: id, window, most output, dollars per
//! million tokens for input, output, cache read and cache write, letters for capabilities (`s` sees,
//! `t` thinks, `j` answers by schema), day released, day deprecated, `open` or `closed`. Or
//! `id<TAB>=other id`. A line that is not so is as if it were not there.

use std::sync::LazyLock;

use gnoma_core::Price;
use gnoma_packed::{packed, unpack};
use memchr::{memchr, memmem, memrchr};

use super::{Capabilities, ListedModel, day};

/// Longest id that is looked up.
const MAX_ID_BYTES: usize = 256;
const MADE: &str = "\n# made ";
/// Digits behind the point that a price may have.
const DECIMALS: usize = 6;
const MICRO: u64 = 1_000_000;

/// The list that is shipped, unpacked for the first look-up.
pub(super) static SHIPPED: LazyLock<List<'static>> =
    LazyLock::new(|| List::new(unpack(packed!("models.tsv")).leak()));

/// A list, wherever its text comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    text: &'a str,
}

/// The entry of the list behind an id: the facts of a model, or an alias.
enum ListEntry<'a> {
    Facts(&'a str),
    Alias(&'a str),
}

impl<'a> List<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn made_on(&self) -> Option<i32> {
        let at = self.text.find(MADE)? + MADE.len();
        self.text.get(at..)?.lines().next().and_then(day::from_iso)
    }

    pub(super) fn providers(self) -> impl Iterator<Item = &'a str> {
        let heads = self.text.lines().filter_map(|line| line.strip_prefix('@'));
        heads.map(|head| head.split('\t').next().unwrap_or_default())
    }

    /// The model lines of a provider.
    fn section(self, provider: &str) -> Option<&'a str> {
        if let Some(section) = self.own_section(provider, "\n") {
            return Some(section);
        }
        let other = self.own_section(provider, "\t=")?.lines().next()?;
        self.own_section(other, "\n")
    }

    fn own_section(self, provider: &str, end: &str) -> Option<&'a str> {
        if provider.contains(['\n', '\t']) {
            return None;
        }
        let head = format!("\n@{provider}{end}");
        let from = memmem::find(self.text.as_bytes(), head.as_bytes())? + head.len();
        let rest = self.text.get(from..)?;
        if rest.starts_with('@') {
            return Some("");
        }
        rest.get(..memmem::find(rest.as_bytes(), b"\n@").map_or(rest.len(), |at| at + 1))
    }

    /// The ids of a provider as they stand, other names among them.
    #[cfg(test)]
    pub(super) fn model_ids(self, provider: &str) -> Vec<&'a str> {
        let lines = self.section(provider).unwrap_or_default().lines();
        lines.filter_map(|line| Some(line.split_once('\t')?.0)).collect()
    }

    /// The models of a provider under their first names.
    pub(super) fn models(self, provider: &str) -> impl Iterator<Item = ListedModel> {
        let lines = self.section(provider).unwrap_or_default().lines();
        lines.filter_map(move |line| {
            let (id, rest) = line.split_once('\t')?;
            match parse_entry(rest) {
                ListEntry::Facts(facts) => parse_model(provider, id, facts),
                ListEntry::Alias(_) => None,
            }
        })
    }

    /// The model that is listed under exactly this id.
    pub(super) fn find_exact(self, provider: &str, id: &str) -> Option<ListedModel> {
        let section = self.section(provider)?;
        match parse_entry(line_of(section, id)?) {
            ListEntry::Facts(facts) => parse_model(provider, id, facts),
            ListEntry::Alias(lead) => match parse_entry(line_of(section, lead)?) {
                ListEntry::Facts(facts) => {
                    let found = parse_model(provider, id, facts)?;
                    Some(ListedModel { alias_of: Some(lead.to_owned()), ..found })
                }
                ListEntry::Alias(_) => None,
            },
        }
    }
}

/// Returns the model that `exact` finds under the id, or else under the longest part of the id that says which
/// model it is.
pub(super) fn resolve_id(
    id: &str,
    exact: impl Fn(&str) -> Option<ListedModel>,
) -> Option<ListedModel> {
    if id.len() > MAX_ID_BYTES {
        return None;
    }
    let shorter = || {
        id.rmatch_indices(['-', '@', ':']).filter_map(|(at, mark)| {
            let (name, rest) = (id.get(..at)?, id.get(at + 1..)?);
            says_no_more(mark, rest).then_some(name)
        })
    };
    exact(id).or_else(|| shorter().find_map(exact))
}

/// Reports whether the text after a name only says when or how the model is served: a date or a build's number
/// after a hyphen or an at sign, anything after a colon. Short numbers are generations, and belong to the name.
fn says_no_more(mark: &str, rest: &str) -> bool {
    const LEAST_DIGITS: usize = 3;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match mark {
        ":" => !rest.is_empty(),
        _ if rest.contains('-') => day::from_iso(rest).is_some(),
        _ => rest == "latest" || (rest.len() >= LEAST_DIGITS && number(rest)),
    }
}

fn parse_entry(rest: &str) -> ListEntry<'_> {
    rest.strip_prefix('=').map_or(ListEntry::Facts(rest), ListEntry::Alias)
}

/// Returns the rest of the line that starts with `id`, in sorted lines.
fn line_of<'a>(section: &'a str, id: &str) -> Option<&'a str> {
    let bytes = section.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = memrchr(b'\n', bytes.get(low..middle)?).map_or(low, |at| low + at + 1);
        let end = memchr(b'\n', bytes.get(middle..high)?).map_or(high, |at| middle + at);
        let line = section.get(start..end)?;
        let (name, rest) = line.split_once('\t').unwrap_or((line, ""));
        match name.cmp(id) {
            std::cmp::Ordering::Equal => return Some(rest),
            std::cmp::Ordering::Less => low = end + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

fn parse_model(provider: &str, id: &str, facts: &str) -> Option<ListedModel> {
    let mut columns = facts.split('\t');
    let mut column = || columns.next().unwrap_or_default();
    let (window, output) = (column(), column());
    let (input_price, output_price) =
        (parse_micro_dollars(column())?, parse_micro_dollars(column())?);
    let (cache_read, cache_write) = (column(), column());
    let cached =
        |text: &str| if text.is_empty() { Some(input_price) } else { parse_micro_dollars(text) };
    let price = Price {
        input: input_price,
        output: output_price,
        cache_read: cached(cache_read)?,
        cache_write: cached(cache_write)?,
    };
    let able = column();
    Some(ListedModel {
        provider: provider.to_owned(),
        id: id.to_owned(),
        alias_of: None,
        context_window: window.parse().ok()?,
        max_output: output.parse().ok(),
        price,
        capabilities: Capabilities {
            tools: true,
            vision: able.contains('s'),
            thinking: able.contains('t'),
            structured_output: able.contains('j'),
        },
        released: day::from_iso(column()),
        deprecated: day::from_iso(column()),
        open_weights: match column() {
            "open" => Some(true),
            "closed" => Some(false),
            _ => None,
        },
    })
}

/// Micro-dollars of a price in dollars, exactly.
fn parse_micro_dollars(dollars: &str) -> Option<u64> {
    let (whole, rest) = dollars.split_once('.').unwrap_or((dollars, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || rest.len() > DECIMALS || !digits(whole) || !digits(rest) {
        return None;
    }
    let rest: u64 = format!("{rest:0<DECIMALS$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(MICRO)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# a list\n# made 2026-11-11\n@a\n@b\n\
        m-1\t200000\t8192\t0.5\t1.5\t0.05\t\tsj\t2025-12-01\t\topen\n\
        m-1-2512\t=m-1\n\
        m-2\t1000\t\t3\t15\n\
        odd\tmany\t\t3\t15\n\
        @c\t=b\n@d\n";

    #[test]
    fn model_catalogue_line_is_parsed() {
        let list = List::new(TEXT);
        let model = list.find_exact("b", "m-1").unwrap();
        assert_eq!((model.context_window, model.max_output), (200_000, Some(8_192)));
        let price =
            Price { input: 500_000, output: 1_500_000, cache_read: 50_000, cache_write: 500_000 };
        assert_eq!(model.price, price, "what is not told costs as input");
        assert!(model.capabilities.vision && !model.capabilities.thinking);
        assert_eq!((model.released, model.deprecated), (Some(20_423), None));
        assert_eq!(model.open_weights, Some(true));
        let other = list.find_exact("c", "m-1-2512").unwrap();
        assert_eq!((other.provider.as_str(), other.alias_of.as_deref()), ("c", Some("m-1")));
        assert_eq!(list.find_exact("b", "odd"), None);
        assert_eq!(list.models("b").count(), 2);
        assert_eq!((list.models("a").count(), list.models("d").count()), (0, 0));
        assert_eq!(list.providers().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(list.made_on(), Some(20_768));
    }

    #[test]
    fn model_price_text_parses_exactly_to_micro_dollars_or_not_at_all() {
        for (text, price) in [("0", Some(0)), ("0.0028", Some(2_800)), ("12.5", Some(12_500_000))] {
            assert_eq!(parse_micro_dollars(text), price);
        }
        for text in ["", ".", ".5", "-1", "1e3", "0.0000001", "1.2.3", "99999999999999999999"] {
            assert_eq!(parse_micro_dollars(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn model_catalogue_parser_never_panics_on_any_text(bytes in proptest::collection::vec(any::<u8>(), 0..400), id in ".{0,20}") {
            let text = String::from_utf8_lossy(&bytes);
            read_all(&text, &id);
        }

        #[test]
        fn model_catalogue_parser_never_panics_on_any_lines(
            lines in proptest::collection::vec("[@#]?[ab:@-]{0,3}\t?=?[0-9.\tsé-]{0,12}", 0..30),
            id in "[ab:@0-9é-]{0,8}",
        ) {
            read_all(&format!("\n@a\n{}\n", lines.join("\n")), &id);
        }

        #[test]
        fn model_price_round_trips_through_text(micro_dollars in 0_u64..10_000_000_000) {
            let (whole, rest) = (micro_dollars / MICRO, micro_dollars % MICRO);
            prop_assert_eq!(parse_micro_dollars(&format!("{whole}.{rest:06}")), Some(micro_dollars));
        }
    }

    fn read_all(text: &str, id: &str) {
        let list = List::new(text);
        let _made = list.made_on();
        for provider in list.providers().chain(["a", id]) {
            for model in list.models(provider) {
                assert_eq!(model.provider, provider);
            }
            if let Some(found) = resolve_id(id, |id| list.find_exact(provider, id)) {
                assert!(id.starts_with(&found.id));
            }
        }
    }
}

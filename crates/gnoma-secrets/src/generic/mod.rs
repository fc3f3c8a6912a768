//! Secrets that no provider's rule names: literals given to secret-like names in any language, format or
//! prose, and random strings that stand where a secret would.
//!
//! Cheap steps first. A key word (`names`) or a long run of token characters (`runs`) makes a *place*; `place`
//! reads what is bound to it; `features` describes name, operator, value and surroundings in numbers; the
//! small tree ensemble of `model` decides. Deliberately not here: provider formats, private key blocks, user
//! information in URLs, and decoding. What those find need not be found again.

mod cursor;
pub(crate) mod features;
mod list_key;
mod model;
mod names;
pub(crate) mod place;
mod placeholder;
mod runs;
mod setting;

use std::ops::Range;

pub(crate) use names::STEMS;
pub(crate) use placeholder::is_placeholder;

use crate::language;
use place::NamedValue;

/// A value that is likely a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SecretCandidate {
    /// First byte of the value.
    pub(crate) start: usize,
    /// One past its last byte.
    pub(crate) end: usize,
    /// `password`, `secret`, `token`, `key`, `auth`, `credential` or `high-entropy`.
    pub(crate) rule: &'static str,
}

/// Shorter values are not looked for elsewhere in the text: they would be found inside of words.
const MIN_REPEATED_BYTES: usize = 6;
/// Values looked for elsewhere in one text, and places each is reported at.
const MAX_REPEATED_VALUES: usize = 64;
const MAX_REPEATS: usize = 64;

/// Adds the secrets of `text` to `found`, sorted by start and without overlap among themselves. `stems` is
/// where [`STEMS`] stand in the text, `runs` where long runs of token characters begin.
///
/// Linear in the length of the text; allocates only when something is found.
pub(crate) fn find_candidates(
    text: &[u8],
    stems: &[Range<usize>],
    runs: &[usize],
    found: &mut Vec<SecretCandidate>,
) {
    let already = found.len();
    names::for_each_named(text, stems, &mut |place| found.extend(judge_value(text, place)));
    merge_added(found, already);
    let named = found.len();
    let mut next = already;
    runs::for_each_run(text, runs, &mut |place| {
        // In order, as the runs are: what names gave away needs no second look.
        while found.get(next).is_some_and(|known| next < named && known.end < place.value.end) {
            next += 1;
        }
        let is_known = |known: &SecretCandidate| next < named && known.start <= place.value.start;
        if !found.get(next).is_some_and(is_known) {
            found.extend(judge_value(text, place));
        }
    });
    if found.len() > already {
        find_repeats(text, found, already);
        merge_added(found, already);
    }
}

fn judge_value(text: &[u8], place: &NamedValue) -> Option<SecretCandidate> {
    let value = text.get(place.value.clone())?;
    let reading = language::measure_value(value);
    if reading.is_plain_words() {
        return None;
    }
    let is_strong = place.is_setting && setting::is_strong(value);
    let is_likely = is_strong || {
        let features = features::extract_features(text, place, &reading);
        model::is_secret(&features, place)
    };
    let is_secret = is_likely
        && !placeholder::is_placeholder(value)
        && !placeholder::is_public(value, place.rule)
        && !list_key::is_list_key(text, place);
    is_secret.then_some(SecretCandidate {
        start: place.value.start,
        end: place.value.end,
        rule: place.rule,
    })
}

/// A secret that stands twice, once as a password and once as a name, is hidden by neither alone.
fn find_repeats(text: &[u8], found: &mut Vec<SecretCandidate>, already: usize) {
    let first_pass: Vec<SecretCandidate> =
        found.iter().skip(already).take(MAX_REPEATED_VALUES).copied().collect();
    for known in first_pass {
        let Some(value) = text.get(known.start..known.end) else { continue };
        if value.len() < MIN_REPEATED_BYTES {
            continue;
        }
        let again = memchr::memmem::find_iter(text, value).take(MAX_REPEATS);
        found.extend(
            again
                .map(|start| SecretCandidate { start, end: start + value.len(), rule: known.rule })
                .filter(|place| stands_alone(text, place)),
        );
    }
}

fn stands_alone(text: &[u8], place: &SecretCandidate) -> bool {
    let before = place.start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(place.end);
    ![before, after].into_iter().flatten().any(u8::is_ascii_alphanumeric)
}

/// Sorts what this call added and joins what overlaps.
fn merge_added(found: &mut Vec<SecretCandidate>, already: usize) {
    let mut added = found.split_off(already.min(found.len()));
    gnoma_core::sort::by_key(&mut added, |place| (place.start, std::cmp::Reverse(place.end)));
    for place in added {
        match found.get_mut(already..).and_then(<[_]>::last_mut) {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => found.push(place),
        }
    }
}

#[cfg(test)]
mod tests;

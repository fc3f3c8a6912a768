//! Names that secrets are given: finding them in text, and what their words say.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

use super::cursor::{is_name_byte, is_ulid, is_uuid, scan_back};
use super::list_key::is_attribute;
use super::place::{self, Binding, NamedValue, Operator};
use super::setting;

/// Longer names are data.
const MAX_NAME_BYTES: usize = 64;
/// Longest name of a resource up to a name in it.
const MAX_ARN_BYTES: usize = 128;
/// String arguments of one call that are looked at.
const MAX_ARGUMENTS: usize = 3;
/// Longer words are none that is known.
const MAX_WORD_BYTES: usize = 24;
/// Ends of names, without signs and in lower case, whose values everybody may read although a word of
/// them is about secrets.
const PUBLIC_NAMES: [&[u8]; 7] = [
    b"pagetoken",
    b"continuationtoken",
    b"sitekey",
    b"websocketkey",
    b"siteverification",
    b"cachekey",
    b"codechallenge",
];
/// Words before `key` and `token` in sentences and logs that say the same.
const PUBLIC_BEFORE: [&[u8]; 19] = [
    b"cache",
    b"public",
    b"site",
    b"primary",
    b"foreign",
    b"partition",
    b"sort",
    b"publishable",
    b"from",
    b"did:",
    b"host",
    b"object",
    b"s3",
    b"storage",
    b"idempotency",
    b"routing",
    b"pagination",
    b"continuation",
    b"page",
];
/// Words of one name that are looked at, from its end.
const MAX_WORDS: usize = 10;

/// Parts of names that make a place worth reading, in any letter case.
pub(crate) const STEMS: &[&str] = &[
    "pass",
    "pwd",
    "_pw",
    "secret",
    "token",
    "key",
    "auth",
    "cred",
    "nonce",
    "salt",
    "verifier",
    "jwt",
    "session",
    "cookie",
    "hmac",
    "login",
    "identified",
    "kennwort",
    "senha",
    "webhook",
];

/// The meaning of one word of a name for its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    Password,
    Secret,
    Token,
    Key,
    Auth,
    Credential,
    /// Salts, nonces, signatures, session ids: sometimes worth hiding.
    Minor,
    /// `api`, `access`, `private`, `db`: makes a secret likelier.
    Raises,
    /// `file`, `label`, `id`, `public`: the value is about a secret or is none.
    Lowers,
    /// `public`, `encrypted`, `hash`: others may read the value.
    Sealed,
    /// `value`, `string`, `confirmation`: as if it were not there.
    Filler,
    Other,
}

impl Sense {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "password" => Self::Password,
            "secret" => Self::Secret,
            "token" => Self::Token,
            "key" => Self::Key,
            "auth" => Self::Auth,
            "credential" => Self::Credential,
            "minor" => Self::Minor,
            "raises" => Self::Raises,
            "lowers" => Self::Lowers,
            "sealed" => Self::Sealed,
            "filler" => Self::Filler,
            "other" => Self::Other,
            _ => return None,
        })
    }
}

type Senses = HashMap<&'static [u8], Sense, BuildHasherDefault<WordHasher>>;

static SENSES: OnceLock<Senses> = OnceLock::new();

/// FNV-1a: the words are ours and short, so that nothing safer is needed.
#[derive(Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        const PRIME: u64 = 0x0100_0000_01b3;
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    fn finish(&self) -> u64 {
        // The upper bits choose where a word is kept, the lower ones hardly differ.
        self.0 ^ self.0.rotate_left(32)
    }
}

/// Hands every literal bound to a secret-like name to `take`. `stems` is where [`STEMS`] stand, in order.
pub(crate) fn for_each_named(
    text: &[u8],
    stems: &[Range<usize>],
    take: &mut dyn FnMut(&NamedValue),
) {
    let mut done = 0;
    for stem in stems {
        if stem.end <= done {
            continue;
        }
        let name = name_around(text, stem.start, stem.end);
        done = name.end;
        if name.len() <= MAX_NAME_BYTES {
            each_bound(text, name, take);
        }
    }
}

/// The whole name that holds a stem.
fn name_around(text: &[u8], start: usize, end: usize) -> Range<usize> {
    let start = scan_back(text, start, MAX_NAME_BYTES, is_name_byte);
    let after = text.get(end..).unwrap_or_default();
    let more = after.iter().take(MAX_NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    let end = end + more;
    // `password->` and `password--` end before the sign.
    let dashes = text.get(start..end).unwrap_or_default().iter().rev();
    start..end - dashes.take_while(|byte| **byte == b'-').count()
}

fn each_bound(text: &[u8], name: Range<usize>, take: &mut dyn FnMut(&NamedValue)) {
    take_setting(text, &name, take);
    let Some(first) = place::bound_after(text, name.end) else { return };
    let is_call = first.operator == Operator::Call && first.quote.is_some();
    let written = text.get(name.clone()).unwrap_or_default();
    let takes_password = || is_call && ends_with(written, b"login");
    let words = NameWords::read(written);
    let Some(rule) = words.rule().or_else(|| takes_password().then_some("password")) else {
        return;
    };
    let value = text.get(first.value.clone()).unwrap_or_default();
    let is_id = (words.ends_lowering && is_uuid(value)) || (rule == "auth" && is_ulid(value));
    let is_elsewhere = is_coordinate(text, &name, &first) || is_in_arn(text, &name);
    if is_id || is_nonce(text, &name) || is_elsewhere || is_public_in_text(text, &name) {
        return;
    }
    let mut argument_end = first.end;
    take(&place_of(name.clone(), first, 0, rule));
    for argument in (1..MAX_ARGUMENTS).take_while(|_| is_call) {
        let Some(next) = place::next_argument(text, argument_end) else { return };
        argument_end = next.end;
        take(&place_of(name.clone(), next, argument, rule));
    }
}

/// The value of a password in a line of settings, which holds signs that end it in code.
fn take_setting(text: &[u8], name: &Range<usize>, take: &mut dyn FnMut(&NamedValue)) {
    let Some((value, operator)) = setting::setting_value(text, name) else { return };
    let words = NameWords::read(text.get(name.clone()).unwrap_or_default());
    if words.password && words.ends_secret && words.rule() == Some("password") {
        let binding = Binding { operator, end: value.end, value, quote: None };
        let place = place_of(name.clone(), binding, 0, "password");
        take(&NamedValue { is_setting: true, ..place });
    }
}

/// `public key: …`, `restored from key: …`, `did:key:…`.
pub(super) fn is_public_in_text(text: &[u8], name: &Range<usize>) -> bool {
    let names: [&[u8]; 3] = [b"key", b"keys", b"token"];
    let own = text.get(name.clone()).unwrap_or_default();
    let is_key = names.iter().any(|name| own.eq_ignore_ascii_case(name));
    let before = text.get(..name.start).unwrap_or_default();
    let before = before.strip_suffix(b" ").unwrap_or(before);
    is_key
        && PUBLIC_BEFORE.iter().any(|word| {
            let at = before.len().checked_sub(word.len());
            let tail = at.and_then(|at| before.get(at..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word))
        })
}

/// `io.jsonwebtoken:jjwt-gson`: a module, not a value.
fn is_coordinate(text: &[u8], name: &Range<usize>, bound: &Binding) -> bool {
    let before = name.start.checked_sub(1).and_then(|at| text.get(at));
    bound.quote.is_none()
        && before == Some(&b'.')
        && text.get(name.end) == Some(&b':')
        && bound.value.start == name.end + 1
}

/// `<script nonce="…">`: it is in the page that everybody gets.
pub(super) fn is_nonce(text: &[u8], name: &Range<usize>) -> bool {
    text.get(name.clone()) == Some(b"nonce")
        && is_attribute(text.get(..name.start).unwrap_or_default())
}

/// `arn:aws:secretsmanager:eu-west-1:1234:secret:db-AbCdEf`: where a secret is kept, not what it is.
fn is_in_arn(text: &[u8], name: &Range<usize>) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'/' | b'_');
    let before = text.get(..name.start).unwrap_or_default();
    let start = if before.last() == Some(&b':') {
        scan_back(text, name.start, MAX_ARN_BYTES, is_part)
    } else {
        name.start
    };
    before.get(start..).is_some_and(|path| path.starts_with(b"arn:"))
}

fn ends_with(name: &[u8], ending: &[u8]) -> bool {
    name.len()
        .checked_sub(ending.len())
        .and_then(|at| name.get(at..))
        .is_some_and(|tail| tail.eq_ignore_ascii_case(ending))
}

fn place_of(
    name: Range<usize>,
    binding: Binding,
    argument: usize,
    rule: &'static str,
) -> NamedValue {
    let Binding { operator, value, quote, .. } = binding;
    NamedValue { name, value, operator, quote, argument, is_setting: false, by_form: false, rule }
}

/// The words of a name, told apart by sense.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NameWords {
    pub(super) password: bool,
    pub(super) secret: bool,
    pub(super) token: bool,
    pub(super) key: bool,
    pub(super) auth: bool,
    pub(super) credential: bool,
    pub(super) minor: bool,
    pub(super) raises: usize,
    pub(super) lowers: usize,
    /// Sense of the last word is one of the secret ones.
    pub(super) ends_secret: bool,
    pub(super) ends_lowering: bool,
    pub(super) sealed: bool,
    pub(super) words: usize,
}

impl NameWords {
    pub(super) fn read(name: &[u8]) -> Self {
        let mut said = Self::default();
        let mut end = name.len();
        while end > 0 && said.words < MAX_WORDS {
            let start = word_start(name, end);
            let word = name.get(start..end).unwrap_or_default();
            if word.first().is_some_and(u8::is_ascii_alphabetic) {
                said.add(look_up_sense(word));
            }
            end = start.min(end - 1);
        }
        said.sealed |= is_public(name);
        said
    }

    fn add(&mut self, sense: Sense) {
        if sense == Sense::Filler {
            return;
        }
        let is_last = self.words == 0;
        self.words += 1;
        // `auth_user`, `token_client`: the value names someone.
        let sense = if is_last && sense == Sense::Raises { Sense::Lowers } else { sense };
        match sense {
            Sense::Password => self.password = true,
            Sense::Secret => self.secret = true,
            Sense::Token => self.token = true,
            Sense::Key => self.key = true,
            Sense::Auth => self.auth = true,
            Sense::Credential => self.credential = true,
            Sense::Minor => self.minor = true,
            Sense::Raises => self.raises += 1,
            Sense::Lowers => self.lowers += 1,
            Sense::Sealed => self.sealed = true,
            Sense::Filler | Sense::Other => {}
        }
        let is_plain =
            matches!(sense, Sense::Raises | Sense::Lowers | Sense::Filler | Sense::Other);
        self.ends_secret |= is_last && !is_plain;
        self.ends_lowering |= is_last && matches!(sense, Sense::Lowers | Sense::Sealed);
    }

    /// The rule a name speaks for; none if no word of it is about secrets, or the value may be read by others.
    pub(super) fn rule(&self) -> Option<&'static str> {
        if self.sealed {
            return None;
        }
        let rules = [
            (self.password, "password"),
            (self.secret, "secret"),
            (self.token, "token"),
            (self.key, "key"),
            (self.credential, "credential"),
            (self.auth, "auth"),
            (self.minor, "auth"),
        ];
        rules.iter().find(|(says, _)| *says).map(|(_, rule)| *rule)
    }
}

/// `nextPageToken`, `data-sitekey`: one of [`PUBLIC_NAMES`], as words of their own.
fn is_public(name: &[u8]) -> bool {
    PUBLIC_NAMES.iter().any(|known| {
        let letters = name.iter().enumerate().rev();
        let mut letters = letters.filter(|(_, byte)| byte.is_ascii_alphanumeric());
        let mut start = None;
        let fits = known.iter().rev().all(|wanted| {
            start = letters.next().filter(|(_, byte)| byte.eq_ignore_ascii_case(wanted));
            start.is_some()
        });
        let begins = |(at, first): (usize, &u8)| match at.checked_sub(1).and_then(|at| name.get(at))
        {
            Some(before) => !before.is_ascii_alphanumeric() || first.is_ascii_uppercase(),
            None => true,
        };
        fits && start.is_some_and(begins)
    })
}

/// Returns the start of the word that ends at `end`: after a sign, or at a hump of `camelCase`.
fn word_start(name: &[u8], end: usize) -> usize {
    let mut start = end;
    while let Some(&byte) = start.checked_sub(1).and_then(|at| name.get(at)) {
        let next = name.get(start).filter(|_| start < end).copied();
        let is_letter = byte.is_ascii_alphabetic();
        let starts_hump = byte.is_ascii_lowercase() && next.is_some_and(|n| n.is_ascii_uppercase());
        let changes_kind = next.is_some_and(|n| n.is_ascii_alphabetic() != is_letter);
        if starts_hump || changes_kind {
            break;
        }
        start -= 1;
        let opens_title = byte.is_ascii_uppercase() && next.is_some_and(|n| n.is_ascii_lowercase());
        if opens_title {
            break;
        }
    }
    start
}

fn look_up_sense(word: &[u8]) -> Sense {
    let mut lower = [0; MAX_WORD_BYTES];
    let Some(lower) = lower.get_mut(..word.len()) else { return Sense::Other };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let senses = SENSES.get_or_init(|| parse_senses(include_str!("../../data/names.txt")));
    senses.get(&*lower).copied().unwrap_or_else(|| sense_of_ending(lower))
}

fn parse_senses(text: &'static str) -> Senses {
    let of_line = |line: &'static str| {
        let mut words = line.split_ascii_whitespace();
        let sense = words.next().and_then(Sense::from_name);
        words.filter_map(move |word| Some((word.as_bytes(), sense?)))
    };
    text.lines().flat_map(of_line).collect()
}

/// `mypassword`, `nkey`, `bottoken`: compounds without a visible seam.
fn sense_of_ending(word: &[u8]) -> Sense {
    const ENDINGS: [(&[u8], Sense); 9] = [
        (b"password", Sense::Password),
        (b"passwd", Sense::Password),
        (b"pass", Sense::Password),
        (b"pwd", Sense::Password),
        (b"secret", Sense::Secret),
        (b"token", Sense::Token),
        (b"key", Sense::Key),
        (b"auth", Sense::Auth),
        (b"cred", Sense::Credential),
    ];
    let known = ENDINGS.iter().find(|(ending, _)| word.ends_with(ending));
    known.map_or(Sense::Other, |(_, sense)| *sense)
}

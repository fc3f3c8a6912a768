//! Finds secrets in text.
//!
//! Pure: bytes in, spans out. A [`Scanner`] holds rules for the tokens of known services ([`SecretRule`], data
//! files), knows where text has secrets without a recognisable form (URLs, headers, command lines,
//! credential files, key blocks), and decodes escapes and encodings to a limited depth. The caller
//! decides what to do with a finding (redact, block, warn), and has the allow-list.

mod context;
mod decode;
mod generic;
mod keywords;
mod language;
mod parts;
mod rules;
mod scanner;
mod stream;

pub use context::{address_credentials, basic_password};
pub use rules::{
    DEFAULT_REACH, MAX_REACH, RuleError, RuleFieldError, RulePatternError, SecretRule,
};
pub use scanner::{Finding, MIN_KNOWN_BYTES, Scanner, ScannerOptions};
pub use stream::StreamScanner;

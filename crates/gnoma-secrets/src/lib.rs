//! Finds secrets in text.
//!
//! Pure: bytes in, spans out. A [`Scanner`] holds rules for the tokens of known services ([`SecretRule`], data
//! files), knows where text puts secrets that have no shape of their own (URLs, headers, command lines,
//! credential files, key blocks), and looks through escapes and encodings to a bounded depth. What is
//! done with a finding (redact, block, warn) is the caller's business, and so is the allow-list.

mod context;
mod decode;
mod generic;
mod keywords;
mod language;
mod parts;
mod rules;
mod scanner;
mod stream;

pub use rules::{DEFAULT_REACH, MAX_REACH, RuleError, SecretRule};
pub use scanner::{Finding, MIN_KNOWN_BYTES, Scanner, ScannerOptions};
pub use stream::StreamScanner;

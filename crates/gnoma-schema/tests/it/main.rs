//! Verdicts against those of `boon`, a validator that passes the official test suite.

// `cfg(test)` tells the lints that helpers are tests, too.
#[cfg(test)]
mod refused;
#[cfg(test)]
mod verdicts;

//! Tests of the crate from outside.

#[cfg(test)]
mod contexts;
#[cfg(test)]
mod known;
#[cfg(test)]
mod laws;

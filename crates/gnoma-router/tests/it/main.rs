//! Whole behaviour of the router.

#[cfg(test)]
mod classify;
#[cfg(test)]
mod common;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod learning;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod rules;

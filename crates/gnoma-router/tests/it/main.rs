//! Whole behaviour of the router.

#[cfg(test)]
mod common;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod learning;
#[cfg(test)]
mod replay;

//! Whole behaviour of the store.

#[cfg(test)]
mod crash;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod model;
#[cfg(test)]
mod places;
#[cfg(test)]
mod redaction;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;

//! The walls from outside and from inside: attempts to break out, and ordinary work.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod cell;
#[cfg(test)]
mod fallback;
#[cfg(test)]
mod files;
#[cfg(test)]
mod kernel;
#[cfg(test)]
mod layer;
#[cfg(test)]
mod life;
#[cfg(test)]
mod network;
#[cfg(test)]
mod ordinary;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod protected;
#[cfg(test)]
mod reading;
mod sealed;
#[cfg(test)]
mod spare;
#[cfg(test)]
mod trials;

/// A test for each script: it must work without walls and fail inside, or (`refused`) only the
/// latter.
#[cfg(test)]
macro_rules! attempts {
    ($($kind:ident $name:ident: $script:expr;)*) => {$(
        #[test]
        fn $name() {
            if crate::cell::is_walled() {
                crate::cell::Cell::new().$kind($script);
            }
        }
    )*};
}
#[cfg(test)]
pub(crate) use attempts;

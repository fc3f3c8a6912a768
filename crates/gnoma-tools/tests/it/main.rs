//! The tools as a session sees them: real processes in temporary folders.

#[cfg(test)]
mod background;
#[cfg(test)]
mod bash;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod race;
#[cfg(test)]
mod specs;
#[cfg(test)]
mod support;
#[cfg(test)]
mod umask;

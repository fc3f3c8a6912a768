//! Screens and whole runs of the terminal face.

#[cfg(test)]
mod app;
#[cfg(test)]
mod complete;
#[cfg(test)]
mod composer;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod markdown;
#[cfg(test)]
mod screen;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod transcript;

//! Tests of the crate from outside.

#[cfg(test)]
mod facts;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod sketch;
#[cfg(test)]
mod snippets;
#[cfg(test)]
mod syntax;
#[cfg(test)]
mod syntax_bash;
#[cfg(test)]
mod syntax_laws;
#[cfg(test)]
mod variables;

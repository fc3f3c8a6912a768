//! Chores of the project that are not part of what is shipped, and its rules as tests. [`catalogue`]
//! makes the list of models and prices.

pub mod catalogue;

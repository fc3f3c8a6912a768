//! Whole turns over several arms, said from outside: what a person sees, pays and is asked.
//!
//! The policy alone is tested in `gnoma-router`, and its parts stand beside their code.

mod arms;
mod checking;
mod learning;
mod money;
mod panel;
mod paths;
mod sharing;
mod team;

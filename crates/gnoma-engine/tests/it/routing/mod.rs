//! Whole turns over several arms, said from outside: what a person sees, pays and is asked.
//!
//! The policy alone is tested in `gnoma-router`, and its parts stand beside their code.

mod arms;
mod asides;
mod bounds;
mod checking;
mod learning;
mod limits;
mod money;
mod panel;
mod paths;
mod roles;
mod sharing;
mod steps;
mod team;

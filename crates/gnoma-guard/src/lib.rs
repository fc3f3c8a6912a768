//! Decides what may run, and what must not leave the machine.
//!
//! Pure: no IO, no clock.

pub mod firewall;
pub mod git;
pub mod permission;
mod places;
pub mod privacy;
mod strings;
pub mod unicode;
pub mod vault;

pub use gnoma_secrets as secrets;
pub use gnoma_shell as shell;

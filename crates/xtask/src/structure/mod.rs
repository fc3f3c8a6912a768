//! How the crates are built inside: cycles among module files, and sizes of functions, structs and
//! files. Code that is only compiled for tests does not count.
//!
//! A module file depends on another if its code names an item that the other defines, by import or by
//! path. Methods that are called on a value are not seen, nor names that a macro makes.

mod crate_measures;
mod cycles;
mod references;
mod report;
mod sizes;
mod source;
mod tree;

pub use self::{
    crate_measures::{
        Cycle, MAX_FIELDS, MAX_FILE_LINES, MAX_FUNCTION_LINES, Structure, measure_all,
        measure_crate,
    },
    report::{MAX_SHARED_NAMES, p99, render_report, shared_names},
    source::MeasureError,
};

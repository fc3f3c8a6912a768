//! Schedules: which task runs when, and which of its runs are due. Pure but for [`ScheduleStore`], which keeps them in
//! files that all servers of the person share.

mod due;
mod record;
mod rule;
mod schedule_parser;
mod store;

#[cfg(test)]
mod laws;

pub use self::{
    due::{NextRun, ScheduleProgress},
    record::{ScheduleRecord, ScheduledRun},
    rule::{ScheduleRule, zone_named},
    schedule_parser::{ScheduleError, parse_every, parse_moment},
    store::{RunLease, ScheduleStore, ScheduleStoreError},
};

//! Whole behaviour of the store.

#[cfg(test)]
mod checkpoint;
#[cfg(test)]
mod checkpoint_collect;
#[cfg(test)]
mod checkpoint_crash;
#[cfg(test)]
mod checkpoint_merge;
#[cfg(test)]
mod checkpoint_revert;
#[cfg(test)]
mod checkpoint_rewind;
#[cfg(test)]
mod checkpoint_scripts;
#[cfg(test)]
mod checkpoint_support;
#[cfg(test)]
mod children;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod flips;
#[cfg(test)]
mod harm;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod ledger_damage;
#[cfg(test)]
mod ledger_reading;
#[cfg(test)]
mod migrations;
#[cfg(test)]
mod model;
#[cfg(test)]
mod places;
#[cfg(test)]
mod redaction;
#[cfg(test)]
mod results;
#[cfg(test)]
mod salvage;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
#[cfg(test)]
mod transfer;

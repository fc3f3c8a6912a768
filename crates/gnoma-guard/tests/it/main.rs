//! Tests of the crate from outside.

#[cfg(test)]
mod advisories;
#[cfg(test)]
mod clothes;
#[cfg(test)]
mod firewall;
#[cfg(test)]
mod git;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod permission;
#[cfg(test)]
mod permission_world;
#[cfg(test)]
mod trial;
#[cfg(test)]
mod unicode;
#[cfg(test)]
mod vault;

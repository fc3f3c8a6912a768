//! The whole program: the `gnoma` binary in a project of its own, against a scripted server.

// `cfg(test)` tells the lints that helpers are tests, too.
#[cfg(test)]
mod acp;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod address_secrets;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod agents;
#[cfg(test)]
mod bundle;
#[cfg(test)]
mod ci;
#[cfg(test)]
mod claude;
#[cfg(test)]
mod claude_rules;
#[cfg(test)]
mod codex;
#[cfg(test)]
mod command_line;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod conventions;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod cut_off;
#[cfg(test)]
mod debugging;
#[cfg(test)]
mod elf_copies;
#[cfg(test)]
mod elfs;
#[cfg(test)]
mod extend;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod firewall;
mod forks;
#[cfg(test)]
mod git_layouts;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod incognito;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod incognito_files;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod life;
#[cfg(test)]
mod looking;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_serve;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod memory;
#[cfg(test)]
mod misnamed;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod odd_files;
#[cfg(test)]
mod output;
#[cfg(test)]
mod permission;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod plugins;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod reading;
#[cfg(test)]
mod rests;
#[cfg(test)]
mod rewind;
#[cfg(test)]
mod routing;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod serve;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod spending;
#[cfg(test)]
mod start;
#[cfg(test)]
mod support;
#[cfg(test)]
mod survives;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tasks;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod temporary;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(test)]
mod thinking;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tmux;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod trial;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod trial_limits;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod trust;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tui;
#[cfg(test)]
mod turn;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod web;

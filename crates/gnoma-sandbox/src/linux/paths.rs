//! The paths of a policy as they really are, on this machine and now.

use std::path::{Path, PathBuf};

use super::{fault::Fault, real::RealPaths};
use crate::policy::Policy;

/// Real paths; what does not exist is left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paths {
    pub(super) writable: Vec<PathBuf>,
    /// Only those below a writable root: the others cannot be changed anyway.
    pub(super) protected: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) devices: Vec<PathBuf>,
}

impl Paths {
    /// Looks the paths up, or takes what `real` knows of them.
    ///
    /// # Errors
    /// Where everything would be writable.
    pub(super) fn of(policy: &Policy, real: &mut RealPaths) -> Result<Self, Fault> {
        let mut all = |paths: &[PathBuf]| paths.iter().filter_map(|path| real.of(path)).collect();
        let (hidden, devices) = (all(policy.readable.hidden()), all(&policy.devices));
        let writable = outermost(all(&policy.writable));
        if writable.iter().any(|path| path == Path::new("/")) {
            return Err(Fault::new("make `/` writable", "that would leave no wall standing"));
        }
        let below = |path: &PathBuf| below(&writable, path, real);
        let protected = policy.protected.iter().filter_map(below).collect();
        Ok(Self { protected, hidden, devices, writable })
    }
}

/// The path as it lies below a root. Links on the way to the root are followed; those below it are
/// kept, for they are held themselves.
fn below(roots: &[PathBuf], path: &Path, real: &mut RealPaths) -> Option<PathBuf> {
    let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    if is_below(path) {
        return Some(path.to_owned());
    }
    for ancestor in path.ancestors() {
        let Some(there) = real.of(ancestor) else { continue };
        // No link leads here, so none leads to what is above.
        if there == ancestor {
            return None;
        }
        let whole = there.join(path.strip_prefix(ancestor).ok()?);
        if is_below(&whole) {
            return Some(whole);
        }
    }
    None
}

/// Leaves out what lies below another: it is writable already.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

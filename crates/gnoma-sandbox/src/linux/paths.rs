//! The paths of a policy as they really are, on this machine and now.

use std::{
    collections::{BTreeMap, HashSet},
    fs, iter,
    path::{Component, Path, PathBuf},
};

use super::{fault::Fault, real::RealPaths};
use crate::{policy::Policy, scratch::PLACES};

/// Folders that are always there, in a root of the command's own.
pub(super) const FOLDERS: [&str; 6] = ["/dev", "/proc", "/run", "/tmp", "/var", "/var/tmp"];

/// Most links that are followed on the way to one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Real paths; what does not exist is left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paths {
    pub(super) writable: Vec<PathBuf>,
    /// Only those below a writable root: the others cannot be changed anyway.
    pub(super) protected: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// With the place of each in the policy.
    pub(super) sealed: Vec<(u16, PathBuf)>,
    pub(super) outside: OutsideNames,
    pub(super) absent: Vec<PathBuf>,
    pub(super) devices: Vec<PathBuf>,
    /// All that there is, where that is a list.
    pub(super) shown: Option<ShownPlaces>,
    /// The folders for temporary files: the path that the command sees, and the folder that is there.
    pub(super) temporary: Vec<(PathBuf, PathBuf)>,
    /// The machine's paths that are shown among them.
    pub(super) shown_temporary: Vec<PathBuf>,
}

/// Names outside of what is shown, which a command finds all the same.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OutsideNames {
    /// The names of what cannot be opened, with the place of each behind those of the sealed paths.
    pub(super) closed: Vec<(u16, PathBuf)>,
    /// The folders that lead to what is shown, with numbers of the same kind. A list of one would lack what is not
    /// shown, so there is none, and whoever asks for it is reported.
    pub(super) folders: Vec<(u16, PathBuf)>,
    /// The names in these folders that lead to what is shown, or to the home.
    pub(super) passages: Vec<PathBuf>,
}

/// A list of what there is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShownPlaces {
    pub(super) paths: Vec<PathBuf>,
    /// Links that lead to them, with where each leads.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
}

impl Paths {
    /// Looks the paths up, or takes what `real` knows of them.
    ///
    /// # Errors
    /// Where everything would be writable.
    pub(super) fn for_policy(policy: &Policy, real: &mut RealPaths) -> Result<Self, Fault> {
        let exact: HashSet<&Path> = policy.exact.iter().map(PathBuf::as_path).collect();
        let is_led_away = |path: &Path, found: &Path| found != path && exact.contains(path);
        let shown = policy.readable.shown_paths();
        let shown = shown.map(|shown| ShownPlaces::from_paths(shown, real, &is_led_away));
        let granted =
            |path: &PathBuf| real.resolve_path(path).filter(|found| !is_led_away(path, found));
        let writable = retain_outermost(policy.writable.iter().filter_map(granted).collect());
        let mut sealed = number_paths(&policy.sealed, 0, real);
        let outside = OutsideNames::from_policy(policy, shown.as_ref(), &writable, real);
        let mut all =
            |paths: &[PathBuf]| paths.iter().filter_map(|path| real.resolve_path(path)).collect();
        let (hidden, devices): (Vec<PathBuf>, _) =
            (all(policy.readable.hidden_paths()), all(&policy.devices));
        let hidden = match &shown {
            Some(shown) => below_any(hidden, &shown.paths),
            None => hidden,
        };
        let shown_temporary = all(&policy.shown_temporary);
        let absent: Vec<PathBuf> = all(&policy.absent);
        sealed.retain(|(_, path)| !absent.contains(path));
        let temporary = policy.temporary.as_deref().map(|folder| temporary_places(folder, real));
        if writable.iter().any(|path| path == Path::new("/")) {
            return Err(Fault::new("make `/` writable", "that would leave nothing protected"));
        }
        let below = |path: &PathBuf| resolve_below(&writable, path, real);
        let protected = policy.protected.iter().filter_map(below).collect();
        let temporary = temporary.unwrap_or_default();
        Ok(Self {
            protected,
            hidden,
            sealed,
            outside,
            absent,
            devices,
            writable,
            shown,
            temporary,
            shown_temporary,
        })
    }
}

impl ShownPlaces {
    fn from_paths(
        paths: &[PathBuf],
        real: &mut RealPaths,
        is_led_away: &dyn Fn(&Path, &Path) -> bool,
    ) -> Self {
        let (mut there, mut links) = (Vec::new(), BTreeMap::new());
        for path in paths {
            let found = real.resolve_path(path).filter(|found| !is_led_away(path, found));
            let Some(found) = found else { continue };
            if found != *path {
                links.extend(links_on_the_way(path));
            }
            there.push(found);
        }
        Self { paths: retain_outermost(there), links }
    }
}

impl OutsideNames {
    /// Takes the names of the policy that lie outside of what is shown. None of them is a link, which may lead to what
    /// is shown.
    fn from_policy(
        policy: &Policy,
        shown: Option<&ShownPlaces>,
        writable: &[PathBuf],
        real: &mut RealPaths,
    ) -> Self {
        let Some(shown) = shown else { return Self::default() };
        let layers = policy.overlays.iter().map(|overlay| &overlay.at);
        let found = shown.paths.iter().chain(writable).chain(&policy.writable).chain(layers);
        let found: HashSet<&Path> = found.map(PathBuf::as_path).collect();
        let leading: HashSet<&Path> = found.iter().flat_map(|place| place.ancestors()).collect();
        let mut names = number_paths(&policy.outside_names, policy.sealed.len(), real);
        let named: HashSet<&Path> = policy.outside_names.iter().map(PathBuf::as_path).collect();
        names.retain(|(_, path)| {
            let is_temporary = PLACES.iter().any(|(place, _)| path.starts_with(place));
            let is_shown = path.ancestors().any(|folder| found.contains(folder));
            named.contains(&**path) && !is_temporary && !is_shown
        });
        let (mut folders, closed): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|(_, path)| leading.contains(&**path));
        folders.retain(|(_, path)| !FOLDERS.iter().any(|own| Path::new(own).starts_with(path)));
        let home = real_home();
        let ends = found.iter().copied().chain(shown.links.keys().map(PathBuf::as_path));
        let ends = ends.chain(home.as_deref());
        let first_below = |(_, folder): &(u16, PathBuf)| -> Vec<PathBuf> {
            let below = ends.clone().filter_map(|end| end.strip_prefix(folder).ok()?.iter().next());
            below.map(|name| folder.join(name)).collect()
        };
        let passages = gnoma_core::sort::to_set(folders.iter().flat_map(first_below));
        Self { closed, folders, passages: passages.into_iter().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.folders.is_empty()
    }

    /// True if a name is directly in one of the folders.
    pub(super) fn is_in_folder(&self, name: &Path) -> bool {
        self.folders.iter().any(|(_, folder)| name.parent() == Some(folder.as_path()))
    }
}

/// The home of the command, links resolved.
pub(super) fn real_home() -> Option<PathBuf> {
    let home = std::env::vars_os().find(|(name, _)| name == "HOME");
    home.and_then(|(_, home)| fs::canonicalize(home).ok())
}

/// Resolves paths, each with its number: the first one's is `first`.
fn number_paths(paths: &[PathBuf], first: usize, real: &mut RealPaths) -> Vec<(u16, PathBuf)> {
    // Paths beyond the last number are sealed as well, and reported by that number.
    let numbers = (0..=u16::MAX).chain(iter::repeat(u16::MAX)).skip(first);
    let numbered = paths.iter().zip(numbers);
    numbered.filter_map(|(path, number)| Some((number, real.resolve_path(path)?))).collect()
}

/// Returns the places of temporary files that the command sees, each with the session's folder for it.
fn temporary_places(folder: &Path, real: &mut RealPaths) -> Vec<(PathBuf, PathBuf)> {
    let folder = real.resolve_path(folder).unwrap_or_else(|| folder.to_owned());
    PLACES.map(|(place, name)| (PathBuf::from(place), folder.join(name))).to_vec()
}

/// The links that a path goes through, each by its real path.
fn links_on_the_way(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let mut here = PathBuf::new();
    let mut rest: Vec<_> = path.components().rev().map(part_of).collect();
    while let Some(part) = rest.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(here.pop()),
            Some(Component::RootDir) => here = PathBuf::from("/"),
            Some(Component::Normal(_)) => {
                let next = here.join(&part);
                match fs::read_link(&next) {
                    Ok(target) if links.len() < MAX_LINKS => {
                        rest.extend(target.components().rev().map(part_of));
                        links.push((next, target));
                    }
                    _ => here = next,
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    links
}

fn part_of(component: Component<'_>) -> PathBuf {
    component.as_os_str().into()
}

/// The path as it lies below a root. Links on the way to the root are followed; those below it are
/// kept, for they are held themselves.
fn resolve_below(roots: &[PathBuf], path: &Path, real: &mut RealPaths) -> Option<PathBuf> {
    let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    if is_below(path) {
        return Some(path.to_owned());
    }
    for ancestor in path.ancestors() {
        let Some(there) = real.resolve_path(ancestor) else { continue };
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

/// Returns the paths that are on the list themselves, or that lie below something on it.
fn below_any(mut paths: Vec<PathBuf>, list: &[PathBuf]) -> Vec<PathBuf> {
    paths.retain(|path| list.iter().any(|shown| path.starts_with(shown)));
    paths
}

/// Leaves out what lies below another: it is writable already.
fn retain_outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    gnoma_core::sort::sort_items(&mut paths);
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

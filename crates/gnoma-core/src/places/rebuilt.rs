//! Folders that a tool fills and can fill again.

/// Their names. One is what it seems where version control ignores it or its builder has marked it.
pub const REBUILT_FOLDERS: [&str; 35] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".turbo",
    ".parcel-cache",
    ".terraform",
    ".dart_tool",
    "bower_components",
    ".cache",
    ".zig-cache",
    "_build",
    ".stack-work",
    "dist-newstyle",
    "elm-stuff",
    ".hypothesis",
    ".angular",
    ".astro",
    ".docusaurus",
    ".jekyll-cache",
    ".sass-cache",
    ".eggs",
    ".pytype",
    "zig-cache",
    "zig-out",
];

/// The file by which builders mark a folder as theirs (<https://bford.info/cachedir>).
pub const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Folders that are what a builder makes where its own file lies beside them, by their names, with names of such
/// files; one that begins with `*` is an end. Elsewhere they may be anything.
const OUTPUT_BESIDE: [(&[&str], &[&str]); 12] = [
    (&["dist", "build", "out", "coverage", ".output", ".nyc_output"], &["package.json"]),
    (&["build", "out", "bin"], &["build.gradle", "build.gradle.kts", "pom.xml", "build.xml"]),
    (&["build"], &["pubspec.yaml"]),
    (&["build", "builddir", "build-debug", "build-release"], &["CMakeLists.txt", "meson.build"]),
    (&["cmake-build-debug", "cmake-build-release"], &["CMakeLists.txt"]),
    (&["build", "dist", "htmlcov"], &["pyproject.toml", "setup.py"]),
    (&["bin", "obj", "TestResults"], &["*.csproj", "*.fsproj", "*.vbproj"]),
    (&[".build"], &["Package.swift"]),
    (&["coverage", "cover"], &["Gemfile", "composer.json", "deno.json", "mix.exs"]),
    (&["_site"], &["_config.yml"]),
    (&["site"], &["mkdocs.yml"]),
    (&["book"], &["book.toml"]),
];

/// True if a builder fills a folder of this name when these names lie beside it.
#[must_use]
pub fn is_output_beside(name: &str, mut beside: impl Iterator<Item = String>) -> bool {
    let groups = OUTPUT_BESIDE.iter().filter(|(folders, _)| folders.contains(&name));
    let files: Vec<&str> = groups.flat_map(|(_, files)| files.iter().copied()).collect();
    let is_one = |other: &String| {
        files.iter().any(|file| match file.strip_prefix('*') {
            Some(end) => other.ends_with(end),
            None => other == file,
        })
    };
    !files.is_empty() && beside.any(|other| is_one(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_output_folder_is_recognized_by_the_build_file_beside_it() {
        let is_output = |name: &str, beside: &[&str]| {
            is_output_beside(name, beside.iter().map(ToString::to_string))
        };
        assert!(is_output("builddir", &["a.c", "meson.build"]));
        assert!(is_output("build-debug", &["CMakeLists.txt"]));
        assert!(is_output("bin", &["a.csproj"]));
        assert!(is_output("_site", &["_config.yml"]));
        assert!(is_output("cover", &["mix.exs"]));
        assert!(!is_output("site", &["index.html", "_config.yml"]));
        assert!(!is_output("build", &["README.md"]));
        assert!(!is_output("src", &["CMakeLists.txt", "package.json"]));
    }
}

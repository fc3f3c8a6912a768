//! Pictures of the program at a terminal, for the README: the real program on a pseudo-terminal, a
//! model whose words are a script, and the cells that come of it drawn with a font of the system.
//! Twice the same program gives twice the same pictures. Nothing is measured here.

mod paint;
mod scenes;
mod stage;

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use paint::Painter;
use scenes::Scene;

/// Larger pictures are not worth their time.
const MAX_BYTES: usize = 60_000;
/// The largest number of attempts at playing a scene: on a busy machine its moment may be missed.
const MAX_TAKES: usize = 5;

/// Draws all scenes with the program `arguments[0]` into the folder `arguments[1]`; with `--check`
/// behind it, only says which of the pictures there are not what would be drawn. Names of scenes behind
/// that leave the others out.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [program, folder, options @ ..] = arguments else {
        bail!("name the program and the folder of the pictures");
    };
    let program = fs::canonicalize(program).with_context(|| format!("no program `{program}`"))?;
    let only_check = options.iter().any(|option| option == "--check");
    let names: Vec<&String> = options.iter().filter(|name| *name != "--check").collect();
    let painter = Painter::new()?;
    let mut stale = Vec::new();
    for scene in scenes::all_scenes() {
        if !names.is_empty() && !names.iter().any(|name| *name == scene.name) {
            continue;
        }
        let file = Path::new(folder).join(scene.name).with_extension("png");
        let picture = draw_scene(&scene, &program, &painter)?;
        if !only_check {
            fs::write(&file, picture)
                .with_context(|| format!("cannot write {}", file.display()))?;
        } else if fs::read(&file).ok().as_ref() != Some(&picture) {
            stale.push(scene.name);
        }
    }
    if !stale.is_empty() {
        bail!("not what the program shows now: {}; run bench/pictures", stale.join(", "));
    }
    Ok(())
}

fn draw_scene(scene: &Scene, program: &Path, painter: &Painter) -> Result<Vec<u8>> {
    let mut take = stage::record_scene(scene, program);
    for _ in 1..MAX_TAKES {
        if take.is_err() {
            take = stage::record_scene(scene, program);
        }
    }
    let screen = take.with_context(|| format!("scene {}", scene.name))?;
    let picture = painter.render_png(&screen, scene.shade)?;
    if picture.len() > MAX_BYTES {
        bail!("{} has {} bytes; at most {MAX_BYTES} are wanted", scene.name, picture.len());
    }
    Ok(picture)
}

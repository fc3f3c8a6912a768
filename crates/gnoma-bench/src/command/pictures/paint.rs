//! Cells to a picture: letters of a font of the system, the colours of a quiet terminal, and a PNG of few
//! colours. It knows nothing of what the cells mean.

use std::{collections::BTreeMap, fs, path::Path};

use ab_glyph::{Font as _, FontVec, PxScale, ScaleFont as _, point};
use anyhow::{Context as _, Result, bail};
use vt100::{Cell, Color, Screen};

/// The folder in which Debian's package fonts-dejavu-mono (older: fonts-dejavu-core) installs its fonts.
const FONTS: &str = "/usr/share/fonts/truetype/dejavu";
/// Upright, bold, slanted, and both.
const FACES: [&str; 4] = [
    "DejaVuSansMono.ttf",
    "DejaVuSansMono-Bold.ttf",
    "DejaVuSansMono-Oblique.ttf",
    "DejaVuSansMono-BoldOblique.ttf",
];
/// Height of a letter with its lead, in dots. Twice what is shown, for dense screens.
const LETTER_HEIGHT: f32 = 31.0;
/// A cell, in dots.
const CELL: (usize, usize) = (16, 32);
/// Dots around the cells.
const MARGIN: usize = 28;
/// Dots of a rounded corner.
const CORNER: usize = 18;
/// The numbers of steps in which the edge of a letter is drawn, from the finest on: a picture has room for 256
/// colours.
const SHADES: [u16; 5] = [16, 12, 8, 6, 4];
const MAX_COLOURS: usize = 256;

/// Red, green, blue and how much of it covers what is behind.
type Dot = [u8; 4];

/// The ground that a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shade {
    Dark,
    Light,
}

impl Shade {
    /// The colour behind everything.
    pub(super) fn background_colour(self) -> [u8; 3] {
        match self {
            Self::Dark => [0x1a, 0x1c, 0x21],
            Self::Light => [0xfb, 0xfa, 0xf7],
        }
    }

    fn text_colour(self) -> [u8; 3] {
        match self {
            Self::Dark => [0xd6, 0xd8, 0xdc],
            Self::Light => [0x26, 0x28, 0x2d],
        }
    }

    fn resolve_colour(self, colour: Color, own: [u8; 3]) -> Result<[u8; 3]> {
        Ok(match colour {
            Color::Default => own,
            Color::Rgb(red, green, blue) => [red, green, blue],
            Color::Idx(place) => bail!("the colour {place} is not one that the program names"),
        })
    }
}

/// Letters that are ready to be drawn.
pub(super) struct Painter {
    faces: Vec<FontVec>,
}

impl Painter {
    pub(super) fn new() -> Result<Self> {
        let load = |name: &&str| {
            let bytes = fs::read(Path::new(FONTS).join(name)).with_context(|| {
                format!("the font {name} is missing: apt-get install fonts-dejavu-core fonts-dejavu-extra")
            })?;
            FontVec::try_from_vec(bytes).with_context(|| format!("{name} is no font"))
        };
        Ok(Self { faces: FACES.iter().map(load).collect::<Result<_>>()? })
    }

    /// The screen as a PNG, the cursor in it.
    pub(super) fn render_png(&self, screen: &Screen, shade: Shade) -> Result<Vec<u8>> {
        for steps in SHADES {
            let canvas = self.draw_canvas(screen, shade, steps)?;
            if let Some(indexed) = canvas.to_indexed() {
                return indexed.encode_png();
            }
        }
        bail!("more than {MAX_COLOURS} colours")
    }

    fn draw_canvas(&self, screen: &Screen, shade: Shade, steps: u16) -> Result<Canvas> {
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let size =
            (usize::from(columns) * CELL.0 + 2 * MARGIN, usize::from(rows) * CELL.1 + 2 * MARGIN);
        let mut canvas = Canvas::new(size, shade.background_colour(), steps);
        for row in 0..rows {
            for column in 0..columns {
                if let Some(cell) = screen.cell(row, column) {
                    let is_cursor =
                        !screen.hide_cursor() && screen.cursor_position() == (row, column);
                    self.draw_cell(&mut canvas, (column, row), cell, shade, is_cursor)?;
                }
            }
        }
        canvas.round_corners();
        Ok(canvas)
    }

    fn draw_cell(
        &self,
        canvas: &mut Canvas,
        (column, row): (u16, u16),
        cell: &Cell,
        shade: Shade,
        is_cursor: bool,
    ) -> Result<()> {
        let mut front = shade.resolve_colour(cell.fgcolor(), shade.text_colour())?;
        let mut back = shade.resolve_colour(cell.bgcolor(), shade.background_colour())?;
        if cell.inverse() != is_cursor {
            std::mem::swap(&mut front, &mut back);
        }
        if cell.dim() {
            front = mix_colours(back, front, 140);
        }
        let left = MARGIN + usize::from(column) * CELL.0;
        let top = MARGIN + usize::from(row) * CELL.1;
        if cell.is_wide_continuation() {
            return Ok(());
        }
        let columns = if cell.is_wide() { 2 } else { 1 };
        canvas.fill_rectangle((left, top), (CELL.0 * columns, CELL.1), back);
        if cell.underline() {
            canvas.fill_rectangle((left, top + CELL.1 - 4), (CELL.0 * columns, 2), front);
        }
        let face = usize::from(cell.bold()) + 2 * usize::from(cell.italic());
        let font = self.faces.get(face).context("no such face")?;
        for letter in cell.contents().chars().filter(|letter| *letter != ' ') {
            draw_letter(canvas, font, letter, (left, top), front);
        }
        Ok(())
    }
}

fn draw_letter(
    canvas: &mut Canvas,
    font: &FontVec,
    letter: char,
    (left, top): (usize, usize),
    colour: [u8; 3],
) {
    let font = font.as_scaled(PxScale::from(LETTER_HEIGHT));
    let air = (CELL.1 as f32 - font.height()) / 2.0;
    let at = point(left as f32, top as f32 + air + font.ascent());
    let glyph = font.glyph_id(letter).with_scale_and_position(PxScale::from(LETTER_HEIGHT), at);
    let Some(outline) = font.outline_glyph(glyph) else { return };
    let bounds = outline.px_bounds();
    outline.draw(|x, y, share| {
        let x = bounds.min.x as usize + x as usize;
        let y = bounds.min.y as usize + y as usize;
        canvas.blend_dot(x, y, colour, share);
    });
}

/// `share` of 256 parts of `other`, the rest of `one`.
fn mix_colours(one: [u8; 3], other: [u8; 3], share: u16) -> [u8; 3] {
    let mix = |one: u8, other: u8| {
        let sum = u32::from(one) * u32::from(256 - share) + u32::from(other) * u32::from(share);
        u8::try_from(sum / 256).unwrap_or(u8::MAX)
    };
    [mix(one[0], other[0]), mix(one[1], other[1]), mix(one[2], other[2])]
}

/// Dots of a picture.
struct Canvas {
    width: usize,
    dots: Vec<Dot>,
    steps: u16,
}

impl Canvas {
    fn new((width, height): (usize, usize), [red, green, blue]: [u8; 3], steps: u16) -> Self {
        Self { width, dots: vec![[red, green, blue, u8::MAX]; width * height], steps }
    }

    fn dot_mut(&mut self, x: usize, y: usize) -> Option<&mut Dot> {
        self.dots.get_mut(y * self.width + x).filter(|_| x < self.width)
    }

    fn fill_rectangle(
        &mut self,
        (left, top): (usize, usize),
        size: (usize, usize),
        colour: [u8; 3],
    ) {
        for y in top..top + size.1 {
            for x in left..left + size.0 {
                if let Some(dot) = self.dot_mut(x, y) {
                    dot[..3].copy_from_slice(&colour);
                }
            }
        }
    }

    /// Covers a share of a dot, in one of the few steps there are.
    fn blend_dot(&mut self, x: usize, y: usize, colour: [u8; 3], share: f32) {
        let steps = f32::from(self.steps);
        let share = ((share * steps).round() * 256.0 / steps).clamp(0.0, 256.0) as u16;
        if let Some(dot) = self.dot_mut(x, y) {
            let [red, green, blue, _] = *dot;
            dot[..3].copy_from_slice(&mix_colours([red, green, blue], colour, share));
        }
    }

    /// Makes the corners round.
    fn round_corners(&mut self) {
        let height = self.dots.len() / self.width.max(1);
        for y in 0..CORNER {
            for x in 0..CORNER {
                let away = |place: usize| CORNER as f32 - place as f32 - 0.5;
                let beyond = away(x).hypot(away(y)) - CORNER as f32 + 0.5;
                let cover = ((1.0 - beyond.clamp(0.0, 1.0)) * 4.0).round() * 63.75;
                for x in [x, self.width - 1 - x] {
                    for y in [y, height - 1 - y] {
                        if let Some(dot) = self.dot_mut(x, y) {
                            dot[3] = cover as u8;
                        }
                    }
                }
            }
        }
    }

    /// The picture with a palette in place of three bytes a point; `None` when that would be too large.
    fn to_indexed(&self) -> Option<IndexedImage> {
        let mut palette = BTreeMap::new();
        for dot in &self.dots {
            palette.insert(*dot, 0);
            if palette.len() > MAX_COLOURS {
                return None;
            }
        }
        for (place, index) in (0..=u8::MAX).zip(palette.values_mut()) {
            *index = place;
        }
        let dots = self.dots.iter().filter_map(|dot| palette.get(dot).copied()).collect();
        Some(IndexedImage { width: self.width, dots, palette: palette.into_keys().collect() })
    }
}

/// Dots as places in a list of colours.
struct IndexedImage {
    width: usize,
    dots: Vec<u8>,
    palette: Vec<Dot>,
}

impl IndexedImage {
    fn encode_png(&self) -> Result<Vec<u8>> {
        let height = self.dots.len() / self.width.max(1);
        let mut bytes = Vec::new();
        let (width, height) = (u32::try_from(self.width)?, u32::try_from(height)?);
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        encoder.set_filter(png::Filter::NoFilter);
        let colours: Vec<u8> = self.palette.iter().flat_map(|dot| dot[..3].to_vec()).collect();
        encoder.set_palette(colours);
        encoder.set_trns(self.palette.iter().map(|dot| dot[3]).collect::<Vec<u8>>());
        encoder.write_header()?.write_image_data(&self.dots)?;
        Ok(bytes)
    }
}

//! One colour: how theme files write it and how terminals with fewer colours come near it.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error};

/// A colour as it is sent to a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's own colour.
    #[default]
    Own,
    /// One of the sixteen that the terminal chooses.
    Ansi(u8),
    /// One of the fixed palette of 256.
    Indexed(u8),
    /// Red, green and blue.
    Exact(u8, u8, u8),
}

/// The first eight of the sixteen; `bright-` before a name means the other eight.
const ANSI: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
/// The steps of the colour cube in the palette of 256.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
/// The number at which the cube begins.
const CUBE: u8 = 16;
/// The number at which the greys begin: 24 of them, from 8 in steps of 10.
const GREYS: u8 = 232;

impl Colour {
    /// `#rrggbb`, or the name of one of the sixteen.
    fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix('#') {
            let well_formed = digits.len() == 6 && digits.bytes().all(|c| c.is_ascii_hexdigit());
            let number = u32::from_str_radix(digits, 16).ok().filter(|_| well_formed)?;
            let [_, red, green, blue] = number.to_be_bytes();
            return Some(Self::Exact(red, green, blue));
        }
        let (name, first) = text.strip_prefix("bright-").map_or((text, 0), |name| (name, 8));
        let place = ANSI.iter().position(|known| *known == name)?;
        u8::try_from(place).ok().map(|place| Self::Ansi(first + place))
    }

    /// Returns the contrast to another colour, from 1 to 21, as WCAG 2 defines it; `None` if the terminal chooses one.
    pub(crate) fn contrast(self, other: Self) -> Option<f32> {
        let luminance = |colour| match colour {
            Self::Exact(red, green, blue) => Some(relative_luminance(red, green, blue)),
            Self::Own | Self::Ansi(_) | Self::Indexed(_) => None,
        };
        let (one, other) = (luminance(self)?, luminance(other)?);
        Some((one.max(other) + 0.05) / (one.min(other) + 0.05))
    }

    /// Moves a colour towards white, or towards black, by so many percent of the way.
    pub(crate) fn shifted(self, is_lighter: bool, percent: u16) -> Self {
        let Self::Exact(red, green, blue) = self else { return self };
        let end = if is_lighter { 255 } else { 0 };
        let mix = |part: u8| {
            let mixed = (u16::from(part) * (100 - percent) + end * percent) / 100;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        };
        Self::Exact(mix(red), mix(green), mix(blue))
    }

    /// The nearest of the palette of 256.
    pub(super) fn to_indexed(self) -> Self {
        let Self::Exact(red, green, blue) = self else { return self };
        let wanted = [red, green, blue];
        let places = wanted.map(nearest_step);
        let cube = places.map(|place| STEPS.get(usize::from(place)).copied().unwrap_or(0));
        let mean = wanted.iter().map(|part| u16::from(*part)).sum::<u16>() / 3;
        let grey_place = u8::try_from(mean.saturating_sub(3) / 10).unwrap_or(u8::MAX).min(23);
        let grey = [8 + 10 * grey_place; 3];
        if squared_distance(grey, wanted) < squared_distance(cube, wanted) {
            return Self::Indexed(GREYS + grey_place);
        }
        let [red, green, blue] = places;
        Self::Indexed(CUBE + 36 * red + 6 * green + blue)
    }
}

impl fmt::Display for Colour {
    /// Writes an exact colour as theme files have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(red, green, blue) => write!(f, "#{red:02x}{green:02x}{blue:02x}"),
            Self::Own | Self::Ansi(_) | Self::Indexed(_) => f.write_str("the terminal's own"),
        }
    }
}

impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let names = ANSI.join(", ");
            D::Error::custom(format!(
                "`{text}` is not a colour; write `#rrggbb` or one of {names}, optionally with `bright-`"
            ))
        })
    }
}

fn nearest_step(part: u8) -> u8 {
    let nearest = (0_u8..).zip(STEPS).min_by_key(|(_, step)| step.abs_diff(part));
    nearest.map_or(0, |(place, _)| place)
}

fn squared_distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

/// Returns the brightness of a colour, from 0 to 1, as WCAG 2 defines relative luminance.
pub(super) fn relative_luminance(red: u8, green: u8, blue: u8) -> f32 {
    let [red, green, blue] = [red, green, blue].map(|part| {
        let part = f32::from(part) / 255.0;
        if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_and_brought_to_the_palette() {
        assert_eq!(Colour::parse("#ff8700"), Some(Colour::Exact(255, 135, 0)));
        assert_eq!(Colour::parse("bright-black"), Some(Colour::Ansi(8)));
        assert_eq!(Colour::parse("#ff87"), None);
        assert_eq!(Colour::parse("#+f8700"), None);
        assert_eq!(Colour::parse("mauve"), None);
        assert_eq!(Colour::Exact(255, 135, 0).to_indexed(), Colour::Indexed(208));
        assert_eq!(Colour::Exact(98, 98, 98).to_indexed(), Colour::Indexed(241));
        assert_eq!(Colour::Exact(255, 255, 255).to_indexed(), Colour::Indexed(231));
    }
}

//! The normal distribution and the grid of task difficulties.
//!
//! Whether an attempt succeeds is a probit: `ability + shared·z + own·noise > 0`, where `z ~ N(0, 1)` says how
//! easy this very task is and is the same for all arms (the one-factor model of Vasicek, 1987). Integrals over
//! `z` are sums over [`GRID`], which the trapezoidal rule makes exact to five digits for functions this smooth.

use std::sync::LazyLock;

/// Points of the grid. A multiple of four, which processors add up four at a time.
pub(crate) const NODES: usize = 12;
/// Distance between two points, in standard deviations.
const STEP: f64 = 0.5;
/// Probabilities are kept this far from 0 and 1 before they are turned into a quantile.
const EDGE: f64 = 0.005;
/// Newton steps of [`normal_quantile`]; three are enough for nine digits inside the edges.
const NEWTON_STEPS: usize = 5;

/// One value per grid point.
pub(crate) type Nodes = [f64; NODES];

/// The points and their probabilities.
pub(crate) struct Grid {
    pub(crate) points: Nodes,
    pub(crate) weights: Nodes,
}

/// Standard normal difficulty, from the hardest tasks to the easiest.
pub(crate) static GRID: LazyLock<Grid> = LazyLock::new(|| {
    let points: Nodes = std::array::from_fn(|node| (node as f64 - (NODES - 1) as f64 / 2.0) * STEP);
    let raw = points.map(normal_density);
    let total: f64 = raw.iter().sum();
    Grid { points, weights: raw.map(|weight| weight / total) }
});

/// Returns φ, the density of the standard normal distribution.
pub(crate) fn normal_density(x: f64) -> f64 {
    const INVERSE_ROOT_TAU: f64 = 0.398_942_280_401_432_7;
    INVERSE_ROOT_TAU * (-0.5 * x * x).exp()
}

/// Φ, by Abramowitz and Stegun 26.2.17 (error below 1e-7).
pub(crate) fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = normal_density(x) * series;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// Φ⁻¹, by Newton's method from the logistic approximation. Probabilities are clamped to the edges.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    const LOGISTIC_SCALE: f64 = 1.702;
    let p = probability.clamp(EDGE, 1.0 - EDGE);
    let mut x = (p / (1.0 - p)).ln() / LOGISTIC_SCALE;
    for _ in 0..NEWTON_STEPS {
        x -= (normal_cdf(x) - p) / normal_density(x);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantile_inverts_the_distribution_function() {
        for percent in 1..100 {
            let p = f64::from(percent) / 100.0;
            assert!((normal_cdf(normal_quantile(p)) - p).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn quadrature_grid_approximates_a_standard_normal() {
        let moment = |power: i32| -> f64 {
            let grid = &*GRID;
            grid.points.iter().zip(grid.weights).map(|(z, weight)| z.powi(power) * weight).sum()
        };
        assert!((moment(0) - 1.0).abs() < 1e-12);
        assert!(moment(1).abs() < 1e-12);
        assert!((moment(2) - 1.0).abs() < 0.03);
    }
}

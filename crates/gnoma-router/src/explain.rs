//! A choice in words: the candidates, each one's numbers, and what excluded the others.

use std::fmt::Write;

use crate::{
    arm::Offer,
    router::{Decision, RouterChoice, WeighedArm},
};

impl RouterChoice {
    /// Lines for people. `offers` are those that the choice was made among.
    #[must_use]
    pub fn explain(&self, offers: &[Offer]) -> Vec<String> {
        let name = |offer: usize| {
            offers.get(offer).map_or_else(|| "?".to_owned(), |offer| offer.arm.id.to_string())
        };
        let mut lines = vec![match &self.decision {
            Decision::Run(arms) => {
                let names: Vec<String> = arms.iter().map(ToString::to_string).collect();
                format!("run {}", names.join(" and "))
            }
            Decision::Accept(attempt) => format!("deliver attempt {}", attempt + 1),
            Decision::Impossible => "no arm may do this task".to_owned(),
        }];
        if let Some(value) = self.accept_value {
            lines.push(format!("delivering now is worth ${value:.2}"));
        }
        let mut ranked: Vec<_> = self.candidates.iter().collect();
        gnoma_core::sort::sort_by(&mut ranked, |a, b| {
            b.value.unwrap_or(f64::MIN).total_cmp(&a.value.unwrap_or(f64::MIN))
        });
        for candidate in ranked {
            lines.push(line_of(candidate, offers.get(candidate.offer), &name(candidate.offer)));
        }
        for (offer, why) in &self.excluded {
            let (name, why) = (name(*offer), why.reason_text());
            // What health says names the arm already.
            lines.push(if why.starts_with(&name) {
                why.to_string()
            } else {
                format!("{name}: {why}")
            });
        }
        lines
    }
}

fn line_of(candidate: &WeighedArm, offer: Option<&Offer>, name: &str) -> String {
    let cost = match offer {
        Some(Offer { most_micro_usd: None, .. }) => "price unknown".to_owned(),
        _ => format!("${:.3}", candidate.cost),
    };
    let mut line = format!("{name}: right {:.0}%, {cost}", candidate.quality * 100.0);
    // Writing to a string cannot fail.
    if candidate.scarcity > 1.0 {
        let _written = write!(line, " (scarce: each dollar counts {:.2})", candidate.scarcity);
    }
    let weight = offer.map_or(1.0, |offer| offer.arm.cost_weight);
    if weight < 1.0 {
        let _written = write!(line, " (each dollar counts {weight:.2}, by `cost_weight`)");
    }
    let _written = match candidate.value {
        Some(value) => write!(line, ", worth ${value:.2}"),
        None => write!(line, ", not among the best"),
    };
    if candidate.knowledge > 0.005 {
        let _written = write!(line, ", value of learning: ${:.2}", candidate.knowledge);
    }
    line
}

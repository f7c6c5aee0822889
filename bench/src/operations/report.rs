//! The table of CPU times.

use crate::startup::process::Side;

/// One row of one round.
#[derive(Clone, Debug)]
pub struct Measured {
    pub side: Side,
    pub name: String,
    pub frequent: bool,
    pub calls: u64,
    /// CPU time of the name node for a call (for a replica, of a full report).
    pub micros: f64,
    /// Calls a second.
    pub rate: f64,
    pub refused: u64,
    pub refusal: String,
}

/// Least of what Java spends on the most frequent calls, of what we do; and on all others.
const MARKS: (f64, f64) = (5.0, 1.0);

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Medians over the rounds, ours beside Java's.
pub fn table(all: &[Measured], window: usize) -> String {
    let mut out = format!(
        "{window} calls on their way at a time; CPU time of the name node for a call in us; * one of the most frequent\n\n\
         | call | calls | ironroot | java | java / ironroot | | ironroot calls/s | java calls/s | refused |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let mut names: Vec<&str> = Vec::new();
    for measured in all {
        if !names.contains(&measured.name.as_str()) {
            names.push(&measured.name);
        }
    }
    let (mut below, mut first) = ([0, 0], [0, 0]);
    for name in names {
        let of = |side: Side| all.iter().filter(move |measured| measured.side == side && measured.name == name);
        let value = |side, pick: fn(&Measured) -> f64| median(of(side).map(pick).collect());
        let (ours, java) = (value(Side::Ironroot, |m| m.micros), value(Side::Java, |m| m.micros));
        let rates = (value(Side::Ironroot, |m| m.rate), value(Side::Java, |m| m.rate));
        let Some(sample) = of(Side::Ironroot).next_back() else { continue };
        let number = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
        let ratio = ours.zip(java).map(|(ours, java)| java / ours);
        let wanted = if sample.frequent { MARKS.0 } else { MARKS.1 };
        let at = usize::from(sample.frequent);
        first[at] += 1;
        let missed = ratio.is_some_and(|ratio| ratio < wanted);
        below[at] += usize::from(missed);
        let mark = if missed { "**below**" } else { "" };
        let refusals: Vec<String> = [Side::Ironroot, Side::Java]
            .into_iter()
            .filter_map(|side| of(side).next_back())
            .filter(|measured| measured.refused > 0)
            .map(|measured| format!("{} {}: {}", measured.side.name(), measured.refused, measured.refusal))
            .collect();
        let star = if sample.frequent { "* " } else { "" };
        out += &format!(
            "| {star}{name} | {} | {} | {} | {} | {mark} | {} | {} | {} |\n",
            sample.calls,
            number(ours, 2),
            number(java, 2),
            number(ratio, 1),
            number(rates.0, 0),
            number(rates.1, 0),
            refusals.join("; "),
        );
    }
    out + &format!(
        "\nof the {} most frequent {} are below {}, of the {} others {} below {}\n",
        first[1], below[1], MARKS.0, first[0], below[0], MARKS.1
    )
}

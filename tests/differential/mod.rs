//! Purpose: the same stream of calls to the Java NameNode and to ours: answers, refusals and the final trees are equal, ids and times mapped one to one.
//! Called by: the integration test binary.
//! Calls: `support` and the instruments of `trials`; both NameNodes as processes, over the wire only.
//! Never: takes an answer of ours for right that the Java NameNode does not give, but for what `known` lists with its reason.
//! Invariants: a run is a function of its seed; what is compared is counted, by method and by outcome.

mod attributes;
mod compare;
mod facts;
mod generate;
mod known;
mod model;
mod pair;
mod paths;
mod rare;
mod reads;
mod renames;
mod side;
mod snapshots;
mod stream;
mod striped;
mod successor;
mod survey;
mod whole;
mod writers;

use pair::Pair;

/// Calls of a run, those of its surveys among them (3,000 steps without the variable): `IRONROOT_DIFFERENTIAL=200000` for a long one.
fn calls() -> usize {
    let number =
        |text: String| text.parse().unwrap_or_else(|_| panic!("IRONROOT_DIFFERENTIAL={text}: a number of calls"));
    std::env::var("IRONROOT_DIFFERENTIAL").map_or(7_000, number)
}

fn seed() -> u64 {
    std::env::var("IRONROOT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Steps between two surveys of both trees: after each comes a restart, or an image, or each goes on with the other's directory for a while.
fn leg(calls: usize) -> usize {
    (calls / 40).clamp(1_500, 5_000)
}

#[test]
fn both_name_nodes_answer_alike() {
    let _turn = crate::support::cluster_turn();
    let Some(mut pair) = Pair::start("differential") else { return };
    let (calls, seed) = (calls(), seed());
    let mut generator = generate::Generator::new(seed);
    generator.begin(&mut pair);
    let mut number = 0;
    while pair.asked() < calls {
        number += 1;
        pair.pairs.settled = false;
        generator.step(&mut pair);
        if number % leg(calls) == 0 || pair.asked() >= calls {
            pair.settle();
            generator.survey(&mut pair);
            match number / leg(calls) % 4 {
                1 => pair.restart(),
                2 => {
                    pair.restart();
                    pair.settle();
                    generator.survey(&mut pair);
                    pair.exchanged(|pair| generator.survey(pair));
                }
                3 => pair.checkpoint(),
                _ => {}
            }
        }
    }
    pair.report(number, seed);
}

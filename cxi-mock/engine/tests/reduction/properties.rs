//! Any tree, any operations, any faults.

use cxi_engine::FabricFaults;
use cxi_hw::reduction::{ReduceOp, ResultCode, Sequence};
use proptest::prelude::*;

use crate::network::{Network, Shape};
use crate::participant::Contribution;
use crate::software;

const OPS: [ReduceOp; 11] = [
    ReduceOp::Barrier,
    ReduceOp::And,
    ReduceOp::Or,
    ReduceOp::Xor,
    ReduceOp::Min,
    ReduceOp::Max,
    ReduceOp::MinMaxLoc,
    ReduceOp::Sum,
    ReduceOp::FloatMin,
    ReduceOp::FloatMax,
    ReduceOp::FloatSum,
];

/// When faults end.
const UNTIL: u64 = 2000;

fn shape() -> impl Strategy<Value = Shape> {
    // Around the end of the circle, too.
    let first = prop::sample::select(vec![0, 500, 1015, 1021]);
    (1..10_usize, 2..6_usize, 0..150_u64, first).prop_map(|(leaves, ports, timeout, first)| Shape {
        leaves,
        ports,
        timeout,
        first: Sequence::new(first),
    })
}

fn faults() -> impl Strategy<Value = FabricFaults> {
    let chance = || 0..25_000_u16;
    (any::<u64>(), chance(), chance(), chance(), 0..90_u16).prop_map(
        |(seed, loss, duplication, reordering, delay)| FabricFaults {
            seed,
            loss,
            duplication,
            reordering,
            delay,
        },
    )
}

/// Operations, each with what every participant brings.
type Work = Vec<(ReduceOp, Vec<[u64; 4]>)>;

/// Operations, and what each of the participants brings.
fn work(participants: usize) -> impl Strategy<Value = Work> {
    let operation = prop::sample::select(OPS.to_vec()).prop_flat_map(move |op| {
        let word = match op {
            // Whole numbers: sums of them are exact in any order.
            ReduceOp::FloatMin | ReduceOp::FloatMax | ReduceOp::FloatSum => {
                (-1000..1000_i32).prop_map(|number| f64::from(number).to_bits()).boxed()
            }
            ReduceOp::MinMaxLoc => (0..9_u64).boxed(),
            ReduceOp::Sum => (-1_000_000..1_000_000_i64).prop_map(i64::cast_unsigned).boxed(),
            ReduceOp::Barrier => Just(0).boxed(),
            _ => any::<u64>().boxed(),
        };
        let words = prop::array::uniform4(word);
        prop::collection::vec(words, participants).prop_map(move |words| (op, words))
    });
    prop::collection::vec(operation, 1..20)
}

fn case() -> impl Strategy<Value = (Shape, Work, FabricFaults)> {
    shape().prop_flat_map(|shape| {
        let participants = shape.leaves + 1;
        (Just(shape), work(participants), faults())
    })
}

fn contributions(work: &Work) -> Vec<Vec<Contribution>> {
    let of = |participant: usize| {
        let each = work
            .iter()
            .map(|(op, words)| Contribution { op: op.number(), payload: words[participant] });
        each.collect()
    };
    (0..work[0].1.len()).map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn results_are_right_once_and_in_order((shape, work, faults) in case()) {
        let mut network = Network::new(&shape, &contributions(&work), faults, UNTIL);
        let expected: Vec<_> = work
            .iter()
            .enumerate()
            .map(|(number, (op, words))| {
                let (result, code) = software::reduce(*op, words);
                (number, result, code)
            })
            .collect();
        for completions in network.run(work.len()) {
            prop_assert_eq!(&completions, &expected);
        }
    }

    /// Without faults and with engines that wait, the root gets one packet for each operation after the first of its id.
    #[test]
    fn engines_spare_the_root_packets((shape, work, _) in case()) {
        let shape = Shape { timeout: 10_000, ..shape };
        let mut network = Network::new(&shape, &contributions(&work), FabricFaults::default(), 0);
        network.run(work.len());
        prop_assert_eq!(network.at_root, work.len() as u64);
    }
}

/// One participant that does something else fails the operation, for all.
#[test]
fn a_mismatch_is_everybodys() {
    let shape = Shape { leaves: 3, ports: 2, timeout: 100, first: Sequence::new(0) };
    for odd in 0..4 {
        let mut work =
            vec![vec![Contribution { op: ReduceOp::Sum.number(), payload: [1; 4] }; 3]; 4];
        work[odd][1].op = ReduceOp::Max.number();
        for completions in Network::new(&shape, &work, FabricFaults::default(), 0).run(3) {
            let codes: Vec<ResultCode> = completions.iter().map(|(_, _, code)| *code).collect();
            assert_eq!(
                codes,
                [ResultCode::SUCCESS, ResultCode::OPERATION_MISMATCH, ResultCode::SUCCESS]
            );
        }
    }
}

#[test]
fn the_same_seed_does_the_same() {
    let shape = Shape { leaves: 4, ports: 2, timeout: 50, first: Sequence::new(0) };
    let work = vec![vec![Contribution { op: ReduceOp::Sum.number(), payload: [1; 4] }; 30]; 5];
    let packets = |seed| {
        let faults = FabricFaults {
            seed,
            loss: 15_000,
            duplication: 15_000,
            delay: 40,
            ..FabricFaults::default()
        };
        let mut network = Network::new(&shape, &work, faults, UNTIL);
        network.run(30);
        network.at_root
    };
    assert_eq!(packets(1), packets(1));
    assert_ne!(packets(1), packets(2));
}

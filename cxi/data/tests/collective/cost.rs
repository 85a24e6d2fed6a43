//! The cost of an operation, as `docs/COLLECTIVES.md` states it.

use std::fmt::Write;
use std::path::Path;

use cxi_data::collective::{Combine, Operation};

use super::simulation::{Network, Simulation};

/// NICs or switches below a switch of the mock's trees.
const PORTS: usize = 16;

/// Cost of an allreduce by the engines of switches: levels of switches, packets on links, and tenths of
/// a microsecond, if a member and a link take as long as in the simulation. Each member sends one packet to
/// its switch, and a switch one upward; the result of the root goes the same way down.
fn engines(members: usize) -> (usize, usize, usize) {
    let (mut level, mut levels, mut switches) = (members - 1, 0, 0);
    while level > 1 || levels == 0 {
        level = level.div_ceil(PORTS);
        levels += 1;
        switches += level;
    }
    let links = levels + 1;
    (levels, 2 * (members - 1 + switches), 2 * (5 + 20 * links + 5))
}

fn microseconds(tenths: usize) -> String {
    format!("{}.{} µs", tenths / 10, tenths % 10)
}

/// The tables of the cost in software, and of the engines beside the width of 8.
fn tables() -> (String, String) {
    let mut table = String::new();
    table += "| members | width | depth | messages | time |\n";
    table += "| ---: | ---: | ---: | ---: | ---: |\n";
    let mut beside = String::new();
    beside += "| members | levels of switches | packets | time | in software, width 8 |\n";
    beside += "| ---: | ---: | ---: | ---: | ---: |\n";
    for size in [2, 8, 64, 1000, 10_000] {
        for width in [2, 4, 8, 16] {
            let operations = [Operation::Allreduce(Combine::Sum)];
            let mut simulation = Simulation::new(size, width, &operations, Network::default());
            simulation.run();
            simulation.all_succeed();
            let depth = simulation.tree.depth(size - 1);
            let messages = simulation.sent();
            let time = microseconds(usize::try_from(simulation.last.as_nanos()).unwrap() / 100);
            writeln!(table, "| {size} | {width} | {depth} | {messages} | {time} |").unwrap();
            if width == 8 {
                let (levels, packets, engines) = engines(size as usize);
                let engines = microseconds(engines);
                writeln!(beside, "| {size} | {levels} | {packets} | {engines} | {time} |").unwrap();
            }
        }
    }
    (table, beside)
}

#[test]
fn the_cost_is_as_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/COLLECTIVES.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let mut written = text.clone();
    let (cost, engines) = tables();
    for (name, table) in [("cost", cost), ("engines", engines)] {
        let mark = format!("<!-- {name} -->\n\n");
        let (before, rest) = written.split_once(&mark).unwrap();
        let (_, after) = rest.split_once("\n<!-- end -->").unwrap();
        written = format!("{before}{mark}{table}\n<!-- end -->{after}");
    }
    if std::env::var_os("CXI_WRITE_COST").is_some() {
        return std::fs::write(page, written).unwrap();
    }
    assert_eq!(text, written, "CXI_WRITE_COST=1 writes the tables");
}

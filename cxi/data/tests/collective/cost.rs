//! The cost of an operation, as `docs/COLLECTIVES.md` states it.

use std::fmt::Write;
use std::path::Path;

use cxi_data::collective::{Combine, Operation};

use super::simulation::{Network, Simulation};

fn table() -> String {
    let mut table = String::new();
    table += "| members | width | depth | messages | time |\n";
    table += "| ---: | ---: | ---: | ---: | ---: |\n";
    for size in [2, 8, 64, 1000, 10_000] {
        for width in [2, 4, 8, 16] {
            let operations = [Operation::Allreduce(Combine::Sum)];
            let mut simulation = Simulation::new(size, width, &operations, Network::default());
            simulation.run();
            simulation.all_succeed();
            let depth = simulation.tree.depth(size - 1);
            let messages = simulation.sent();
            let time = simulation.last.as_nanos() / 100;
            let time = format!("{}.{} µs", time / 10, time % 10);
            writeln!(table, "| {size} | {width} | {depth} | {messages} | {time} |").unwrap();
        }
    }
    table
}

#[test]
fn the_cost_is_as_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/COLLECTIVES.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- cost -->\n\n").unwrap();
    let (documented, after) = rest.split_once("\n<!-- end -->").unwrap();
    let table = table();
    if std::env::var_os("CXI_WRITE_COST").is_some() {
        let text = format!("{before}<!-- cost -->\n\n{table}\n<!-- end -->{after}");
        return std::fs::write(page, text).unwrap();
    }
    assert_eq!(documented, table, "CXI_WRITE_COST=1 writes the table");
}

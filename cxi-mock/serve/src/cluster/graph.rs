//! `ctl graph`: the cluster as a graph for Graphviz.

use std::fmt::{self, Write as _};

use super::{Cluster, names};

impl Cluster {
    /// Nodes, their NICs and links, and the traffic from each to each, in the language DOT. Senders
    /// are on the left and receivers on the right, so that no label of an edge is in the way.
    pub(super) fn graph(&self) -> Result<String, fmt::Error> {
        let mut text =
            "digraph fabric {\n    rankdir=LR;\n    nodesep=0.35;\n    ranksep=1.2;\n    \
                        pad=0.2;\n    graph [fontname=\"sans-serif\", color=\"#8c959f\"];\n    \
                        node [shape=box, fontname=\"sans-serif\"];\n    \
                        edge [color=\"#0969da\", fontname=\"sans-serif\", fontsize=12];\n"
                .to_owned();
        let mut places = Vec::new();
        for number in 0..self.members.len() {
            let name = names::name(number);
            let node = self.model.node(number);
            let state = if node.is_some() { "sends" } else { "is down" };
            writeln!(text, "    subgraph cluster_{name} {{")?;
            writeln!(text, "        label=\"{name} {state}\";")?;
            let nics = node.iter().flat_map(|node| node.nics());
            for (index, nic) in nics.enumerate() {
                let nid = nic.hardware().nid();
                let link = if nic.hardware().is_link_up() {
                    "\"]"
                } else {
                    "\\nlink down\", style=dashed]"
                };
                writeln!(text, "        {name}_cxi{index} [label=\"cxi{index}\\n{nid:#x}{link};")?;
                places.push(Place { nid, node: name.clone(), nic: index });
            }
            writeln!(text, "    }}")?;
        }
        let place = |nid| places.iter().find(|place| place.nid == nid);
        let moved = self.common.traffic.moved();
        // Neither a NIC of a node that is down nor a multicast address has a place.
        let edges = moved
            .iter()
            .filter_map(|((from, to), moved)| Some((place(*from)?, place(*to)?, moved)));
        let edges: Vec<_> = edges.collect();
        for to in places.iter().filter(|place| edges.iter().any(|(_, to, _)| to.nid == place.nid)) {
            let Place { nid, node, nic } = to;
            writeln!(text, "    subgraph cluster_to_{node} {{")?;
            writeln!(text, "        label=\"{node} receives\";")?;
            writeln!(text, "        to_{node}_cxi{nic} [label=\"cxi{nic}\\n{nid:#x}\"];\n    }}")?;
        }
        for (from, to, moved) in edges {
            let ends = format!("{}_cxi{} -> to_{}_cxi{}", from.node, from.nic, to.node, to.nic);
            writeln!(text, "    {ends} [label=\"{moved}\"];")?;
        }
        text.push('}');
        Ok(text)
    }
}

/// A NIC in the graph.
struct Place {
    nid: u32,
    node: String,
    nic: usize,
}

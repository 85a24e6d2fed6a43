//! `ctl graph`: the cluster as a graph for Graphviz.

use std::fmt::{self, Write as _};

use super::{Cluster, names};

impl Cluster {
    /// Nodes, their NICs and links, and who has sent how much to whom, in the language DOT.
    pub(super) fn graph(&self) -> Result<String, fmt::Error> {
        let mut text =
            "digraph fabric {\n    rankdir=LR;\n    nodesep=0.8;\n    ranksep=2.5;\n    \
                        pad=0.5;\n    node [shape=box];\n    fabric [shape=ellipse];\n"
                .to_owned();
        let mut places = Vec::new();
        for number in 0..self.members.len() {
            let name = names::name(number);
            let node = self.model.node(number);
            let state = if node.is_some() { "" } else { " (down)" };
            writeln!(text, "    subgraph cluster_{name} {{")?;
            writeln!(text, "        label=\"{name}{state}\";")?;
            let nics = node.iter().flat_map(|node| node.nics());
            for (index, nic) in nics.enumerate() {
                let (nid, up) = (nic.hardware().nid(), nic.hardware().is_link_up());
                places.push((nid, format!("{name}_cxi{index}"), up));
                writeln!(text, "        {name}_cxi{index} [label=\"cxi{index}\\n{nid:#x}\"];")?;
            }
            writeln!(text, "    }}")?;
        }
        for (_, place, up) in &places {
            let style = if *up { "solid" } else { "dotted, label=\"link down\"" };
            writeln!(text, "    {place} -> fabric [dir=none, style={style}];")?;
        }
        let place = |nid| places.iter().find(|(known, ..)| *known == nid);
        for ((from, to), moved) in &*self.common.traffic.moved() {
            // Neither a NIC of a node that is down nor a multicast address has a place.
            if let (Some((_, from, _)), Some((_, to, _))) = (place(*from), place(*to)) {
                writeln!(text, "    {from} -> {to} [color=blue, label=\"{moved}\"];")?;
            }
        }
        text.push('}');
        Ok(text)
    }
}

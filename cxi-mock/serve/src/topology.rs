//! Places of a node's NICs: the NUMA node, and the processors near it.

use std::fs;

use clap::ValueEnum;

/// The kernel's directory of NUMA nodes, below `/sys`.
const NODES: &str = "devices/system/node";

/// NICs of a blade, and its NUMA nodes.
pub(crate) const NICS: u8 = 4;

/// A blade on which each NUMA node has an accelerator, and that has a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topology {
    /// HPE Cray EX235a: one processor with four NUMA nodes, four NICs
    Ex235a,
    /// HPE Cray EX254n: four superchips, each with a NIC
    Ex254n,
    /// HPE Cray EX255a: four accelerated processors, each with a NIC
    Ex255a,
}

impl Topology {
    /// The NUMA node of each NIC.
    const fn numa_nodes(self) -> [u32; NICS as usize] {
        match self {
            // Accelerators do not follow the order of the NUMA nodes: the first one is at the last
            // node.
            Self::Ex235a => [3, 1, 0, 2],
            Self::Ex254n | Self::Ex255a => [0, 1, 2, 3],
        }
    }
}

/// The place of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locality {
    pub(crate) numa_node: u32,
    cpus: Vec<u32>,
}

impl Locality {
    /// The processors near it, as a list and as a mask.
    pub(crate) fn cpus(&self) -> (String, String) {
        (list(&self.cpus), mask(&self.cpus))
    }
}

/// The machine that serves nodes.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Shape of the node.
    topology: Option<Topology>,
    /// Processors of each NUMA node.
    numa_nodes: Vec<Vec<u32>>,
    memory_kib: u64,
}

impl Machine {
    pub(crate) fn read(topology: Option<Topology>) -> Self {
        let read = |path: &str| fs::read_to_string(format!("/sys/{path}")).ok();
        let online = read(&format!("{NODES}/online"));
        let nodes = online.map_or_else(Vec::new, |online| numbers(&online));
        let cpus = |node| read(&format!("{NODES}/node{node}/cpulist"));
        let mut numa_nodes: Vec<_> = nodes.into_iter().filter_map(cpus).collect();
        // The kernel has no NUMA support.
        if numa_nodes.is_empty() {
            numa_nodes.push(read("devices/system/cpu/online").unwrap_or_else(|| "0".to_owned()));
        }
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = memory.split_whitespace().nth(1);
        Self {
            topology,
            numa_nodes: numa_nodes.iter().map(|cpus| numbers(cpus)).collect(),
            memory_kib: total.and_then(|kib| kib.parse().ok()).unwrap_or_default(),
        }
    }

    /// Returns whether it has the NUMA nodes of a blade.
    fn is_large_enough(&self) -> bool {
        self.numa_nodes.len() >= NICS.into()
    }

    /// The processors of each NUMA node that programs see: the machine's own, or equal shares of
    /// them.
    fn nodes(&self) -> Vec<Vec<u32>> {
        if self.topology.is_none() || self.is_large_enough() {
            return self.numa_nodes.clone();
        }
        let all = self.numa_nodes.concat();
        let count = usize::from(NICS);
        // If there are fewer processors than nodes, some are in several nodes, because hwloc has no
        // place for a node without any.
        let share = |node: usize| {
            let first = node * all.len() / count;
            let end = ((node + 1) * all.len() / count).max(first + 1);
            all.get(first..end).unwrap_or_default().to_vec()
        };
        (0..count).map(share).collect()
    }

    /// The place of a NIC, counted from 0. Without a topology, it is on the first NUMA node.
    pub(crate) fn locality(&self, nic: usize) -> Locality {
        let numa_nodes = self.topology.map(Topology::numa_nodes);
        let numa_node = numa_nodes.map_or(0, |nodes| nodes[nic % nodes.len()]);
        let nodes = (0..).zip(self.nodes());
        let cpus = nodes.into_iter().find(|(node, _)| *node == numa_node);
        Locality { numa_node, cpus: cpus.map(|(_, cpus)| cpus).unwrap_or_default() }
    }

    /// Files that show the topology's NUMA nodes where the machine has fewer, by their path below
    /// `/sys`.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        if self.topology.is_none() || self.is_large_enough() {
            return Vec::new();
        }
        let nodes = self.nodes();
        let numbers: Vec<_> = (0..).take(nodes.len()).collect();
        let kib = self.memory_kib / u64::from(NICS);
        let memory =
            |node| format!("Node {node} MemTotal: {kib} kB\nNode {node} MemFree: {kib} kB\n");
        // As firmware reports them: 10 for a node itself.
        let distance = |from, to| if from == to { "10" } else { "12" };
        let mut files = Vec::new();
        for name in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
            files.push((format!("{NODES}/{name}"), list(&numbers)));
        }
        for (node, cpus) in numbers.iter().zip(&nodes) {
            let distances: Vec<_> = numbers.iter().map(|to| distance(node, to)).collect();
            for (name, text) in [
                ("cpulist", list(cpus)),
                ("cpumap", mask(cpus)),
                ("distance", distances.join(" ") + "\n"),
                ("meminfo", memory(node)),
            ] {
                files.push((format!("{NODES}/node{node}/{name}"), text));
            }
        }
        files
    }
}

/// The numbers of a list as the kernel writes it, such as `0-3,8`.
fn numbers(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

fn list(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    numbers.join(",") + "\n"
}

/// A mask as the kernel writes it: words of 32 bits, the highest first.
fn mask(numbers: &[u32]) -> String {
    let words = numbers.iter().max().map_or(1, |last| last / 32 + 1);
    let word = |word: u32| {
        let bits = numbers.iter().filter(|number| **number / 32 == word);
        format!("{:08x}", bits.fold(0_u32, |mask, number| mask | 1 << (number % 32)))
    };
    (0..words).rev().map(word).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(topology: Option<Topology>, nodes: &[&str]) -> Machine {
        Machine {
            topology,
            numa_nodes: nodes.iter().map(|cpus| numbers(cpus)).collect(),
            memory_kib: 0,
        }
    }

    #[test]
    fn processors_are_shared_unless_the_machine_has_the_nodes() {
        let blade = Some(Topology::Ex235a);
        let shares = [[0, 1], [2, 3], [4, 5], [6, 7]].map(Vec::from);
        assert_eq!(machine(blade, &["0-7"]).nodes(), shares);
        assert_eq!(machine(None, &["0-7"]).nodes(), [numbers("0-7")]);
        let few = machine(blade, &["0-1"]).nodes();
        assert_eq!(few, [[0], [0], [1], [1]].map(Vec::from));
        let same = machine(blade, &["0", "1", "2", "3", "4-5"]);
        assert_eq!(same.nodes().len(), 5);
    }

    #[test]
    fn lists_and_masks_are_the_kernels() {
        assert_eq!(numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(list(&[0, 1, 5]), "0,1,5\n");
        assert_eq!(mask(&[0, 1, 35]), "00000008,00000003\n");
        assert_eq!((list(&[]), mask(&[])), ("\n".to_owned(), "00000000\n".to_owned()));
    }
}

//! Executes the orders that a cluster gets through its socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use cxi_mock::FabricFaults;
use serde_json::{Value, json};

use super::manager::Manager;
use super::member::Member;
use super::{Cluster, names};
use crate::control::{Job, Served};
use crate::namespaces::Namespaces;
use crate::node::Node;
use crate::order::{ClusterOrder, Nodes, Order};
use crate::trace::merge;
use crate::watch::Watcher;

impl Served for Cluster {
    fn execute(&self, node: Option<&str>, order: &Order) -> Result<Value, String> {
        match (node, order) {
            (_, Order::Cluster(order)) => self.execute_cluster(node, order),
            (Some(_), order) => self.running(node)?.execute_order(order),
            (None, Order::State) => self.state(),
            (None, Order::Fault { fault }) => self.inject(fault).map(|()| Value::Null),
            (None, Order::ClearFaults) => {
                self.each(|node| node.execute_order(order).map(|_| ()))?;
                Ok(Value::Null)
            }
            (None, _) => Err(self.which_node()),
        }
    }

    fn namespaces(&self, node: Option<&str>) -> Result<Arc<Namespaces>, String> {
        self.of_member(node, |member| Arc::clone(&member.namespaces))
    }

    fn shell(&self, node: Option<&str>) -> Result<OwnedFd, String> {
        let shell = self.of_member(node, Member::shell)?;
        shell.map_err(|error| format!("{}: {error}", node.unwrap_or_default()))
    }

    fn start_job(&self) -> Result<Option<Box<dyn Job>>, String> {
        self.manager.as_ref().map(Manager::start_job).transpose()
    }

    fn watcher(&self, node: Option<&str>) -> Result<Watcher, String> {
        Ok(self.running(node)?.watch().watcher())
    }
}

impl Cluster {
    fn execute_cluster(&self, node: Option<&str>, order: &ClusterOrder) -> Result<Value, String> {
        let fabric = self.model.fabric();
        match order {
            ClusterOrder::Nodes => return Ok(self.nodes_up().into()),
            ClusterOrder::Graph => {
                let graph = self.graph().map_err(|error| error.to_string())?;
                return Ok(graph.into());
            }
            ClusterOrder::Kill => {
                self.kill(self.one(node)?).map_err(|error| error.to_string())?;
            }
            ClusterOrder::Reboot => {
                self.reboot(self.one(node)?).map_err(|error| error.to_string())?;
            }
            ClusterOrder::Port { nic, loss, delay } => {
                let number = self.one(node)?;
                let addresses = self.model.node(number).map(|node| node.addresses());
                let addresses = addresses.unwrap_or_default();
                let nid = addresses.get(usize::from(*nic)).ok_or_else(|| {
                    let count = addresses.len();
                    format!("there is no NIC {nic}: the node has {count}, counted from 0")
                })?;
                if let Some(loss) = loss {
                    fabric.set_port_loss(*nid, *loss);
                }
                if let Some(delay) = delay {
                    fabric.set_port_delay(*nid, *delay);
                }
            }
            ClusterOrder::Partition { one, other } => {
                let numbers = |names: &Nodes| -> Result<Vec<_>, String> {
                    names.0.iter().map(|name| self.number(name)).collect()
                };
                self.model.partition(&numbers(one)?, &numbers(other)?);
            }
            ClusterOrder::Heal => fabric.heal(),
            ClusterOrder::Fabric { loss, duplication, reordering, delay, seed } => fabric
                .set_faults(FabricFaults {
                    seed: *seed,
                    loss: *loss,
                    duplication: *duplication,
                    reordering: *reordering,
                    delay: *delay,
                }),
        }
        Ok(Value::Null)
    }

    fn state(&self) -> Result<Value, String> {
        let nodes = (0..self.members.len()).map(|number| {
            let mut state = json!({"name": names::name(number), "up": false});
            if let Some(member) = self.member(number).as_ref() {
                let own_network = self.lan.is_some();
                let more = json!({
                    "up": true,
                    "address": names::address(number, own_network),
                    "init": member.pid().as_raw(),
                    "nic_addresses": self.model.node(number).map(|node| node.addresses()),
                });
                merge(&mut state, more);
                merge(&mut state, member.node.state()?);
            }
            Ok(state)
        });
        let mut state = json!({"nodes": nodes.collect::<Result<Vec<_>, String>>()?});
        if let Some(manager) = &self.manager {
            merge(&mut state, json!({"fabric_manager": manager.state()}));
        }
        Ok(state)
    }

    /// A fault on every node.
    pub(super) fn inject(&self, fault: &str) -> Result<(), String> {
        self.each(|node| node.inject(fault))
    }

    fn each(&self, mut act: impl FnMut(&Node) -> Result<(), String>) -> Result<(), String> {
        (0..self.members.len()).try_for_each(|number| match self.member(number).as_ref() {
            Some(member) => act(&member.node),
            None => Ok(()),
        })
    }

    /// All nodes, which run.
    pub(crate) fn nodes(&self) -> Result<Vec<Arc<Node>>, String> {
        (0..self.members.len()).map(|number| self.running(Some(&names::name(number)))).collect()
    }

    /// Names of the nodes that run.
    pub(super) fn nodes_up(&self) -> Vec<String> {
        let up = (0..self.members.len()).filter(|number| self.member(*number).is_some());
        up.map(names::name).collect()
    }

    /// A node that runs. Nothing of the cluster is locked while the node executes the order.
    fn running(&self, node: Option<&str>) -> Result<Arc<Node>, String> {
        self.of_member(node, |member| Arc::clone(&member.node))
    }

    /// A part of a node that runs.
    fn of_member<T>(&self, node: Option<&str>, get: fn(&Member) -> T) -> Result<T, String> {
        let number = self.one(node)?;
        self.member(number).as_ref().map(get).ok_or_else(|| {
            let name = names::name(number);
            format!("{name} is down: boot it with cxi-mock ctl --node {name} reboot")
        })
    }

    fn one(&self, node: Option<&str>) -> Result<usize, String> {
        node.map_or_else(|| Err(self.which_node()), |name| self.number(name))
    }

    fn number(&self, name: &str) -> Result<usize, String> {
        names::number(name, self.members.len())
    }

    fn which_node(&self) -> String {
        let last = names::name(self.members.len() - 1);
        format!("no node named: expected --node with n1 to {last}")
    }
}

//! Executes the orders that a node gets through its socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::control::{Job, Served};
use super::namespaces::Namespaces;
use super::node::Node;
use super::order::{LinkState, Order, Register};
use super::watch::Watcher;
use cxi_mock::{FaultSpec, Nic};

impl Served for Node {
    fn execute(&self, node: Option<&str>, order: &Order) -> Result<Value, String> {
        only_node(node)?;
        self.execute_order(order)
    }

    fn namespaces(&self, node: Option<&str>) -> Result<Arc<Namespaces>, String> {
        only_node(node)?;
        Ok(Arc::clone(Node::namespaces(self)))
    }

    fn shell(&self, node: Option<&str>) -> Result<OwnedFd, String> {
        only_node(node)?;
        Err("this is one node: start several with cxi-mock cluster".to_owned())
    }

    fn start_job(&self) -> Result<Option<Box<dyn Job>>, String> {
        Ok(None)
    }

    fn watcher(&self, node: Option<&str>) -> Result<Watcher, String> {
        only_node(node)?;
        Ok(self.watch().watcher())
    }
}

fn only_node(node: Option<&str>) -> Result<(), String> {
    node.map_or(Ok(()), |name| {
        Err(format!("no node {name}: there is one node, which has no name: leave out --node"))
    })
}

impl Node {
    /// Executes an order; an error is a message for people.
    pub(crate) fn execute_order(&self, order: &Order) -> Result<Value, String> {
        match order {
            // The code that serves the socket answers these.
            Order::Namespaces | Order::Shell | Order::Packets { .. } | Order::Job => {}
            Order::State => return self.state(),
            Order::Cluster(_) => {
                return Err("this is one node: start several with cxi-mock cluster".to_owned());
            }
            Order::Hardware { register, nic } => self.set_register(*nic, register)?,
            Order::Fault { fault } => self.inject(fault)?,
            Order::ClearFaults => self.clear_faults(),
            Order::Unplug { nic } => self.unplug(*nic)?,
            Order::Plug { nic } => self.plug(*nic)?,
            Order::Tick { nic } => return Ok(self.nic(*nic)?.tick().into()),
            Order::Wake { nic, client, wait } => self.wake(*nic, *client, *wait)?,
            Order::Link { nic, link } => self.set_link(*nic, *link)?,
        }
        self.refresh().map_err(|error| format!("cannot refresh the copies of sysfs: {error}"))?;
        Ok(Value::Null)
    }

    fn set_register(&self, nic: u16, register: &Register) -> Result<(), String> {
        let hardware = self.nic(nic)?.hardware();
        match *register {
            Register::Txq { index, in_flight } => hardware.set_txq_in_flight(index, in_flight),
            Register::Tgq { index, in_flight } => hardware.set_tgq_in_flight(index, in_flight),
            Register::Tles { pool, in_use } => hardware.set_tles_in_use(pool, in_use),
            Register::Les { element, pool, allocated } => {
                hardware.set_les_allocated(element, pool, allocated)
            }
        }
        .map_err(|error| error.to_string())
    }

    fn nic(&self, number: u16) -> Result<&Arc<Nic>, String> {
        self.server()
            .function(number)
            .filter(|function| function.vf.is_none())
            .map(|function| &function.nic)
            .ok_or_else(|| {
                let count = self.server().physical().count();
                format!("there is no NIC {number}: the node has {count}, counted from 0")
            })
    }

    /// Injects a fault into the NICs that it concerns.
    pub(crate) fn inject(&self, text: &str) -> Result<(), String> {
        let fault: FaultSpec = text.parse().map_err(|error| format!("fault '{text}': {error}"))?;
        if let Some(device) = fault.device() {
            self.nic(device)?;
        }
        if let Some(path) = fault.file() {
            let mut concerned = self.server().physical().filter(|it| fault.concerns(it.number));
            // A fault that never strikes would let a test pass that tests nothing.
            if concerned.all(|function| function.tree.find(path).is_none()) {
                return Err(format!(
                    "fault '{text}': there is no file {path}: expected a path below \
                     /sys/class/cxi/cxiN/device, such as telemetry/hni_pcs_good_cw"
                ));
            }
            if !fault.hides() && !self.has_files() {
                return Err(format!(
                    "fault '{text}': programs on this node read copies of its files, which neither \
                     fail nor are slow: expected a node with --door fuse"
                ));
            }
        }
        for function in self.server().physical() {
            if !fault.concerns(function.number) {
                continue;
            }
            match fault.plugs() {
                Some(plugs) if plugs != function.nic.faults().is_unplugged() => {}
                // The NIC's files appear and disappear with it.
                Some(true) => self.plug(function.number)?,
                Some(false) => self.unplug(function.number)?,
                None => fault.inject(&function.nic),
            }
        }
        Ok(())
    }

    fn wake(&self, number: u16, client: u32, wait: u32) -> Result<(), String> {
        let waits = self.nic(number)?.waits_of(None, client);
        let waits = waits.ok_or_else(|| format!("cxi{number} has no client {client}"))?;
        if !waits.contains(&wait) {
            return Err(format!("client {client} has no wait object {wait}"));
        }
        self.server().interrupts.wake((number, client, wait));
        Ok(())
    }

    fn clear_faults(&self) {
        for function in self.server().physical() {
            let faults = function.nic.faults();
            let removed = faults.is_unplugged();
            faults.clear();
            if removed {
                faults.unplug();
            }
        }
    }

    fn unplug(&self, number: u16) -> Result<(), String> {
        let nic = self.nic(number)?;
        nic.faults().unplug();
        self.each_function_of(nic, |function| self.hide(function))
    }

    fn plug(&self, number: u16) -> Result<(), String> {
        let nic = self.nic(number)?;
        if !nic.faults().is_unplugged() {
            return Err(format!("NIC {number} is already plugged in"));
        }
        nic.faults().plug();
        self.each_function_of(nic, |function| self.show(function))
    }

    fn set_link(&self, number: u16, link: LinkState) -> Result<(), String> {
        let nic = self.nic(number)?;
        let show = |up| {
            if nic.faults().is_unplugged() {
                return Ok(());
            }
            self.each_function_of(nic, |function| self.set_network_link(function, up))
        };
        let hardware = nic.hardware();
        match link {
            LinkState::Up if hardware.is_link_up() => return Ok(()),
            LinkState::Down => hardware.set_link(false),
            // A link that has gone down restarts.
            LinkState::Up | LinkState::Restart => {
                show(false)?;
                hardware.restart_link(SystemTime::now());
            }
        }
        show(hardware.is_link_up())
    }

    fn each_function_of(
        &self,
        nic: &Arc<Nic>,
        act: impl Fn(&super::server::Function) -> Result<(), super::error::ServeError>,
    ) -> Result<(), String> {
        let functions = self.server().functions();
        functions
            .filter(|function| Arc::ptr_eq(&function.nic, nic))
            .try_for_each(act)
            .map_err(|error| error.to_string())
    }
}

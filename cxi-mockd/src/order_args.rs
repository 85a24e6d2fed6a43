//! Orders as `cxi-mock ctl` takes them.

use clap::{Subcommand, ValueEnum};

use super::order::Order;

/// What to do with a node.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OrderArguments {
    /// Print what is there and in use, as JSON
    State,
    /// Set what the hardware reports
    #[command(subcommand)]
    Hardware(HardwareArguments),
    /// Let something go wrong, such as SVC_DESTROY:EBUSY:times=3 or cxi0:delay=20ms
    Fault {
        /// Words with colons between: device, command, errno, after=N, times=N, delay=20ms
        fault: String,
    },
    /// Forget all faults and delays
    ClearFaults,
    /// Run the cleanup of freed LNIs now; prints whether there was any to do
    Tick {
        /// Number of the NIC
        #[arg(default_value_t = 0)]
        nic: u16,
    },
    /// Wake whoever polls a wait object
    Wake {
        /// Number of the open file, as WAIT_ALLOC answers it
        client: u32,
        /// Number of the wait object
        wait: u32,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// Take a NIC out
    Unplug {
        /// Number of the NIC
        nic: u16,
    },
    /// Put a NIC back in
    Plug {
        /// Number of the NIC
        nic: u16,
    },
    /// Take the link up or down
    Link {
        /// What the link becomes
        link: LinkState,
        /// Number of the NIC
        #[arg(default_value_t = 0)]
        nic: u16,
    },
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkState {
    /// It carries.
    Up,
    /// It does not.
    Down,
}

/// A register of the hardware.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum HardwareArguments {
    /// Commands in flight in transmit queue INDEX (0 to 1023)
    Txq {
        index: u32,
        in_flight: u32,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// Commands in flight in target queue INDEX (1024 to 1535)
    Tgq {
        index: u32,
        in_flight: u32,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// TLEs in use in pool POOL (0 to 3)
    Tles {
        pool: u32,
        in_use: u16,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
    /// LEs allocated in pool POOL (0 to 15) of processing element ELEMENT (0 to 3)
    Les {
        element: u32,
        pool: u32,
        allocated: u16,
        #[arg(long, default_value_t = 0)]
        nic: u16,
    },
}

impl From<OrderArguments> for Order {
    fn from(arguments: OrderArguments) -> Self {
        match arguments {
            OrderArguments::State => Self::State,
            OrderArguments::Hardware(register) => register.into(),
            OrderArguments::Fault { fault } => Self::Fault { fault },
            OrderArguments::ClearFaults => Self::ClearFaults,
            OrderArguments::Tick { nic } => Self::Tick { nic },
            OrderArguments::Wake { client, wait, nic } => Self::Wake { nic, client, wait },
            OrderArguments::Unplug { nic } => Self::Unplug { nic },
            OrderArguments::Plug { nic } => Self::Plug { nic },
            OrderArguments::Link { link, nic } => Self::Link {
                nic,
                up: link == LinkState::Up,
            },
        }
    }
}

impl From<HardwareArguments> for Order {
    fn from(register: HardwareArguments) -> Self {
        match register {
            HardwareArguments::Txq {
                index,
                in_flight,
                nic,
            } => Self::Txq {
                nic,
                index,
                in_flight,
            },
            HardwareArguments::Tgq {
                index,
                in_flight,
                nic,
            } => Self::Tgq {
                nic,
                index,
                in_flight,
            },
            HardwareArguments::Tles { pool, in_use, nic } => Self::Tles { nic, pool, in_use },
            HardwareArguments::Les {
                element,
                pool,
                allocated,
                nic,
            } => Self::Les {
                nic,
                element,
                pool,
                allocated,
            },
        }
    }
}

//! The fabric manager as an HTTP server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::api::{Api, Config, Fault, JournalEntry};
use crate::listener::Listener;
use crate::model::{Forget, Refusal, State};
use crate::switches::{Switches, TreeChange};
use crate::{control, http};

/// A mock fabric manager that serves HTTP until it is dropped.
#[derive(Debug)]
pub struct MockFabricManager {
    shared: Arc<Shared>,
    address: SocketAddr,
    control: Option<Listener>,
}

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    api: Mutex<Api>,
    started: Instant,
    /// Time that was added by [`MockFabricManager::advance`].
    ahead: Mutex<Duration>,
    listener: Mutex<Option<Listener>>,
    switches: Mutex<Option<Switches>>,
}

impl MockFabricManager {
    /// Starts on a free port of the loopback interface, with the defaults.
    ///
    /// # Errors
    /// As [`MockFabricManager::bind`].
    pub fn start() -> io::Result<Self> {
        Self::bind(Config::default(), (Ipv4Addr::LOCALHOST, 0))
    }

    /// Starts on an address. Port 0 chooses a free port.
    ///
    /// # Errors
    /// The address cannot be listened on, or the configuration is invalid
    /// ([`io::ErrorKind::InvalidInput`]).
    pub fn bind(config: Config, address: impl ToSocketAddrs) -> io::Result<Self> {
        let api = Api::new(config)
            .map_err(|refusal| io::Error::new(io::ErrorKind::InvalidInput, refusal))?;
        let shared = Arc::new(Shared {
            api: Mutex::new(api),
            started: Instant::now(),
            ahead: Mutex::default(),
            listener: Mutex::default(),
            switches: Mutex::default(),
        });
        let address = Shared::listen(&shared, resolve(address)?)?;
        Ok(Self { shared, address, control: None })
    }

    /// Accepts orders on another address. Port 0 chooses a free port. Anyone who can reach it may do
    /// everything.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn with_control(mut self, address: impl ToSocketAddrs) -> io::Result<Self> {
        let (shared, api) = (Arc::clone(&self.shared), self.address);
        let serve = move |stream: &TcpStream| {
            let answer = |order: &_| control::obey(&shared, api, order);
            http::serve(stream, |_| true, answer);
        };
        self.control = Some(Listener::start(resolve(address)?, "fm-control", serve)?);
        Ok(self)
    }

    /// The address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address on which it accepts orders.
    #[must_use]
    pub fn control_address(&self) -> Option<SocketAddr> {
        self.control.as_ref().map(Listener::address)
    }

    /// The URL before `/fabric/…`, including the gateway's prefix.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.shared.api().prefix)
    }

    /// The URL of the token endpoint.
    #[must_use]
    pub fn token_url(&self) -> String {
        let api = self.shared.api();
        let path = &api.authenticator.access.token_path;
        format!("http://{}{path}", self.address)
    }

    /// The URL for trees: the value of `FI_CXI_COLL_FABRIC_MGR_URL`.
    #[must_use]
    pub fn multicasts_url(&self) -> String {
        format!("{}/fabric/collectives/multicasts", self.url())
    }

    /// Adds a fault.
    pub fn inject(&self, fault: impl Into<Fault>) {
        self.shared.api().faults.push(fault.into());
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.shared.api().faults.clear();
    }

    /// Stops listening, so that connections are refused, or listens again.
    ///
    /// # Errors
    /// Another process now listens there.
    pub fn set_listening(&self, listening: bool) -> io::Result<()> {
        Shared::set_listening(&self.shared, self.address, listening)
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.shared.advance(by);
    }

    /// Restarts the fabric manager.
    pub fn restart(&self, forget: Forget) {
        self.shared.change(|api| api.restart(forget));
    }

    /// Programs switches with the usable trees, now and at each change. The response to a request for a
    /// tree is sent after the switches have the tree.
    pub fn program(&self, switches: impl FnMut(TreeChange) + Send + 'static) {
        *self.shared.switches() = Some(Switches::new(switches));
        self.shared.change(|_| ());
    }

    /// Reserves trees for a job, as a workload manager does. Returns the session token.
    ///
    /// # Errors
    /// [`Refusal`]: malformed, already reserved, or too many.
    pub fn reserve(&self, job: &str, limit: u32) -> Result<String, Refusal> {
        self.shared.change(|api| Ok(api.model_mut().reserve(job, limit.into())?.token.clone()))
    }

    /// Releases a job's reservation and deletes its trees.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`].
    pub fn release(&self, job: &str) -> Result<(), Refusal> {
        let now = self.shared.now();
        self.shared.change(|api| api.model_mut().release(job, now).map(|_| ()))
    }

    /// Makes all tokens of workload managers invalid.
    pub fn expire_tokens(&self) {
        self.shared.api().authenticator.forget();
    }

    /// Sets the VNIs of a job. From now on, trees with other VNIs are refused.
    pub fn expect_vnis(&self, job: &str, vnis: &[u16]) {
        self.shared.api().model_mut().expect_vnis(job, vnis.to_vec());
    }

    /// The reservations and trees, without tokens.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.api().model().state()
    }

    /// The requests so far, at most the last 100,000, without secrets.
    #[must_use]
    pub fn journal(&self) -> Vec<JournalEntry> {
        self.shared.api().journal.iter().cloned().collect()
    }

    /// Checks that nothing is left, at the end of a test.
    ///
    /// # Panics
    /// A reservation or a tree is left.
    #[track_caller]
    pub fn assert_quiet(&self) {
        let state = self.state();
        assert!(state.is_quiet(), "reservations or multicast trees are left: {state:?}");
    }
}

impl Drop for MockFabricManager {
    fn drop(&mut self) {
        drop(self.shared.listener_slot().take());
    }
}

impl Shared {
    pub(crate) fn api(&self) -> MutexGuard<'_, Api> {
        self.api.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change that may affect the switches.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Api) -> T) -> T {
        let mut api = self.api();
        let changed = change(&mut api);
        if let Some(switches) = &mut *self.switches() {
            switches.update(api.model());
        }
        changed
    }

    fn switches(&self) -> MutexGuard<'_, Option<Switches>> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.saturating_add(by);
    }

    pub(crate) fn set_listening(
        shared: &Arc<Self>,
        address: SocketAddr,
        listening: bool,
    ) -> io::Result<()> {
        let before = shared.listener_slot().take();
        if !listening {
            return Ok(());
        }
        drop(before);
        Self::listen(shared, address).map(|_| ())
    }

    fn now(&self) -> Duration {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        self.started.elapsed().saturating_add(*ahead)
    }

    fn listen(shared: &Arc<Self>, address: SocketAddr) -> io::Result<SocketAddr> {
        // A connection must not keep the fabric manager alive.
        let manager = Arc::downgrade(shared);
        let listener = Listener::start(address, "fabric-manager", move |stream| {
            if let Some(shared) = manager.upgrade() {
                let knows = |head: &_| shared.api().knows(head, shared.now());
                let answer = |request: &_| {
                    let now = shared.now();
                    shared.change(|api| api.handle(request, now))
                };
                http::serve(stream, knows, answer);
            }
        })?;
        let address = listener.address();
        *shared.listener_slot() = Some(listener);
        Ok(address)
    }

    fn listener_slot(&self) -> MutexGuard<'_, Option<Listener>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resolve(address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    let mut addresses = address.to_socket_addrs()?;
    addresses
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the host name has no address"))
}

//! A port, and the thread that accepts connections to it.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::shutdown;

/// The maximum number of connections at a time; one more closes the oldest.
const MOST_CONNECTIONS: usize = 256;

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    socket: Arc<TcpListener>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Accepts connections, each in a separate thread.
    pub(crate) fn start(
        address: SocketAddr,
        name: &str,
        serve: impl Fn(&TcpStream) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let socket = Arc::new(TcpListener::bind(address)?);
        let address = socket.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (listener, stopped) = (Arc::clone(&socket), Arc::clone(&stop));
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || accept(&listener, &stopped, &serve))?;
        Ok(Self { address, socket, stop, thread: Some(thread) })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // On Linux, this ends `accept`.
        if shutdown(&self.socket, rustix::net::Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    stop: &AtomicBool,
    serve: &(impl Fn(&TcpStream) + Clone + Send + 'static),
) {
    let mut open = VecDeque::<Weak<TcpStream>>::new();
    for stream in listener.incoming() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            // For example, there are no descriptors left; wait until other connections are closed.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        open.retain(|connection| connection.strong_count() > 0);
        // If the new one were closed instead, a few slow clients could lock out all others.
        if open.len() >= MOST_CONNECTIONS
            && let Some(oldest) = open.pop_front().and_then(|oldest| oldest.upgrade())
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let (serve, stream) = (serve.clone(), Arc::new(stream));
        open.push_back(Arc::downgrade(&stream));
        // If no thread can be started, the connection is closed.
        let _ = thread::Builder::new().spawn(move || serve(&stream));
    }
}

//! A network that cuts connections, and may be down.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    cuts: Arc<AtomicU32>,
    down: Arc<AtomicBool>,
}

impl Proxy {
    /// Passes everything on to a server, but cuts a connection after every so many pieces of data:
    /// a request does not arrive, or an answer.
    pub(crate) fn start(server: SocketAddr, each: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (pieces, cuts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (counted, down) = (Arc::clone(&cuts), Arc::<AtomicBool>::default());
        let is_down = Arc::clone(&down);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if is_down.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (pieces, cuts) = (Arc::clone(&pieces), Arc::clone(&counted));
                    let is_down = Arc::clone(&is_down);
                    let cut = move || {
                        let number = pieces.fetch_add(1, Ordering::Relaxed) + 1;
                        let cut = number.is_multiple_of(each) || is_down.load(Ordering::Relaxed);
                        cuts.fetch_add(cut.into(), Ordering::Relaxed);
                        cut
                    };
                    thread::spawn(move || pass(&from, &to, cut));
                }
            }
        });
        Self { address, cuts, down }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes the network down, or up again.
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Returns the number of times that a connection was cut.
    pub(crate) fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::Relaxed)
    }
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, cut: impl Fn() -> bool) {
    let mut piece = [0; 1 << 12];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if cut() || to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

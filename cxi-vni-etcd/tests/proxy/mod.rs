//! A network that cuts connections.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// Passes everything on to a server, but cuts a connection after every so many pieces of data:
    /// a request does not arrive, or an answer.
    pub(crate) fn start(server: SocketAddr, each: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (pieces, cuts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&cuts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (pieces, cuts) = (Arc::clone(&pieces), Arc::clone(&counted));
                    thread::spawn(move || pass(&from, &to, &pieces, &cuts, each));
                }
            }
        });
        Self { address, cuts }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often a connection was cut.
    pub(crate) fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::Relaxed)
    }
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, pieces: &AtomicU32, cuts: &AtomicU32, each: u32) {
    let mut piece = [0; 1 << 12];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let number = pieces.fetch_add(1, Ordering::Relaxed) + 1;
        if number.is_multiple_of(each) {
            cuts.fetch_add(1, Ordering::Relaxed);
            break;
        }
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

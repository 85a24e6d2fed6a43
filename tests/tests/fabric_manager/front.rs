//! Terminates TLS in front of the mock.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Serves for as long as the test runs.
pub(crate) struct Front {
    port: u16,
}

impl Front {
    pub(crate) fn start(behind: SocketAddr, config: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                // Clients that do not trust the certificate disconnect.
                thread::spawn(move || pass_on(stream, behind, config));
            }
        });
        Self { port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn pass_on(stream: TcpStream, behind: SocketAddr, config: Arc<ServerConfig>) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut client = StreamOwned::new(connection, stream);
    let mut request = Vec::new();
    while !is_whole(&request) {
        let mut some = [0; 4096];
        let read = client.read(&mut some)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(&some[..read]);
    }
    let mut server = TcpStream::connect(behind)?;
    server.write_all(&request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    client.write_all(&answer)?;
    client.conn.send_close_notify();
    client.flush()
}

/// Returns whether this is a head and a body of the length that it announces.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.unwrap_or(0)
}

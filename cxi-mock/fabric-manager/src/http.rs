//! HTTP/1.1 as the clients of a fabric manager use it: one request per connection.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::api::{Answer, Delivery, Request};

/// The maximum length of a request's head.
const LONGEST_HEAD: u64 = 1 << 16;
/// The maximum length of a request's body: a tree of all NICs of a large system.
const LONGEST_BODY: u64 = 1 << 24;
/// The maximum length of a body from a client without a valid token or password. Anyone who can connect
/// can make the server keep this much for each connection.
const LONGEST_BODY_UNKNOWN: u64 = 1 << 16;
const MOST_HEADERS: usize = 64;
/// Longest time that a whole request may take. With a limit for each read, a client could send a
/// byte per minute.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Longest time that a client may take to read a response, and then to close the connection.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// A connection whose reads fail after a deadline.
struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// Handles the request of a connection, and closes it. `knows` decides by a request's head whether the
/// sender has a valid token or password.
pub(crate) fn serve(
    stream: &TcpStream,
    knows: impl FnOnce(&Request) -> bool,
    answer: impl FnOnce(&Request) -> (Answer, Delivery),
) {
    // A client that closes its connection early causes no error here.
    let _ = converse(stream, knows, answer);
}

fn converse(
    stream: &TcpStream,
    knows: impl FnOnce(&Request) -> bool,
    answer: impl FnOnce(&Request) -> (Answer, Delivery),
) -> io::Result<()> {
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    stream.set_nodelay(true)?;
    let until = Instant::now() + REQUEST_TIME;
    let mut reader = BufReader::new(Timed { stream, until });
    let (answer, delivery) = match read(&mut reader, stream, knows) {
        Ok(request) => answer(&request),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            (Answer::error(400, &error.to_string()), Delivery::Whole)
        }
        Err(error) => return Err(error),
    };
    deliver(stream, &answer, delivery)?;
    // Give the client time to read the response before its connection is closed.
    stream.shutdown(Shutdown::Write)?;
    reader.get_mut().until = Instant::now() + ANSWER_TIME;
    io::copy(&mut reader.take(LONGEST_BODY), &mut io::sink())?;
    Ok(())
}

fn malformed(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

fn read(
    reader: &mut impl BufRead,
    mut stream: &TcpStream,
    knows: impl FnOnce(&Request) -> bool,
) -> io::Result<Request> {
    let mut request = read_head(reader)?;
    let longest = if knows(&request) { LONGEST_BODY } else { LONGEST_BODY_UNKNOWN };
    let says = |name, value: &str| {
        let header = request.header(name);
        header.is_some_and(|header| header.eq_ignore_ascii_case(value))
    };
    if says("expect", "100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if says("transfer-encoding", "chunked") {
        request.body = read_chunks(reader, longest)?;
    } else if let Some(length) = request.header("content-length") {
        let length: u64 = length.parse().map_err(|_| {
            malformed(format!("invalid Content-Length {length:?}: expected a number"))
        })?;
        read_exact(reader, length, longest, &mut request.body)?;
    }
    Ok(request)
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Request> {
    let mut head = Vec::new();
    let mut lines = reader.take(LONGEST_HEAD);
    while !head.ends_with(b"\r\n\r\n") {
        if lines.read_until(b'\n', &mut head)? == 0 {
            return Err(if head.is_empty() {
                io::ErrorKind::UnexpectedEof.into()
            } else {
                malformed(format!(
                    "the head of the request does not end within {LONGEST_HEAD} bytes"
                ))
            });
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed.parse(&head).map_err(|error| malformed(format!("the head of the request: {error}")))?;
    let header = |header: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(header.value);
        (header.name.to_owned(), value.trim().to_owned())
    };
    Ok(Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: parsed.path.unwrap_or_default().to_owned(),
        headers: parsed.headers.iter().map(header).collect(),
        body: Vec::new(),
    })
}

fn read_exact(
    reader: &mut impl Read,
    length: u64,
    longest: u64,
    body: &mut Vec<u8>,
) -> io::Result<()> {
    if length > longest.saturating_sub(body.len() as u64) {
        return Err(malformed(format!(
            "the body is longer than {longest} bytes; without a valid token or password, \
             {LONGEST_BODY_UNKNOWN} are the most"
        )));
    }
    if reader.take(length).read_to_end(body)? as u64 == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn read_chunks(reader: &mut impl BufRead, longest: u64) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    // Lines with sizes and trailers have a maximum length, too.
    let reader = &mut reader.take(2 * longest);
    loop {
        let line = read_line(reader)?;
        let Ok(httparse::Status::Complete((_, size))) = httparse::parse_chunk_size(&line) else {
            return Err(malformed("invalid size of a chunk: expected a hexadecimal number"));
        };
        if size == 0 {
            // Skip the trailers and the empty line that ends them.
            while read_line(reader)? != b"\r\n" {}
            return Ok(body);
        }
        read_exact(reader, size, longest, &mut body)?;
        if read_line(reader)? != b"\r\n" {
            return Err(malformed("a chunk is longer than it says"));
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(LONGEST_HEAD).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\r\n") {
        Ok(line)
    } else {
        Err(malformed("a line of a chunked body does not end"))
    }
}

fn deliver(mut stream: &TcpStream, answer: &Answer, delivery: Delivery) -> io::Result<()> {
    let body = &answer.body;
    let (length, sent) = match delivery {
        Delivery::TooShort(missing) => (body.len() + missing, body.len()),
        Delivery::Cut(bytes) => (body.len(), bytes.min(body.len())),
        _ => (body.len(), body.len()),
    };
    let head = head(answer, length);
    match delivery {
        Delivery::Silence => silence(stream),
        Delivery::Reset => rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))
            .map_err(io::Error::from)
            .and_then(|()| Err(io::ErrorKind::ConnectionReset.into())),
        Delivery::HeadOnly => {
            stream.write_all(head.as_bytes())?;
            silence(stream)
        }
        Delivery::Drip(ms) => head.as_bytes().iter().chain(body).try_for_each(|byte| {
            thread::sleep(Duration::from_millis(ms));
            stream.write_all(&[*byte])
        }),
        Delivery::After(_) | Delivery::Whole | Delivery::Cut(_) | Delivery::TooShort(_) => {
            if let Delivery::After(ms) = delivery {
                thread::sleep(Duration::from_millis(ms));
            }
            stream.write_all(&[head.as_bytes(), &body[..sent]].concat())
        }
    }
}

fn head(answer: &Answer, length: usize) -> String {
    let status = answer.status;
    // The reason phrase after the status is optional.
    let mut head = format!("HTTP/1.1 {status} \r\nConnection: close\r\n");
    // A 204 has neither a type nor a length.
    if status != 204 {
        let _ =
            write!(head, "Content-Type: {}\r\nContent-Length: {length}\r\n", answer.content_type);
    }
    head + "\r\n"
}

/// Waits until the client gives up.
fn silence(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    while stream.read(&mut [0; 512])? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_request_that_drips_in_ends_at_its_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let drip = thread::spawn(move || {
            while client.write_all(b"a").is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let until = Instant::now() + Duration::from_millis(50);
        let mut timed = BufReader::new(Timed { stream: &stream, until });
        let refused = read_head(&mut timed).unwrap_err();
        assert!(
            matches!(refused.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock),
            "{refused}"
        );
        drop(stream);
        drip.join().unwrap();
    }
}

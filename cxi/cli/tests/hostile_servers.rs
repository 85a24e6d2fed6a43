//! Servers that answer with whatever an attacker chose: etcd's place and the fabric manager's. Nothing of
//! it reaches a terminal raw, and no command takes it for success.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{EVIL, Said, command, escaped_evil};
use tempfile::TempDir;

/// Answers of a server: the status line, and the body.
fn answers() -> Vec<(String, String)> {
    let evil = escaped_evil();
    // A key and a value: base64 of ESC [ 8 m.
    let key =
        r#"{"key": "G1s4bQ==", "value": "G1s4bQ==", "create_revision": "1", "mod_revision": "1"}"#;
    let header =
        r#""header": {"cluster_id": "1", "member_id": "1", "revision": "1", "raft_term": "1"}"#;
    let bodies = [
        EVIL.to_owned(),
        format!("\"{evil}\""),
        format!(
            r#"{{"error": "{evil}", "code": 5, "message": "{evil}", "detail": "{evil}", "{evil}": 1}}"#
        ),
        format!(r#"{{{header}, "kvs": [{key}], "count": "1"}}"#),
        format!(r#"{{{header}, "count": "{evil}"}}"#),
        format!(r#"{{"{evil}": "{evil}"}}"#),
        format!(
            r#"{{"token": "{evil}", "access_token": "{evil}", "expires_in": 60, "token_type": "{evil}"}}"#
        ),
    ];
    let refused = [&bodies[0], &bodies[2]].map(|body| (format!("400 {EVIL}"), body.clone()));
    let good = bodies.iter().map(|body| ("200 OK".to_owned(), body.clone()));
    let busy = ("503 Unavailable".to_owned(), bodies[2].clone());
    good.chain(refused).chain([busy]).collect()
}

/// Answers every request with the answer of that number.
struct Server {
    url: String,
    number: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let number = Arc::new(AtomicUsize::new(0));
        let server = Self { url, number: Arc::clone(&number) };
        thread::spawn(move || {
            let answers = answers();
            for stream in listener.incoming().map_while(Result::ok) {
                let (status, body) = answers[number.load(Ordering::SeqCst)].clone();
                // Its client may not want to hear it.
                thread::spawn(move || answer(&stream, &status, &body));
            }
        });
        server
    }
}

fn answer(mut stream: &TcpStream, status: &str, body: &str) -> Option<()> {
    let mut lines = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    lines.read_exact(&mut vec![0; length]).ok()?;
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()
}

#[test]
fn a_terminal_obeys_no_server() {
    let server = Server::start();
    let files = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = files.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    };
    write("endpoint", &format!("{}/token", server.url));
    for name in ["client-id", "client-secret", "passwd"] {
        write(name, "secret\n");
    }
    let path = files.path().display();
    write(
        "cxi.toml",
        &format!(
            "wait = \"200ms\"\n[pool]\nstore = \"etcd\"\n[controller]\nrecords = \"{path}/decisions\"\nwait = \"200ms\"\n\
             [etcd]\nendpoints = [\"{url}\"]\ntimeout = \"200ms\"\n[fabric-manager]\nurl = \"{url}\"\ncluster = \"alpha\"\n\
             auth-dir = \"{path}\"\ndeadline = \"200ms\"\nallow-clear-secrets = true\n\
             [collectives]\nwait = \"200ms\"\n",
            url = server.url
        ),
    );
    let commands: [&[&str]; 6] = [
        &["vni", "list"],
        &["vni", "configure", "1024-1030"],
        &["job", "reserve", "1", "--uid=1000", "--nodes=n1"],
        &["collectives", "reserve", "17", "--limit=4"],
        &["collectives", "release", "17"],
        &["collectives", "sweep", "--live=9"],
    ];
    for number in 0..answers().len() {
        server.number.store(number, Ordering::SeqCst);
        let run = |arguments: &&[&str]| {
            let mut command = command(*arguments);
            command.env("CXI_CONFIG", files.path().join("cxi.toml"));
            command.env("CXI_VNI_EPOCH", files.path().join("epoch"));
            if number % 2 == 1 {
                command.arg("--json");
            }
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        // All at once.
        let children: Vec<_> = commands.iter().map(run).collect();
        let said: Vec<Said> =
            children.into_iter().map(|it| it.wait_with_output().unwrap().into()).collect();
        for (arguments, said) in commands.iter().zip(said) {
            let is_evil = |letter: char| {
                letter != '\n' && letter.is_control() || !letter.is_ascii() && EVIL.contains(letter)
            };
            for text in [&said.out, &said.err] {
                assert!(!text.contains(is_evil), "{number}, {arguments:?}: {text:?}");
            }
            // A job may start without trees, after a warning.
            let is_optional = arguments.starts_with(&["collectives", "reserve"]);
            assert!(said.code != 0 || is_optional, "{number}, {arguments:?}: {said:?}");
            assert!(!said.err.is_empty(), "{number}, {arguments:?}");
        }
    }
}

//! The parts of the document.

use cxi_ioctl::{Opcode, OpcodeInfo, Privilege};
use cxi_tests::counted::{Call, OPERATIONS, Uncounted};

use super::format::{count, ratio, table, time};
use super::results::Results;
use super::{document, machine};

/// What stands in the place of figures that a machine cannot give.
const NONE: &str = "Not measured on this machine.";

/// The system calls of each operation.
pub(crate) type Counts = Result<Vec<Vec<Call>>, Uncounted>;

/// Renews every part.
pub(crate) fn renew(text: &str, results: &Results, counts: &Counts) -> Result<String, String> {
    let parts = [
        ("machine", machine::describe(results)),
        ("system calls", system_calls(counts)),
        ("command", command(results)),
        ("list", list(results)),
        ("open", open(results)),
        ("mock", mock(results)),
        ("threads", threads(results)),
        ("engine", engine(results)),
        ("matching", matching(results)),
        ("resources", resources(results)),
        ("vni pool", vni_pool(results)),
        ("replay", replay(results)),
        ("job", job(results)),
        ("served", served(results)),
        ("messages", messages(results)),
        ("stream", stream(results)),
        ("processes", processes(results)),
    ];
    parts
        .iter()
        .try_fold(text.to_owned(), |text, (part, content)| {
            document::renew(&text, part, content)
        })
}

/// A table, or that there is nothing for one.
fn filled(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return NONE.to_owned();
    }
    table(head, rows)
}

fn system_calls(counts: &Counts) -> String {
    let counts = match counts {
        Ok(counts) => counts,
        Err(why) => return format!("Not counted on this machine: {why}."),
    };
    let rows: Vec<_> = OPERATIONS
        .iter()
        .zip(counts)
        .map(|(operation, calls)| {
            let heap = if operation.allocates {
                "what it returns"
            } else {
                "nothing"
            };
            vec![
                format!("`{}`", operation.name),
                calls.len().to_string(),
                heap.to_owned(),
            ]
        })
        .collect();
    filled(&["call", "system calls", "allocates"], &rows)
}

/// Rows of a baseline, ours, and their ratio.
fn pairs(results: &Results, group: &str, baseline: &str, ours: &str) -> Vec<Vec<String>> {
    let parameters = results.parameters(group, ours);
    let row = |parameter: &str| {
        let baseline = results.time(group, baseline, parameter)?;
        let ours = results.time(group, ours, parameter)?;
        Some(vec![
            parameter
                .parse()
                .map_or_else(|_| parameter.to_owned(), count),
            time(baseline),
            time(ours),
            ratio(ours, baseline),
            time((ours - baseline).max(0.0)),
        ])
    };
    parameters.into_iter().filter_map(row).collect()
}

fn command(results: &Results) -> String {
    let head = [
        "command",
        "`write(2)`",
        "library",
        "ratio",
        "library's share",
    ];
    filled(&head, &pairs(results, "command", "write(2)", "library"))
}

fn served(results: &Results) -> String {
    let mut rows = pairs(results, "served", "bare FUSE file", "mock");
    for command in rows.iter_mut().filter_map(|row| row.first_mut()) {
        let named = |known: &&OpcodeInfo| known.name == command.as_str();
        let handler = Opcode::all()
            .iter()
            .find(named)
            .and_then(|known| known.handler);
        if handler.is_some_and(|handler| handler.privilege == Privilege::Admin) {
            command.push_str(", privileged");
        }
    }
    let head = [
        "command",
        "bare FUSE file",
        "served mock",
        "ratio",
        "mock's share",
    ];
    filled(&head, &rows)
}

fn list(results: &Results) -> String {
    let of = |function| results.line("list", function);
    let rows: Vec<_> = of("transport")
        .into_iter()
        .zip(of("list_into").into_iter().zip(of("list")))
        .map(|((services, bare), ((_, into), (_, list)))| {
            vec![
                count(services),
                time(bare),
                time(into),
                time(list),
                time((into - bare) / services),
                time((list - bare) / services),
            ]
        })
        .collect();
    let head = [
        "services",
        "transport alone",
        "`list_into`",
        "`list`",
        "`list_into`'s share a service",
        "`list`'s",
    ];
    filled(&head, &rows)
}

fn open(results: &Results) -> String {
    let row = |what: &str, group: &str, baseline: &str| {
        let bare = results.time(group, baseline, "")?;
        let ours = results.time(group, "library", "")?;
        Some(vec![
            what.to_owned(),
            baseline.to_owned(),
            time(bare),
            time(ours),
            ratio(ours, bare),
        ])
    };
    let rows: Vec<_> = [
        row("`Device::open` and its end", "open", "open(2), close(2)"),
        row("`Device::info`", "info", "two commands, bare reads"),
    ]
    .into_iter()
    .flatten()
    .collect();
    filled(&["what", "baseline", "time", "library", "ratio"], &rows)
}

/// Rows of a function by its parameter, and how flat it is.
fn flat(results: &Results, group: &str, functions: &[&str]) -> Vec<Vec<String>> {
    let row = |function: &&str| {
        let line = results.line(group, function);
        let ((few, first), (most, last)) = (line.first()?, line.last()?);
        Some(vec![
            (*function).to_owned(),
            format!("{} beside {}", time(*first), count(*few)),
            format!("{} beside {}", time(*last), count(*most)),
            ratio(*last, *first),
        ])
    };
    functions.iter().filter_map(row).collect()
}

fn resources(results: &Results) -> String {
    let rows = flat(results, "resources", &results.functions("resources"));
    filled(&["made and freed", "fewest", "most", "ratio"], &rows)
}

fn mock(results: &Results) -> String {
    let line = results.line("mock", "service");
    let first = line.first().map_or(1.0, |(_, first)| *first);
    let row =
        |(services, spent): &(f64, f64)| vec![count(*services), time(*spent), ratio(*spent, first)];
    let rows: Vec<_> = line.iter().map(row).collect();
    let head = [
        "services beside it",
        "allocated and destroyed",
        "ratio to the first",
    ];
    filled(&head, &rows)
}

fn engine(results: &Results) -> String {
    let head = ["bytes", "copy", "put", "ratio", "engine's share"];
    filled(&head, &pairs(results, "engine", "copy", "put"))
}

fn matching(results: &Results) -> String {
    let exact = results.line("engine_match", "message");
    let wildcards = results.line("engine_match", "wildcards");
    let first = wildcards.first().map_or(0.0, |(_, first)| *first);
    let row = |((entries, exact), (_, wildcards)): (&(f64, f64), &(f64, f64))| {
        let each = (wildcards - first).max(0.0) / (entries - 2.0).max(1.0);
        vec![count(*entries), time(*exact), time(*wildcards), time(each)]
    };
    let rows: Vec<_> = exact.iter().zip(&wildcards).map(row).collect();
    let head = [
        "entries",
        "exact",
        "with wildcards",
        "each entry that is walked",
    ];
    filled(&head, &rows)
}

/// Half the way there and back.
fn messages(results: &Results) -> String {
    let group = "round trip";
    let half = |function, bytes: f64| {
        let whole = results.time(group, function, &format!("{bytes:.0}"))?;
        Some(whole / 2.0)
    };
    let row = |(bytes, whole): (f64, f64)| {
        let written = half("process_vm_writev", bytes)?;
        let lines = half("cache lines", bytes).map_or_else(String::new, time);
        let ours = whole / 2.0;
        let ratio = ratio(ours, written);
        Some(vec![count(bytes), lines, time(written), time(ours), ratio])
    };
    let rows: Vec<_> = results
        .line(group, "mock")
        .into_iter()
        .filter_map(row)
        .collect();
    let head = [
        "bytes",
        "cache lines",
        "`process_vm_writev`",
        "mock",
        "ratio",
    ];
    filled(&head, &rows)
}

fn stream(results: &Results) -> String {
    let of = |function| results.time("stream", function, "");
    let rows: Vec<_> = of("process_vm_writev")
        .zip(of("mock"))
        .map(|(written, ours)| vec![time(written), time(ours), ratio(ours, written)])
        .into_iter()
        .collect();
    filled(&["`process_vm_writev`", "mock", "ratio"], &rows)
}

fn processes(results: &Results) -> String {
    let row = |(processes, each): &(f64, f64)| vec![count(*processes), count(1e9 / each)];
    let line = results.line("processes", "message");
    let rows: Vec<_> = line.iter().map(row).collect();
    filled(&["processes", "messages a second, together"], &rows)
}

fn threads(results: &Results) -> String {
    let alone = results.time("threads", "1 thread, 1 NIC", "");
    let row = |(name, threads): (&str, f64)| {
        let cycle = results.time("threads", name, "")?;
        let throughput = threads * alone? / cycle;
        Some(vec![
            name.to_owned(),
            time(cycle),
            format!("{throughput:.2}"),
        ])
    };
    let rows: Vec<_> = [
        ("1 thread, 1 NIC", 1.0),
        ("2 threads, 2 NICs", 2.0),
        ("2 threads, 1 NIC", 2.0),
    ]
    .into_iter()
    .filter_map(row)
    .collect();
    filled(
        &["", "a cycle in each thread", "throughput to one thread's"],
        &rows,
    )
}

fn vni_pool(results: &Results) -> String {
    let mut rows = Vec::new();
    for (function, what) in [("one", "one VNI"), ("four", "four VNIs")] {
        for (used, spent) in results.line("vni_pool", function) {
            let name = format!("{what}, {} of 64,000 in use", count(used));
            rows.push(vec![name, time(spent)]);
        }
    }
    for (size, spent) in results.line("vni_pool", "no block") {
        let name = format!("no block of {} is free, half in use", count(size));
        rows.push(vec![name, time(spent)]);
    }
    for (events, spent) in results.line("vni_pool log", "replay") {
        let name = format!("replay of {} events, an event", count(events));
        rows.push(vec![name, time(spent / events)]);
    }
    filled(&["what", "time"], &rows)
}

fn replay(results: &Results) -> String {
    let bare = results.time("replay", "dispatch", "");
    let ours = results.time("replay", "scenario", "");
    let rows: Vec<_> = bare
        .zip(ours)
        .map(|(bare, ours)| vec![time(bare), time(ours), ratio(ours, bare)])
        .into_iter()
        .collect();
    filled(&["dispatch alone", "replay", "ratio"], &rows)
}

fn job(results: &Results) -> String {
    let of = |function| results.line("job", function);
    let (allocate, release) = (of("allocate"), of("release"));
    let first = |line: &[(f64, f64)]| line.first().map_or(1.0, |(_, first)| *first);
    let (alone, alone_release) = (first(&allocate), first(&release));
    let rows: Vec<_> = allocate
        .iter()
        .zip(&release)
        .map(|((nics, allocate), (_, release))| {
            vec![
                count(*nics),
                time(*allocate),
                ratio(*allocate, alone),
                time(*release),
                ratio(*release, alone_release),
                count(*nics),
            ]
        })
        .collect();
    let head = [
        "NICs",
        "allocate",
        "ratio",
        "release",
        "ratio",
        "ratio one after the other",
    ];
    filled(&head, &rows)
}

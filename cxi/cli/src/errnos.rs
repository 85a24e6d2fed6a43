//! What an errno of the driver means, and which command shows more, for `cxi explain ENOSPC`.

use cxi_ioctl::Errno;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output::{Report, joined, wrapped};

/// An errno of the driver or the device node, what it means, and commands that show or end the cause.
type Meaning = (Errno, &'static str, &'static [&'static str]);

const MEANINGS: [Meaning; 11] = [
    (
        Errno::EPERM,
        "Not permitted. Changing services requires CAP_SYS_ADMIN in the initial user namespace; to use one, \
         the caller must be one of its members. A virtual function cannot change services.",
        &["cxi explain open ID", "cxi service show ID"],
    ),
    (
        Errno::ENOENT,
        "No enabled service has the VNI, or there is no such device node.",
        &["cxi service list", "cxi devices"],
    ),
    (
        Errno::EIO,
        "The NIC was removed or is being reset. What it had is gone: open it again once it is back.",
        &["cxi devices -v"],
    ),
    (
        Errno::EAGAIN,
        "Another command held the lock the whole time. Trying again may help.",
        &["cxi job list"],
    ),
    (
        Errno::EACCES,
        "The device node may not be opened: check the owner, the mode and the group of /dev/cxiN, and the \
         device rules of the container.",
        &["cxi devices", "cxi cdi"],
    ),
    (
        Errno::EBUSY,
        "Still in use: processes have LNIs of the service. To set a network namespace or exclusive \
         communication profiles, the service must be disabled.",
        &[
            "cxi explain busy ID",
            "cxi service destroy ID --wait 10",
            "cxi job epilog --job JOB --retry-busy 1m",
        ],
    ),
    (
        Errno::EEXIST,
        "Taken: another service has the VNI and does not share it, or another process has the PID.",
        &["cxi service list", "cxi audit"],
    ),
    (Errno::ENODEV, "No such NIC: its driver is not loaded, or it was removed.", &["cxi devices"]),
    (
        Errno::EINVAL,
        "The driver refuses a value: there is no such service, the value is out of range, or this release of \
         the driver does not know the command.",
        &["cxi service list", "cxi devices -v"],
    ),
    (
        Errno::ENOSPC,
        "Not enough of a resource is left: on the NIC for what the service reserves, or in the service for \
         what a process allocates. TLE pools (three for services) and RGIDs can also run out.",
        &[
            "cxi devices",
            "cxi service usage",
            "cxi job plan --cores N",
            "cxi explain create --vni VNI --limit txqs=16:64",
        ],
    ),
    (
        Errno::EKEYREVOKED,
        "The service is disabled.",
        &["cxi service show ID", "cxi service enable ID"],
    ),
];

/// Explains the errnos that a text names.
pub(crate) fn explain(text: &[String]) -> Result<Report, Failure> {
    let text = text.join(" ");
    let words: Vec<&str> = text.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let is_named = |(errno, ..): &&Meaning| {
        let name = errno.to_string();
        words.iter().any(|word| word.eq_ignore_ascii_case(&name))
    };
    let named: Vec<&Meaning> = MEANINGS.iter().filter(is_named).collect();
    if named.is_empty() {
        let all = joined(MEANINGS.iter().map(|(errno, ..)| errno), ", ");
        let message = format!("'{text}' names no errno of the driver: expected one of {all}");
        return Err(Failure::new(Exit::NotFound, message)
            .hint("cxi explain create, open and busy explain what a NIC refuses."));
    }
    let paragraphs = named.iter().map(|(errno, meaning, commands)| {
        format!("{errno} ({}): {meaning}\n    {}\n", errno.raw(), commands.join("\n    "))
    });
    let json: Vec<_> = named
        .iter()
        .map(|(errno, meaning, commands)| {
            json!({
                "name": errno.to_string(),
                "number": errno.raw(),
                "meaning": meaning,
                "commands": commands,
            })
        })
        .collect();
    let text = wrapped(&joined(paragraphs, "\n"));
    Ok(Report::of(text, "errnos", &json))
}

//! Any text where a person, a file or the environment gives one: what is read is printed the same.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use cxi::job::na::{AuthKey, NaAddress};
use cxi::job::{IdSet, SlingshotEnv};
use cxi::{DeviceId, PciAddress, Resource, ServiceId, TrafficClass, TrafficClasses, Vni, VniRange};
use cxi_ioctl::{Errno, Recording, Release};

/// What is read must be printed as something that is read as the same.
fn round<T>(text: &str)
where
    T: FromStr + Display + PartialEq + Debug,
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>();
            assert!(
                again.is_ok_and(|again| again == value),
                "{text:?} printed as {printed:?}"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a text"),
    }
}

/// One byte says as what the rest is read.
///
/// # Panics
///
/// When something is not read as it was printed.
pub fn run(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    match choice % 14 {
        0 => round::<Vni>(&text),
        1 => round::<VniRange>(&text),
        2 => round::<DeviceId>(&text),
        3 => round::<ServiceId>(&text),
        4 => round::<TrafficClass>(&text),
        5 => drop(text.parse::<TrafficClasses>()),
        6 => round::<Resource>(&text),
        7 => round::<PciAddress>(&text),
        8 => round::<IdSet>(&text),
        9 => round::<NaAddress>(&text),
        10 => round::<AuthKey>(&text),
        11 => {
            let mut lines = text.split('\n');
            let variables = [
                ("SLINGSHOT_VNIS", lines.next().unwrap_or_default()),
                ("SLINGSHOT_DEVICES", lines.next().unwrap_or_default()),
                ("SLINGSHOT_SVC_IDS", lines.next().unwrap_or_default()),
                ("SLINGSHOT_TCS", lines.next().unwrap_or_default()),
            ];
            environment(&variables);
        }
        12 => round::<Release>(&text),
        _ => {
            drop(text.parse::<Errno>());
            drop(text.parse::<Recording>());
        }
    }
}

fn environment(variables: &[(&str, &str)]) {
    let read = SlingshotEnv::parse(|name| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).into())
    });
    match read {
        Ok(environment) => drop(format!("{environment:?}")),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has a text"),
    }
}

/// Texts that are right.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    [
        (0, "1024"),
        (1, "1024-1039"),
        (2, "cxi12"),
        (3, "7"),
        (4, "BEST_EFFORT"),
        (5, "BEST_EFFORT,LOW_LATENCY"),
        (6, "TXQs"),
        (7, "0000:c1:00.0"),
        (8, "1024-2047,4096,5000-5001"),
        (9, "ofi+cxi://cxi0:5"),
        (10, "5:1024:1"),
        (11, "4034,5\ncxi0,cxi1\n11,12\n0x0a"),
        (12, "shs-14.0.1"),
        (13, "EINVAL"),
    ]
    .into_iter()
    .map(|(choice, text)| {
        let mut seed = vec![choice];
        seed.extend_from_slice(text.as_bytes());
        seed
    })
    .collect()
}

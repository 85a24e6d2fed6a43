//! A whole life on served nodes: one library, six drivers.

use cxi_ioctl::DriverRelease;

use crate::compiled::served;
use crate::need_bench;
use cxi_tests::node::{possible, printed, windows};

/// Calls that every driver refuses: services that are not there, objects in use, an event queue
/// that has no room for a resize, and the namespace of a service that has none.
const REFUSED: [(&str, &str); 7] = [
    ("cxil_get_svc_lpr", "-EINVAL"),
    ("cxil_svc_get_netns", "-EINVAL"),
    ("cxil_alloc_lni", "-EINVAL"),
    ("cxil_destroy_svc", "-EBUSY"),
    ("cxil_evtq_resize", "-EINVAL"),
    ("cxil_destroy_domain", "-EBUSY"),
    ("cxil_destroy_lni", "-EBUSY"),
];

/// Functions that came with 13.1.
const SINCE_13_1: [&str; 2] = ["cxil_svc_enable", "cxil_svc_get_exclusive_cp"];

/// Number of steps of the program whose result depends on nothing but the library.
const STEPS: usize = 48;

#[test]
fn one_library_lives_on_six_drivers() {
    let bench = need_bench!();
    if !(possible() && windows()) {
        return;
    }
    let driver = bench.compile("driver.c", &["-ldl"]).display().to_string();
    let library = bench.library.shared().display().to_string();
    for release in DriverRelease::ALL {
        let run = ["--release", release.name(), "--", &driver, &library, "live"];
        let text = printed(&served(&run, &[]));
        let mut steps = 0;
        for (function, result) in text.lines().filter_map(|line| line.split_once(' ')) {
            let result = result.trim();
            steps += 1;
            let refused = REFUSED.contains(&(function, result));
            // A service that is not there is refused too.
            let newer = SINCE_13_1.contains(&function) && result == "-EINVAL";
            assert!(
                matches!(result, "0" | "(positive)") || refused || newer,
                "{release}: {function} {result}\n{text}"
            );
        }
        assert!(text.ends_with("\nend"), "{release}: {text}");
        assert_eq!(steps, STEPS, "{release}: {text}");
        let enabled = text.contains("cxil_svc_enable                    0");
        assert_eq!(enabled, release >= DriverRelease::Shs13_1);
    }
}

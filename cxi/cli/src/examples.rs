//! Examples of each command, for its manual page.

/// A command and its examples: the purpose of each, and the command line.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

#[rustfmt::skip]
const EXAMPLES: &[Examples] = &[
    ("devices", &[
        ("What the NICs have left", "cxi devices"),
        ("A NIC with its card, link and driver", "cxi devices show cxi0"),
        ("Which commands this sends to the driver", "cxi devices --trace"),
        ("The rate of codewords, measured for ten seconds", "cxi devices --rates=10s"),
    ]),
    ("service list", &[
        ("Those of one user", "cxi service list --uid root"),
        ("With all columns, whatever the width of the terminal", "cxi service list -o wide"),
        ("For a spreadsheet", "cxi service list -o csv"),
        ("Repeated every five seconds", "cxi service list --watch=5s"),
    ]),
    ("service show", &[
        ("A service as a specification that can be changed and created again", "cxi service show 2 -d cxi0 --yaml"),
    ]),
    ("service create", &[
        ("For a user, with limits", "cxi service create --uid root --vni 1024 --limit txqs=16:64,tgqs=8:64"),
        ("From a file", "cxi service create --from service.yaml"),
    ]),
    ("service update", &[("Let four LNIs share an RGID", "cxi service update 2 --lnis-per-rgid 4")]),
    ("service destroy", &[("Wait for processes to end", "cxi service destroy 2 3 --wait 10s")]),
    ("service enable", &[("On one NIC", "cxi service enable 2 -d cxi0")]),
    ("service disable", &[("On all NICs that have it", "cxi service disable 2")]),
    ("service usage", &[
        ("Of one service", "cxi service usage 2"),
        ("A picture of who has what", "cxi service usage --svg"),
    ]),
    ("job plan", &[("How many jobs of 16 cores fit", "cxi job plan --cores 16")]),
    ("job prolog", &[("In a prolog", "cxi job prolog --job 17 --cores 16")]),
    ("job epilog", &[("In an epilog, waiting for processes to end", "cxi job epilog --job 17 --retry-busy 1m")]),
    ("job clean", &[("What would be destroyed", "cxi job clean --dry-run")]),
    ("job env", &[("Set the environment of a shell", "eval \"$(cxi job env --job 17)\"")]),
    ("job reserve", &[("On the controller", "cxi job reserve 17 --uid root --nodes n[1-4]")]),
    ("job release", &[("When the job has ended", "cxi job release 17")]),
    ("job sweep", &[("From a timer", "cxi job sweep -- squeue --noheader --format=%A")]),
    ("job confirm", &[("For a node that was reinstalled", "cxi job confirm 17 --node n3")]),
    ("job show", &[("One job", "cxi job show 17")]),
    ("job list", &[("Jobs that are waiting for nodes", "cxi job list --controller")]),
    ("job run", &[("A program on two cores", "cxi job run --cores 2 -- ./program")]),
    ("explain", &[
        ("Why a program of yours has no network", "cxi explain"),
        ("What a message means", "cxi explain Failed to allocate LNI, errno 28"),
        ("All messages in a file", "cxi explain slurm-17.out"),
        ("Whether ranks on two nodes can talk", "cxi explain --env n1.env --env n2.env"),
    ]),
    ("explain env", &[("What each VNI is for", "cxi explain env")]),
    ("explain create", &[("Which services are in the way", "cxi explain create --vni 1024 --limit tles=8:8")]),
    ("explain open", &[("As the user who cannot open it", "cxi explain open 2")]),
    ("explain job", &[("Why it still has VNIs", "cxi explain job 17")]),
    ("explain busy", &[("Before destroying it", "cxi explain busy 2")]),
    ("audit", &[("With the VNIs of the scheduler", "cxi audit --pool-vnis 1024-65535")]),
    ("selftest", &[
        ("Which responses the NICs give, without changing anything", "cxi selftest"),
        ("Also use each NIC, and write a report to send", "cxi selftest --write --report selftest.json"),
    ]),
    ("vni configure", &[("Make a pool", "cxi vni configure 1024-65535 --rest 30s")]),
    ("vni reserve", &[("Two VNIs", "cxi vni reserve 17 --count 2")]),
    ("vni cancel", &[("The job did not start", "cxi vni cancel 17")]),
    ("vni release", &[("The job has ended", "cxi vni release 17 --nodes n1,n2")]),
    ("vni confirm", &[("A node's epilog is done", "cxi vni confirm 17 --node n1")]),
    ("vni show", &[("One job", "cxi vni show 17")]),
    ("vni lead", &[("When controllers fail over", "cxi vni lead")]),
    ("vni reconcile", &[("For this machine", "cxi vni reconcile")]),
    ("collectives reserve", &[("Set the environment of a shell", "eval \"$(cxi collectives reserve 17 --limit 4)\"")]),
    ("collectives step-end", &[("With the session token from the environment", "cxi collectives step-end 0")]),
    ("collectives release", &[("The job has ended", "cxi collectives release 17")]),
    ("collectives sweep", &[("After a crash", "cxi collectives sweep --live-from jobs")]),
    ("collectives preflight", &[("In the environment of a step", "cxi collectives preflight")]),
    ("fabric check", &[("On every node of a job of Slurm", "srun --ntasks-per-node=1 cxi fabric check --directory ~/check-1 --nodes $SLURM_JOB_NODELIST")]),
    ("fabric show", &[("A picture", "cxi fabric show ~/check-1 --svg")]),
    ("metrics", &[("For node_exporter", "cxi metrics --output /var/lib/node_exporter/cxi.prom")]),
    ("top", &[("Once, for a script", "cxi top --once")]),
    ("cdi", &[("For all container runtimes of the machine", "cxi cdi --output")]),
    ("config check", &[("Check another file", "cxi config check --config ./cxi.toml")]),
    ("integration install", &[("Into a directory for inspection", "cxi integration install slurm --prefix ./slurm")]),
    ("integration enable", &[("What it would do on a node", "cxi integration enable slurm --role node")]),
    ("integration disable", &[("What it would remove", "cxi integration disable slurm")]),
    ("integration status", &[("What was edited", "cxi integration status slurm")]),
    ("completions", &[("For this shell", "source <(cxi completions bash)")]),
    ("man", &[("For this user", "cxi man ~/.local/share/man/man1")]),
];

/// The examples of a command, such as `service list`; of a group such as `service`, or of all commands
/// for an empty name, one example of each command in it.
pub(crate) fn of(command: &str) -> Vec<(&'static str, &'static str)> {
    if let Some((_, examples)) = EXAMPLES.iter().find(|(name, _)| *name == command) {
        return examples.to_vec();
    }
    let mut within: Vec<_> = EXAMPLES
        .iter()
        .filter_map(|(name, examples)| {
            let below = name.strip_prefix(command)?.trim_start();
            Some((below.split(' ').next()?, *examples.first()?))
        })
        .collect();
    within.dedup_by_key(|(child, _)| *child);
    within.into_iter().map(|(_, example)| example).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::Cli;
    use crate::deferred;

    fn commands(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        all.push(path.trim_start().to_owned());
        let below = command.get_subcommands();
        below
            .filter(|below| !below.is_hide_set())
            .for_each(|below| commands(below, &format!("{path} {}", below.get_name()), all));
    }

    #[test]
    fn each_command_has_examples_that_are_command_lines_of_it() {
        let mut all = Vec::new();
        commands(&deferred::whole::<Cli>(), "", &mut all);
        assert!(all.len() > 40, "{all:?}");
        for command in &all {
            assert!(!of(command).is_empty(), "{command}");
        }
        assert_eq!(of("config")[0].1, "cxi config check --config ./cxi.toml");
        assert_eq!(of("service").len(), 8);
        for (command, examples) in EXAMPLES {
            for (_, line) in *examples {
                let own = line.split_once("cxi ").map(|(_, own)| own.trim_end_matches([')', '"']));
                let own = own.filter(|own| own.starts_with(command)).expect(line);
                assert!(is_parsed_at_once(own), "{line}");
            }
        }
    }

    /// Returns whether the named subcommands are enough to parse the line.
    fn is_parsed_at_once(line: &str) -> bool {
        let words = std::iter::once("cxi").chain(line.split_whitespace());
        let words: Vec<OsString> = words.map(Into::into).collect();
        deferred::named::<Cli>(&words).is_some()
    }

    #[test]
    fn what_is_no_command_line_needs_all_commands() {
        for line in
            ["", "service", "serivce list", "service list 2", "help", "devices --help", "-V job"]
        {
            assert!(!is_parsed_at_once(line), "{line}");
        }
    }
}

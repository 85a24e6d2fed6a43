//! Help for a person; a runtime never asks.

/// The answer to `--help`.
const HELP: &str = "\
Gives pods services of Slingshot NICs: a plugin of the Container Network Interface.

A container runtime calls it with CNI_COMMAND (ADD, DEL, CHECK, GC, STATUS or VERSION) and other
variables in its environment, and the configuration of the network on standard input. The result, or
the error, is JSON on standard output.

Usage: CNI_COMMAND=VERSION cxi-cni < network.json

Example of a configuration, which belongs in a list of plugins:
  {\"type\": \"cxi-cni\", \"cxi\": {\"vnis\": {\"source\": \"static\", \"vnis\": [1024]}, \"cores\": 16}}

Settings (keys of \"cxi\"):
  vnis              where the VNIs come from: \"source\" is static, args, file or exec
  nics              the NICs, such as [\"cxi0\"] [default: all]
  trafficClasses    [default: [\"LOW_LATENCY\", \"BEST_EFFORT\"]]
  cores             size of a pod, from which its limits follow [default: no limits]
  tles              with cores: also reserve TLEs [default: false]
  allowDefaultVnis  whether a pod may have VNIs 1 and 10 [default: false]
  retryBusySeconds  how long to try to destroy services that are in use [default: 10]
  stateDir          directory of records [default: /run/cxi-node/cni]

Options:
  -h, --help     Print help
  -V, --version  Print version

cxi-cni(8) has more, and so has containers.md in the documentation.";

/// The answer to arguments, with whether they are right; `None` where there are none, as from a runtime.
pub(crate) fn answer(arguments: &[String]) -> Option<Result<String, String>> {
    let asked = arguments.first()?;
    Some(match asked.as_str() {
        "-h" | "--help" => Ok(HELP.to_owned()),
        "-V" | "--version" => Ok(format!("cxi-cni {}", env!("CARGO_PKG_VERSION"))),
        other => Err(format!(
            "error: unexpected argument '{other}': a container runtime calls this without arguments; \
             --help says how"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::answer;

    fn asked(argument: &str) -> Option<Result<String, String>> {
        answer(&[argument.to_owned()])
    }

    #[test]
    fn a_person_gets_help_and_a_runtime_its_answer() {
        assert_eq!(answer(&[]), None);
        let help = asked("--help").unwrap().unwrap();
        for key in ["vnis", "retryBusySeconds", "stateDir", "CNI_COMMAND=VERSION cxi-cni"] {
            assert!(help.contains(key), "{key}");
        }
        assert_eq!(asked("-h").unwrap().unwrap(), help);
        assert!(asked("-V").unwrap().unwrap().starts_with("cxi-cni 0"));
        assert!(asked("add").unwrap().unwrap_err().contains("unexpected argument 'add'"));
    }
}

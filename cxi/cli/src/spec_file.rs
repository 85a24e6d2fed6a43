//! Specifications of services in files: YAML, and JSON, which is also YAML.

use std::path::Path;

use cxi::ServiceSpec;
use cxi_site::excerpt;
use serde_saphyr::{DuplicateKeyPolicy, Error as YamlError};

use crate::exit::Failure;
use crate::files;

/// Far more than a specification needs; anything longer, such as `/dev/zero`, is an error.
const LONGEST: u64 = 1 << 20;

/// Reads a file, or standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<ServiceSpec, Failure> {
    let input = files::read(path, LONGEST)?;
    parse(&input.name, &input.text)
}

pub(crate) fn parse(name: &str, text: &str) -> Result<ServiceSpec, Failure> {
    let read = |duplicate_keys| {
        let options = serde_saphyr::options! {
            with_snippet: false,
            duplicate_keys: duplicate_keys,
        };
        serde_saphyr::from_str_with_options(text, options)
    };
    let spec = match read(DuplicateKeyPolicy::Error) {
        // HPE's templates repeat these, for lists.
        Err(YamlError::DuplicateMappingKey { key: Some(key), .. })
            if key == "vni" || key == "tc" =>
        {
            read(DuplicateKeyPolicy::PassThrough)
        }
        spec => spec,
    };
    spec.map_err(|error| {
        let place = error.location().map(|at| excerpt(text, at.line(), at.column()));
        Failure::bad_input(at(name, &error)).excerpt(place.unwrap_or_default())
    })
}

fn at(name: &str, error: &YamlError) -> String {
    let Some(location) = error.location() else { return format!("{name}: {error}") };
    let (line, column) = (location.line(), location.column());
    let what = match error {
        YamlError::Unexpected { expected, .. } => match *expected {
            "sequence start" => "expected a list".to_owned(),
            "mapping start" => "expected keys with values".to_owned(),
            other => format!("expected {other}"),
        },
        YamlError::SerdeInvalidType { expected, .. } => format!("expected {expected}"),
        YamlError::Eof { .. } => {
            "the specification ends here: expected keys such as members, vnis, tcs and limits"
                .to_owned()
        }
        YamlError::InvalidScalar { ty, .. } => match *ty {
            "u8" => "expected a number from 0 to 255".to_owned(),
            "u16" => "expected a number from 0 to 65535".to_owned(),
            "u32" => "expected a number from 0 to 4294967295".to_owned(),
            "u64" => "expected a whole number, not negative".to_owned(),
            other => format!("expected {other}"),
        },
        YamlError::MultipleDocuments { .. } => {
            "a second document starts here: expected one specification".to_owned()
        }
        YamlError::DuplicateMappingKey { key, .. } => match key {
            Some(key) => format!("'{key}' occurs a second time: expected each key once"),
            None => "a key occurs a second time: expected each key once".to_owned(),
        },
        other => {
            let text = other.to_string();
            let place = format!(" at line {line}, column {column}");
            text.strip_suffix(&place).unwrap_or(&text).to_owned()
        }
    };
    format!("{name}: line {line}, column {column}: {what}")
}

/// A file that [`read`] understands.
pub(crate) fn write(spec: &ServiceSpec) -> Result<String, Failure> {
    serde_saphyr::to_string(spec)
        .map_err(|error| Failure::failed(format!("cannot write YAML: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cxi::{Limit, Resource, VniAccess};

    fn refused(text: &str) -> String {
        parse("job.yaml", text).unwrap_err().message()
    }

    #[test]
    fn a_template_is_read_and_written() {
        let text = "\
enable: 1
is_system_svc: false
restricted_members: true
members:
  - {type: uid, id: 1000}
  - {type: gid, id: 100}
restricted_vnis: 1
vnis: [1024, 1025]
restricted_tcs: true
tcs: [BEST_EFFORT, LOW_LATENCY]
resource_limits: 1
limits:
  - {name: TXQs, res: 16, max: 64}
  - {name: ACs, max: 2}
";
        let spec = parse("job.yaml", text).unwrap();
        let limits = spec.limits().unwrap();
        assert_eq!(limits[Resource::Txqs], Limit::new(16, 64).unwrap());
        assert_eq!(limits[Resource::Acs], Limit::at_most(2));
        assert_eq!(limits[Resource::Les], Limit::NONE);
        assert_eq!(spec.vnis().to_string(), "1024,1025");
        assert_eq!(spec.members().unwrap().to_string(), "uid 1000, gid 100");
        assert_eq!(parse("again.yaml", &write(&spec).unwrap()).unwrap(), spec);
    }

    /// HPE's templates repeat a key where ours have a list, and ignore what is switched off.
    #[test]
    fn templates_of_hpe_are_read() {
        let spec = |text: &str| {
            let spec = parse("job.yaml", text).unwrap();
            write(&spec).unwrap()
        };
        let limited = "resource_limits: 1\nlimits:\n  - name: TLEs\n    max: 9\n    res: 9\n";
        let listed = format!(
            "{limited}restricted_members: 1\nrestricted_tcs: 1\nexclusive_cp: 1\n\
             vnis:\n  vni: 20\n  vni: 21\n\
             members:\n  - type: uid\n    id: 7\n  - type: gid\n    id: 8\n"
        );
        let ours = format!(
            "{limited}members: [{{type: uid, id: 7}}, {{type: gid, id: 8}}]\nvnis: [20, 21]\n\
             tcs: [LOW_LATENCY, BEST_EFFORT]\n"
        );
        // The classes under their own key, and where the template that HPE ships has them.
        let below = format!("{listed}tcs:\n  tc: LOW_LATENCY\n  tc: BEST_EFFORT\n");
        let among = format!("{listed}    tc: LOW_LATENCY\n    tc: BEST_EFFORT\n");
        assert_eq!(spec(&below), spec(&ours));
        assert_eq!(spec(&among), spec(&ours));
        assert_eq!(
            spec(
                "---\nvnis:\n  vni_min: 64\n  vni_max: 127\nexclusive_cp: 1\nrestricted_members: 1\n\
                  members:\n  - type: netns\n    id: 4026532000\n"
            ),
            spec(
                "vni_range: {first: 64, last: 127}\nexclusive_cp: true\n\
                  members: [{type: netns, id: 4026532000}]"
            )
        );
        let off = "resource_limits: 0\nrestricted_members: 0\nrestricted_tcs: 0\n\
                   vnis:\n  vni: 20\nmembers:\n  - type: uid\n    id: 7\n\
                   tcs:\n  tc: BULK_DATA\nlimits:\n  - name: ACs\n    max: 1\n";
        assert_eq!(spec(off), spec("vnis: [20]"));
    }

    #[test]
    fn json_is_read() {
        let json = "{\n\t\"vni_range\": {\"first\": 1024, \"last\": 1039},\n\t\"limits\": \
                    [{\"name\": \"TXQs\", \"max\": 5, \"res\": 2}]\n}\n";
        let spec = parse("job.json", json).unwrap();
        assert!(matches!(spec.vnis(), VniAccess::Range(range) if range.size() == 16));
        assert_eq!(spec.limits().unwrap()[Resource::Txqs], Limit::new(2, 5).unwrap());
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn refusals_say_where_and_what() {
        for (text, message) in [
            ("vnis: [1,\n 65536]\n", "line 2, column 2: invalid VNI 65536: expected 1 to 65535"),
            (
                "vnis: [1, 2, 3, 4, 5]",
                "line 1, column 7: 5 VNIs: a service can list at most 4; more need a VNI range",
            ),
            (
                "enable: 1\nvnis: x",
                "line 2, column 1: expected a list of VNIs, or a mapping of vni",
            ),
            (
                "vnis: [1]\ntcs: 5",
                "line 2, column 1: expected a list of traffic classes, or a mapping of tc",
            ),
            ("limits: x", "line 1, column 9: expected a list"),
            ("- 1", "line 1, column 1: expected keys with values"),
            (
                "members:\n - {type: uid, id: 1}\n - {type: uid, id: 2}\n - {type: uid, id: 3}",
                "line 2, column 2: 3 members: a service can name at most 2",
            ),
            (
                "vni_range: {first: 3, last: 9}",
                "line 1, column 12: VNI range of 7 from 3: expected a size that is a power of \
                 two, such as 4 or 8",
            ),
            (
                "vnis: [1]\nlimits:\n  - {name: TXQs, max: 70000}",
                "line 3, column 23: expected a number from 0 to 65535",
            ),
            (
                "vnis: [1]\nvnis: [2]",
                "line 2, column 1: 'vnis' occurs a second time: expected each key once",
            ),
            (
                "vnis:\n  vni: 1\n  vni_min: 64\n",
                "line 2, column 3: expected vni for each VNI, or both vni_min and vni_max",
            ),
            (
                "vnis:\n  vni_min: 64\n  vni_max: 66\n",
                "line 2, column 3: VNI range of 3 from 64: expected a size that is a power of \
                 two, such as 2 or 4",
            ),
            (
                "vnis: [1]\nexclusive_cp: 1",
                "exclusive CPs are requested, which only a service with a VNI range has",
            ),
            (
                "vnis: [1]\nmembers:\n",
                "line 2, column 8: the key has no value: give it one, or leave the \
                 key out",
            ),
            ("vnis: [1]\nmembers: [{type: uid}]\n", "line 2, column 12: missing field `id`"),
            (
                "vnis: [1]\nmembers: [{type: uid, id: 4294967296}]\n",
                "line 2, column 27: expected a number from 0 to 4294967295",
            ),
            (
                "vnis: [1]\nmembers: [{type: uid, id: 1, id: 2}]\n",
                "line 2, column 30: 'id' occurs a second time: expected each key once",
            ),
            (
                "vnis:\n  vni: 1\ntcs:\n  tc: FAST\n",
                "line 4, column 7: invalid traffic class 'FAST': expected dedicated-access, \
                 low-latency, bulk-data, best-effort or eth",
            ),
            (
                "vnis: [1]\n---\nvnis: [2]",
                "line 3, column 1: a second document starts here: expected one specification",
            ),
            (
                "vnis: [1]\nmembers:\n  - {type: uid, id: 4294967296}",
                "line 3, column 21: expected a number from 0 to 4294967295",
            ),
            ("vnis: [1.5]", "line 1, column 8: expected a whole number, not negative"),
            ("tcs: [BEST_EFFORT", "line 1, column 6: unclosed bracket '['"),
        ] {
            assert_eq!(refused(text), format!("job.yaml: {message}"), "{text}");
        }
        let unknown = refused("vni: [1]");
        assert!(
            unknown.starts_with("job.yaml: line 1, column 1: unknown field `vni`, expected one of"),
            "{unknown}"
        );
        for (empty, line) in [("", 1), ("# nothing\n", 2)] {
            assert_eq!(
                refused(empty),
                format!(
                    "job.yaml: line {line}, column 1: the specification ends here: expected keys \
                     such as members, vnis, tcs and limits"
                )
            );
        }
        let nothing = refused("{}");
        assert!(nothing.contains("no VNIs: name VNIs or a range"), "{nothing}");
    }

    /// As HPE's newest template has it.
    #[test]
    fn a_parent_service_is_read_as_hpe_means_it() {
        let text = "\
resource_limits: 1
restricted_tcs: 1
is_parent: 1
restricted_members: 0
exclusive_cp: 0
limits:
  - name: ACs
    res: 16
    max: 16
  - name: TLEs
    res: 128
    max: 128
vnis:
  vni: 2
  vni: 3
tcs:
  tc: LOW_LATENCY
";
        let spec = parse("parent.yaml", text).unwrap();
        assert!(spec.is_parent() && spec.members().is_none());
        assert_eq!(spec.vnis().to_string(), "2,3");
        assert_eq!(parse("parent.yaml", &write(&spec).unwrap()).unwrap(), spec);
        let range = "is_parent: 1\nrestricted_members: 0\nvnis:\n  vni_min: 32\n  vni_max: 63\n";
        let spec = parse("parent.yaml", range).unwrap();
        assert_eq!((spec.is_parent(), spec.vnis().to_string()), (true, "32-63".to_owned()));
        assert!(!parse("job.yaml", "is_parent: 0\nvnis: [7]\n").unwrap().is_parent());
        let limits = "is_parent: 1\nvnis: [7]\nlimits:\n  - {name: TXQs, res: 1, max: 2}\n";
        assert!(refused(limits).contains("reserves exactly its maximum"), "{}", refused(limits));
        let members = "is_parent: 1\nvnis: [7]\nmembers:\n  - {type: uid, id: 7}\n";
        assert!(refused(members).contains("a parent service cannot have"), "{}", refused(members));
    }
}

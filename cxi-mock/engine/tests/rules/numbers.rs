//! Rules have numbers, which stand at the line of code that keeps the rule and in the name of its
//! tests. The table of docs/RULES.md is made from both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Section and number.
type Rule = (u32, u32);

/// Rules of the control plane, or of what no program sees; docs/RULES.md says where they are.
const ELSEWHERE: [Rule; 4] = [(13, 8), (15, 2), (15, 3), (15, 5)];
/// Rules of a front end, whose tests are its own.
const FRONT_END: [Rule; 1] = [(2, 7)];

const BEGIN: &str = "<!-- rules -->\n";
const END: &str = "<!-- end of rules -->\n";

fn sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

/// `8.8: A get reads ...` after `// Rule `, with the comment lines that follow up to its end.
fn rules_of(text: &str) -> Vec<(Rule, String)> {
    let mut rules = Vec::new();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let Some(rule) = line.strip_prefix("// Rule ") else { continue };
        let (number, first) = rule.split_once(": ").expect("a number and a sentence");
        let (section, number) = number.split_once('.').expect("a section and a number");
        let mut sentence = first.to_owned();
        while !sentence.ends_with('.') {
            let next = lines.next().and_then(|line| line.strip_prefix("// "));
            sentence += " ";
            sentence += next.unwrap_or_else(|| panic!("{rule:?} does not end with a period"));
        }
        rules.push(((section.parse().unwrap(), number.parse().unwrap()), sentence));
    }
    rules
}

/// Numbers in the names of tests: `rules_6_2_11_6_what_it_says`.
fn rules_tested(text: &str) -> Vec<Rule> {
    let names = text.split("#[test]\nfn rule").skip(1);
    let numbers = names.map(|name| {
        let parts = name.split('_').skip(1);
        parts.map_while(|part| part.parse().ok()).collect::<Vec<_>>()
    });
    numbers
        .flat_map(|parts| parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>())
        .collect()
}

#[test]
fn the_table_of_rules_says_what_the_code_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = here.ancestors().nth(2).unwrap();
    let mut code = Vec::new();
    sources(&here.join("src"), &mut code);
    sources(&here.join("../src/data_path"), &mut code);
    let mut rules: BTreeMap<Rule, (String, String)> = BTreeMap::new();
    for (path, text) in &code {
        let name = path.file_name().unwrap().to_string_lossy();
        for (rule, sentence) in rules_of(text) {
            let before = rules.insert(rule, (sentence, name.to_string()));
            assert_eq!(before, None, "{rule:?} stands at two lines");
        }
    }
    let mut tests = Vec::new();
    sources(&here.join("tests/rules"), &mut tests);
    let mut tested: BTreeMap<Rule, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in &tests {
        let name = path.file_name().unwrap().to_string_lossy();
        for rule in rules_tested(text) {
            tested.entry(rule).or_default().insert(format!("`{name}`"));
        }
    }

    let in_code: BTreeSet<_> = rules.keys().copied().filter(|it| !FRONT_END.contains(it)).collect();
    assert_eq!(in_code, tested.keys().copied().collect(), "in the code, and tested");
    // No number is left out.
    let all: BTreeSet<_> = rules.keys().copied().chain(ELSEWHERE).collect();
    for (section, number) in &all {
        assert!(*number == 1 || all.contains(&(*section, number - 1)), "{section}.{number}");
    }

    let mut table =
        String::from("| rule | what it says | code | tests |\n| --- | --- | --- | --- |\n");
    for ((section, number), (sentence, file)) in &rules {
        let tests = tested.get(&(*section, *number));
        let tests = tests.map_or("of the front end".to_owned(), |tests| {
            tests.iter().cloned().collect::<Vec<_>>().join(", ")
        });
        table.extend(["| ", &format!("{section}.{number}"), " | "]);
        table.extend([sentence, " | `", file, "` | ", &tests, " |\n"]);
    }
    let path = repository.join("docs/RULES.md");
    let document = fs::read_to_string(&path).unwrap();
    let (head, rest) = document.split_once(BEGIN).unwrap();
    let (written, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("CXI_WRITE_RULES").is_some() {
        fs::write(&path, [head, BEGIN, "\n", &table, "\n", END, tail].concat()).unwrap();
        return;
    }
    assert!(
        written.trim() == table.trim(),
        "the table of rules is out of date: run this test with CXI_WRITE_RULES=1"
    );
}

//! What criterion found out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// One measured function, in nanoseconds for each call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// The fastest sample: what others do to a machine can only add to it.
    pub(crate) fastest: f64,
    /// The median of the samples.
    pub(crate) median: f64,
}

/// Group, function and parameter.
type Name = (String, String, String);

/// Every measured function.
#[derive(Debug, Default)]
pub(crate) struct Results {
    figures: BTreeMap<Name, Figure>,
}

impl Results {
    /// Reads a directory that criterion wrote.
    pub(crate) fn read(home: &Path) -> Result<Self, String> {
        let mut results = Self::default();
        results.collect(home)?;
        if results.figures.is_empty() {
            return Err(format!("{}: no figures in it", home.display()));
        }
        Ok(results)
    }

    fn collect(&mut self, directory: &Path) -> Result<(), String> {
        let text = |error: std::io::Error| format!("{}: {error}", directory.display());
        if directory.join("benchmark.json").exists() {
            if directory.file_name().is_some_and(|name| name == "new") {
                let (name, figure) = figure(directory)?;
                self.figures.insert(name, figure);
            }
            return Ok(());
        }
        for entry in fs::read_dir(directory).map_err(text)? {
            let path = entry.map_err(text)?.path();
            if path.is_dir() {
                self.collect(&path)?;
            }
        }
        Ok(())
    }

    /// The fastest time of a function; `parameter` is empty if it has none.
    pub(crate) fn time(&self, group: &str, function: &str, parameter: &str) -> Option<f64> {
        let name = (group.to_owned(), function.to_owned(), parameter.to_owned());
        self.figures.get(&name).map(|figure| figure.fastest)
    }

    /// The fastest times of a function by its numeric parameter, smallest first.
    pub(crate) fn line(&self, group: &str, function: &str) -> Vec<(f64, f64)> {
        let mut line: Vec<(f64, f64)> = self
            .figures
            .iter()
            .filter(|((g, f, _), _)| g == group && f == function)
            .filter_map(|((.., parameter), figure)| Some((parameter.parse().ok()?, figure.fastest)))
            .collect();
        line.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        line
    }

    /// The functions of a group, by name.
    pub(crate) fn functions(&self, group: &str) -> Vec<&str> {
        let mut functions: Vec<&str> = self
            .figures
            .keys()
            .filter(|(g, ..)| g == group)
            .map(|(_, function, _)| function.as_str())
            .collect();
        functions.dedup();
        functions
    }

    /// The parameters of a function: names in alphabetical order, then numbers, smallest first.
    pub(crate) fn parameters(&self, group: &str, function: &str) -> Vec<&str> {
        let mut parameters: Vec<&str> = self
            .figures
            .keys()
            .filter(|(g, f, _)| g == group && f == function)
            .map(|(.., parameter)| parameter.as_str())
            .collect();
        parameters.sort_by_key(|parameter| parameter.parse::<u64>().ok());
        parameters
    }

    /// By how much the median is above the fastest sample, in the middle of all functions.
    pub(crate) fn noise(&self) -> f64 {
        let figures = self.figures.values();
        let mut above: Vec<f64> = figures.map(|f| f.median / f.fastest - 1.0).collect();
        above.sort_by(f64::total_cmp);
        above.get(above.len() / 2).copied().unwrap_or_default()
    }
}

/// What one directory of criterion says.
fn figure(directory: &Path) -> Result<(Name, Figure), String> {
    let read = |name: &str| -> Result<Value, String> {
        let path = directory.join(name);
        let text = super::read(&path)?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let missing = |what| format!("{}: no {what}", directory.display());
    let benchmark = read("benchmark.json")?;
    let word = |name: &str| benchmark[name].as_str().unwrap_or_default().to_owned();
    let name = (word("group_id"), word("function_id"), word("value_str"));

    let sample = read("sample.json")?;
    let numbers = |name: &str| -> Vec<f64> {
        let list = sample[name].as_array();
        list.into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .collect()
    };
    let times = numbers("times").into_iter().zip(numbers("iters"));
    let fastest = times.map(|(time, count)| time / count).reduce(f64::min);
    let median = read("estimates.json")?["median"]["point_estimate"].as_f64();
    let figure = Figure {
        fastest: fastest.ok_or_else(|| missing("sample"))?,
        median: median.ok_or_else(|| missing("median"))?,
    };
    Ok((name, figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_in_order() {
        let figure = Figure {
            fastest: 1.0,
            median: 1.0,
        };
        let ordered = |parameters: [&str; 3]| {
            let name = |parameter: &&str| ("g".to_owned(), "f".to_owned(), (*parameter).to_owned());
            let figures = parameters.iter().map(|it| (name(it), figure)).collect();
            let results = Results { figures };
            results.parameters("g", "f").join(" ")
        };
        assert_eq!(ordered(["1048576", "64", "8"]), "8 64 1048576");
        assert_eq!(
            ordered(["SVC_GET", "LNI_FREE", "ATU_MAP"]),
            "ATU_MAP LNI_FREE SVC_GET"
        );
    }
}

//! The picture: six panels, each with its baseline.

mod panel;

use plotters::prelude::*;

use super::results::Results;
use panel::{Axis, Line, bars, lines};

const SIZE: (u32, u32) = (1080, 1180);

/// Draws it.
pub(crate) fn draw(results: &Results) -> Result<String, Box<dyn std::error::Error>> {
    let mut picture = String::new();
    {
        let root = SVGBackend::with_string(&mut picture, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let panels = root.split_evenly((3, 2));
        let [command, served, list, mock, pool, job] = panels.as_slice() else {
            return Err("six panels".into());
        };
        draw_commands(command, results)?;
        draw_served(served, results)?;
        draw_list(list, results)?;
        draw_mock(mock, results)?;
        draw_pool(pool, results)?;
        draw_job(job, results)?;
        root.present()?;
    }
    Ok(picture)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_commands(area: &Area<'_>, results: &Results) -> Drawn {
    let rows: Vec<_> = results
        .parameters("command", "library")
        .into_iter()
        .filter_map(|name| {
            let bare = results.time("command", "write(2)", name)?;
            Some((name, [bare, results.time("command", "library", name)?]))
        })
        .collect();
    let title = "A command to /dev/null, ns";
    bars(area, title, ["write(2)", "library"], &rows)
}

fn draw_served(area: &Area<'_>, results: &Results) -> Drawn {
    let rows: Vec<_> = results
        .parameters("served", "mock")
        .into_iter()
        .filter_map(|name| {
            let bare = results.time("served", "bare FUSE file", name)?;
            let mock = results.time("served", "mock", name)?;
            Some((name, [bare / 1e3, mock / 1e3]))
        })
        .collect();
    let title = "A command to the served mock, µs";
    bars(area, title, ["bare FUSE file", "mock"], &rows)
}

fn draw_list(area: &Area<'_>, results: &Results) -> Drawn {
    let of = |function: &str| {
        let line = results.line("list", function).into_iter();
        line.map(|(services, time)| (services, time / services))
            .collect()
    };
    lines(
        area,
        "A list: ns a service",
        ("services", Axis::Log(1.0, 4096.0)),
        Axis::Log(1.0, 1000.0),
        vec![
            Line::solid("transport alone", of("transport")),
            Line::solid("list_into", of("list_into")),
            Line::solid("list", of("list")),
        ],
    )
}

fn draw_mock(area: &Area<'_>, results: &Results) -> Drawn {
    let relative = |group: &str, function: &str| {
        let line = results.line(group, function);
        let first = line.first().map_or(1.0, |(_, first)| *first);
        line.into_iter()
            .map(|(n, time)| (n, time / first))
            .collect()
    };
    let mut all = vec![Line::solid("service, raw", relative("mock", "service"))];
    for function in results.functions("resources") {
        all.push(Line::solid(function, relative("resources", function)));
    }
    lines(
        area,
        "One made and freed on the mock: ratio to beside 10",
        ("objects of its kind", Axis::Log(10.0, 100_000.0)),
        Axis::Linear(0.0, 6.0),
        all,
    )
}

fn draw_pool(area: &Area<'_>, results: &Results) -> Drawn {
    let of = |function: &str| {
        let line = results.line("vni_pool", function).into_iter();
        line.map(|(used, time)| (used / 1e3, time / 1e3)).collect()
    };
    lines(
        area,
        "VNI pool: reserve, release, confirm, µs",
        ("thousands of 64,000 VNIs in use", Axis::Linear(0.0, 64.0)),
        Axis::Fit(1.4),
        vec![
            Line::solid("one VNI", of("one")),
            Line::solid("four VNIs", of("four")),
        ],
    )
}

fn draw_job(area: &Area<'_>, results: &Results) -> Drawn {
    let of = |function: &str| -> Vec<(f64, f64)> {
        let line = results.line("job", function).into_iter();
        line.map(|(nics, time)| (nics, time / 1e6)).collect()
    };
    let allocate = of("allocate");
    let alone = allocate.first().map_or(0.0, |(_, first)| *first);
    let in_turn = allocate
        .iter()
        .map(|(nics, _)| (*nics, nics * alone))
        .collect();
    lines(
        area,
        "A job where a command takes 5 ms, ms",
        ("NICs", Axis::Linear(1.0, 8.0)),
        Axis::Fit(1.4),
        vec![
            Line::solid("allocate", allocate),
            Line::solid("release", of("release")),
            Line::dotted("allocate, one NIC after the other", in_turn),
        ],
    )
}

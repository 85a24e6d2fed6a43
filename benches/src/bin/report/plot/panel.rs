//! One panel: bars beside bars, or lines.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::format;
use super::{Area, Drawn};

const TITLE: (&str, u32) = ("sans-serif", 18);
const TEXT: (&str, u32) = ("sans-serif", 13);
const MARGIN: u32 = 14;
const GREY: RGBColor = RGBColor(110, 110, 110);

/// Colours that people who see colours differently tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
];
const BASELINE: RGBColor = RGBColor(170, 170, 170);

/// How values are laid out.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    /// In powers of ten, from one value to another.
    Log(f64, f64),
    /// Evenly, from one value to another.
    Linear(f64, f64),
    /// Evenly, from 0 to so many times what there is.
    Fit(f64),
}

/// An axis with its ticks. Powers of ten are laid out by their logarithms.
#[derive(Clone)]
struct Scale {
    from: f64,
    to: f64,
    ticks: Vec<f64>,
    log: bool,
}

impl Scale {
    fn of(axis: Axis, values: impl Iterator<Item = f64>) -> Self {
        match axis {
            Axis::Log(from, to) => {
                let (from, to) = (from.log10(), to.log10());
                let ticks = (0_i32..=6).map(f64::from);
                Self {
                    from,
                    to,
                    ticks: ticks.filter(|tick| (from..=to).contains(tick)).collect(),
                    log: true,
                }
            }
            Axis::Linear(from, to) => Self::even(from, to),
            Axis::Fit(room) => Self::even(0.0, values.fold(1e-9, f64::max) * room),
        }
    }

    fn even(from: f64, to: f64) -> Self {
        let rough = (to - from) / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (from / step).ceil();
        let ticks = (0..12_u8).map(|tick| (first + f64::from(tick)) * step);
        Self {
            from,
            to,
            ticks: ticks.take_while(|tick| *tick <= to).collect(),
            log: false,
        }
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    fn label(&self, place: f64) -> String {
        if self.log {
            format::count(10_f64.powf(place))
        } else if place.fract().abs() < 1e-9 {
            format::count(place)
        } else {
            format!("{place:.1}")
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        let pixels = f64::from(limit.1 - limit.0) * share;
        #[allow(clippy::cast_possible_truncation, reason = "a place on the picture")]
        let pixels = pixels.round() as i32;
        limit.0 + pixels
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.from..self.to
    }
}

fn text(horizontal: HPos) -> TextStyle<'static> {
    let style = TEXT.into_text_style(&(0, 0)).color(&BLACK);
    style.pos(Pos::new(horizontal, VPos::Center))
}

/// A baseline and ours, for each row.
pub(super) fn bars(
    area: &Area<'_>,
    title: &str,
    names: [&str; 2],
    rows: &[(&str, [f64; 2])],
) -> Drawn {
    let values = rows.iter().flat_map(|(_, values)| *values);
    let across = Scale::of(Axis::Fit(1.15), values);
    let height = f64::from(u32::try_from(rows.len())?).max(1.0);
    let mut chart = ChartBuilder::on(area)
        .caption(title, TITLE)
        .margin(MARGIN)
        .x_label_area_size(26)
        .y_label_area_size(140)
        // The names stand above the bars.
        .build_cartesian_2d(across.clone(), 0.0..height * 1.17)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.2))
        .axis_style(GREY.mix(0.6))
        .x_label_style(TEXT)
        .x_label_formatter(&|value| across.label(*value))
        .draw()?;
    for (bar, (name, colour)) in names.into_iter().zip([BASELINE, COLOURS[0]]).enumerate() {
        let offset = if bar == 0 { 0.5 } else { 0.14 };
        let places = (1..).map(|row: u32| height - f64::from(row) + offset);
        let drawn = rows.iter().zip(places);
        chart
            .draw_series(drawn.clone().map(|((_, values), low)| {
                let corners = [(0.0, low), (values[bar], low + 0.36)];
                Rectangle::new(corners, colour.filled())
            }))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()));
        chart.draw_series(drawn.map(|((_, values), low)| {
            EmptyElement::at((values[bar], low + 0.18))
                + Text::new(value(values[bar]), (5, 0), text(HPos::Left))
        }))?;
    }
    let middles = (1..).map(|row: u32| height - f64::from(row) + 0.5);
    chart.draw_series(rows.iter().zip(middles).map(|((name, _), middle)| {
        EmptyElement::at((0.0, middle)) + Text::new((*name).to_owned(), (-8, 0), text(HPos::Right))
    }))?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .label_font(TEXT)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

fn value(value: f64) -> String {
    if value < 99.5 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A line of a panel.
pub(super) struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    dotted: bool,
}

impl Line {
    /// What was measured.
    pub(super) fn solid(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            points,
            dotted: false,
        }
    }

    /// What would be.
    pub(super) fn dotted(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            dotted: true,
            ..Self::solid(name, points)
        }
    }
}

/// Lines over what `across` names.
pub(super) fn lines(
    area: &Area<'_>,
    title: &str,
    (name, across): (&str, Axis),
    up: Axis,
    lines: Vec<Line>,
) -> Drawn {
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = Scale::of(across, points().map(|(x, _)| *x));
    let up = Scale::of(up, points().map(|(_, y)| *y));
    let mut chart = ChartBuilder::on(area)
        .caption(title, TITLE)
        .margin(MARGIN)
        .margin_right(2 * MARGIN)
        .x_label_area_size(42)
        .y_label_area_size(44)
        .build_cartesian_2d(across.clone(), up.clone())?;
    chart
        .configure_mesh()
        .x_desc(name)
        .axis_desc_style(TEXT)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.2))
        .axis_style(GREY.mix(0.6))
        .label_style(TEXT)
        .x_label_formatter(&|place| across.label(*place))
        .y_label_formatter(&|place| up.label(*place))
        .draw()?;
    for (index, line) in lines.into_iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<_> = line
            .points
            .iter()
            .map(|(x, y)| (across.place(*x), up.place(*y)))
            .collect();
        let style = colour.stroke_width(2);
        // Colours that come again are distinguished by their dashes.
        let dashed = line.dotted || index >= COLOURS.len();
        let drawn = if dashed {
            chart.draw_series(DashedLineSeries::new(points.clone(), 6, 5, style))?
        } else {
            chart.draw_series(LineSeries::new(points.clone(), style))?
        };
        drawn.label(line.name).legend(move |(x, y)| {
            let end = if dashed { x + 8 } else { x + 18 };
            PathElement::new([(x, y), (end, y)], style)
        });
        if !line.dotted {
            let dots = points.into_iter();
            chart.draw_series(dots.map(|point| Circle::new(point, 3, colour.filled())))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(TEXT)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

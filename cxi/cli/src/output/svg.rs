//! Pictures as SVG.

use std::fmt::Write as _;

/// A picture with a white background.
pub(crate) fn whole(width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// A rectangle that says what it is about when it is pointed at.
pub(crate) fn rect(
    body: &mut String,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    color: &str,
    opacity: f64,
    about: &str,
) {
    let _ = writeln!(
        body,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{color}\" \
         fill-opacity=\"{opacity}\"><title>{}</title></rect>",
        escaped(about)
    );
}

pub(crate) fn text(body: &mut String, x: f64, y: f64, text: &str, weight: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"{weight}\">{}</text>",
        escaped(text)
    );
}

/// A text that is read from below.
pub(crate) fn upwards(body: &mut String, x: f64, y: f64, text: &str) {
    let text = escaped(text);
    let _ =
        writeln!(body, "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{text}</text>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

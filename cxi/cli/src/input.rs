//! Files that a command reads.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cxi::kernel_file::read_bounded;

use crate::exit::Failure;

/// A file that was read, with its name for messages.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Reads a file, or standard input for `-`. Anything longer than `longest` bytes, such as
/// `/dev/zero`, is an error.
pub(crate) fn read(path: &Path, longest: u64) -> Result<Input, Failure> {
    let (name, text) = if path.as_os_str() == "-" {
        let text = bounded(io::stdin().lock(), longest);
        ("standard input".to_owned(), text)
    } else {
        let text = File::open(path).and_then(|file| bounded(file, longest));
        (path.display().to_string(), text)
    };
    match text {
        Ok(text) => Ok(Input { name, text }),
        Err(error) => Err(Failure::bad_input(format!(
            "{name}: cannot be read: {error}"
        ))),
    }
}

/// Reads text of at most `longest` bytes.
pub(crate) fn bounded(reader: impl Read, longest: u64) -> io::Result<String> {
    let bytes = read_bounded(reader, longest)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        let line = before.filter(|byte| **byte == b'\n').count();
        let message = format!("line {}: expected text in UTF-8", line + 1);
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_of_sane_length_is_read() {
        let no_text = bounded(&b"vnis: [1]\n# \xff\n"[..], 99).unwrap_err();
        assert_eq!(no_text.to_string(), "line 2: expected text in UTF-8");
        let endless = bounded(io::repeat(b' '), 1024).unwrap_err();
        assert_eq!(endless.to_string(), "too long: expected at most 1024 bytes");
        assert_eq!(bounded(&b"1234"[..], 4).unwrap(), "1234");
    }
}
